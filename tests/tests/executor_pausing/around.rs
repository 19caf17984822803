//! Case 17: what stands around the calls of a batch that is resumed.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use raf_tools::{
    CallbackCall, ExecutionOptions, IArgumentHandler, IToolCallback, IToolMiddleware, Interrupt,
    Next, PreparingCall, ToolArguments, ToolError, ToolExecutor, ToolInvocation, ToolOutput,
};
use serde_json::json;

use crate::bench::{WAYS, point, resume};
use crate::{FOUR, four};

/// What stands around a call: each way through it is a word.
#[derive(Clone, Debug, Default)]
struct Around(Arc<Mutex<Vec<String>>>);

impl Around {
    fn say(&self, what: &str, id: &str) {
        self.0
            .lock()
            .expect("no body panics here")
            .push(format!("{what} {id}"));
    }

    /// What was said since the last time, sorted: calls run at once.
    fn take(&self) -> Vec<String> {
        let mut said = std::mem::take(&mut *self.0.lock().expect("no body panics here"));
        said.sort();
        said
    }
}

#[async_trait]
impl IToolMiddleware for Around {
    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        self.say("prepare", call.call.id());
        Ok(())
    }

    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        self.say("around", call.context.call_id());
        next.run(call).await
    }
}

impl IArgumentHandler for Around {
    fn rewrite(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        self.say("rewrite", call.call.id());
        Ok(())
    }
}

impl IToolCallback for Around {
    fn on_start(&self, call: &CallbackCall, _: &ToolArguments) {
        self.say("start", call.context.call_id());
    }

    fn on_end(&self, call: &CallbackCall, _: Option<&ToolOutput>) {
        self.say("end", call.context.call_id());
    }

    fn on_interrupt(&self, call: &CallbackCall, _: &Interrupt) {
        self.say("interrupt", call.context.call_id());
    }
}

/// Finished calls pass no middleware, handler or callback again; what was prepared stays prepared.
#[tokio::test(start_paused = true)]
async fn te17_nothing_around_a_finished_call_is_entered_again() {
    for (first, second, reload) in WAYS {
        let around = Around::default();
        let mut bench = four();
        let options = ExecutionOptions::new()
            .with_middleware(around.clone())
            .with_argument_handler(around.clone())
            .with_callback(around.clone());
        bench.executor = ToolExecutor::with_options(bench.executor.registry().clone(), options);
        let paused = bench.execute(first, &FOUR).await;
        let said = around.take();
        for word in ["rewrite", "prepare", "around", "start"] {
            for (id, _) in FOUR {
                let word = format!("{word} {id}");
                assert_eq!(
                    said.iter().filter(|said| **said == word).count(),
                    1,
                    "{word}"
                );
            }
        }
        let ends: Vec<_> = said.iter().filter(|word| word.starts_with("end")).collect();
        assert_eq!(ends, ["end 3", "end 4"]);

        let ids = paused.end.pending.iter().map(|call| point(call).0);
        let answers: Vec<_> = ids.map(|id| resume(&id, json!(1))).collect();
        let done = bench
            .resume(second, paused.paused(reload), &answers)
            .await
            .unwrap();
        assert!(done.end.paused.is_none());
        assert_eq!(
            around.take(),
            [
                "around 1", "around 2", "end 1", "end 2", "start 1", "start 2"
            ]
        );
    }
}
