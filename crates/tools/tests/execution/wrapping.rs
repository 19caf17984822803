//! Middleware: in order, once per call, around every call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{Content, TerminationCause, ToolApprovalResponse, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    BatchEvent, ExecuteOptions, ExecutionOptions, ExecutionUpdate, IToolMiddleware, Next,
    PreparingCall, ToolError, ToolInvocation, ToolLimits, ToolOutput,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::kinds::kinds;
use super::logging::{Log, Named, Observer, around, said, say};
use super::{execute, executor, message, texts};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn te05_middleware_runs_in_order_once_for_every_kind_whole_and_streamed() {
    let log = Log::default();
    let options = ["A", "B", "C"]
        .into_iter()
        .fold(ExecutionOptions::new(), |options, name| {
            options.with_middleware(Named(name, Arc::clone(&log)))
        })
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[]);
    let expected = ["A> 1", "B> 1", "C> 1", "tool", "<C", "<B", "<A"];
    for name in ["i", "s", "ei", "es"] {
        let (kinds, runs) = kinds();
        let calls = message(&[&format!("{name}#1")]);
        let options = ExecuteOptions::new().with_tools(kinds);
        let check = || {
            let order: Vec<String> = said(&log)
                .into_iter()
                .filter(|line| !line.starts_with("piece") && !line.starts_with("end"))
                .map(|line| {
                    if line.starts_with("start") {
                        return "tool".to_owned();
                    }
                    line
                })
                .collect();
            assert_eq!(order, expected, "{name}");
        };
        let execution = executor.execute(&calls, options.clone()).await.unwrap();
        assert!(execution.results[0].outcome().is_ok());
        check();
        let updates = executor.stream(&calls, options).unwrap();
        updates.collect::<Vec<_>>().await;
        check();
        assert_eq!(runs.load(Ordering::SeqCst), 2, "one native run per call");
    }
}

#[tokio::test]
async fn te06_arguments_are_rewritten_a_call_is_answered_and_callbacks_see_no_body() {
    #[derive(Debug)]
    struct Rewrites;
    impl IToolMiddleware for Rewrites {
        fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
            call.arguments.insert("q".into(), json!("q2"));
            Ok(())
        }
    }
    let log = Log::default();
    let heard = Arc::clone(&log);
    let answers = around(move |call, _| {
        say(&heard, Value::Object(call.arguments).to_string());
        Box::pin(async { Ok("stub".into()) })
    });
    let tool = ScriptedTool::returning("f", "real");
    let options = ExecutionOptions::new()
        .with_middleware(Rewrites)
        .with_middleware(answers)
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[&tool]);
    let execution = execute(&executor, &["f#1"]).await;
    assert_eq!(texts(&execution), ["1=stub"]);
    assert_eq!(tool.log().entries(), 0);
    assert_eq!(said(&log), [r#"{"q":"q2"}"#]);
    assert_eq!(
        execution.results[0].executed_arguments(),
        Some(&json!({"q": "q2"}))
    );
    let updates = executor
        .stream(&message(&["f#1"]), ExecuteOptions::new())
        .unwrap();
    let updates: Vec<_> = updates.collect().await;
    let is_start =
        |update: &_| matches!(update, ExecutionUpdate::Event(BatchEvent::Started { .. }));
    assert!(!updates.iter().any(is_start), "no body was entered");
}

#[tokio::test]
async fn te05_a_stream_is_wrapped_as_a_stream_and_callbacks_see_the_tools_own_pieces() {
    let log = Log::default();
    let shouts = around(|call, next| {
        Box::pin(async move {
            let ToolOutput::Stream(pieces) = next.run(call).await? else {
                return Err(ToolError::execution_failed("a stream stays a stream"));
            };
            Ok(ToolOutput::stream(pieces.map(|piece| {
                let piece = piece?;
                Ok(Content::text(piece.as_text().unwrap_or("").to_uppercase()))
            })))
        })
    });
    let tool =
        ScriptedTool::new("s").always(Behaviour::pieces([Content::text("x"), Content::text("y")]));
    let options = ExecutionOptions::new()
        .with_middleware(shouts)
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[&tool]);
    let updates = executor
        .stream(&message(&["s#1"]), ExecuteOptions::new())
        .unwrap();
    let mut shown = String::new();
    let mut result = String::new();
    for update in updates.collect::<Vec<_>>().await {
        match update {
            ExecutionUpdate::Event(BatchEvent::Progress { content, .. }) => {
                shown += content.as_text().unwrap();
            }
            ExecutionUpdate::End(end) => result = end.results[0].text(),
            _ => {}
        }
    }
    assert_eq!((shown.as_str(), result.as_str()), ("XY", "XY"));
    assert_eq!(
        said(&log),
        ["start s {}", "piece x", "piece y", "end false"]
    );
}

#[tokio::test]
async fn te05_middleware_is_around_unknown_tools_without_a_handler() {
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_middleware(Named("A", Arc::clone(&log)))
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[]);
    let execution = execute(&executor, &["ghost#7"]).await;
    let outcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
    assert_eq!(execution.results[0].outcome(), outcome);
    assert_eq!(said(&log), ["A> 7", "<A"], "no body, no callback");
    let execution = execute(&executor, &["ghost#8(no json)"]).await;
    assert_eq!(
        execution.results[0].outcome(),
        outcome,
        "that the tool is unknown counts, whatever the arguments are"
    );
    assert!(execution.results[0].text().contains("ghost"));
}

#[tokio::test]
async fn d2_a_middleware_runs_a_body_again_only_if_it_is_idempotent() {
    for (idempotent, attempts, ok) in [(false, vec![1], false), (true, vec![1, 2], true)] {
        let twice = around(|call, next| {
            Box::pin(async move {
                let _ = next.run(call.clone()).await;
                next.run(call).await
            })
        });
        let tool = ScriptedTool::returning("f", "x")
            .with_limits(ToolLimits::new().with_idempotent(idempotent));
        let options = ExecutionOptions::new().with_middleware(twice);
        let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
        let calls = tool.log().calls();
        let entered: Vec<u32> = calls.iter().map(|call| call.attempt).collect();
        assert_eq!(entered, attempts);
        assert!(
            calls
                .iter()
                .all(|call| call.idempotency_key == calls[0].idempotency_key)
        );
        assert_eq!(execution.results[0].outcome().is_ok(), ok);
    }
}

#[tokio::test]
async fn te_a_retry_goes_on_until_an_idempotent_tool_succeeds() {
    let retries = around(|call, next| {
        Box::pin(async move {
            let attempts = if next.is_idempotent() { 3 } else { 1 };
            let mut result = next.run(call.clone()).await;
            for _ in 1..attempts {
                if result.is_ok() {
                    break;
                }
                result = next.run(call.clone()).await;
            }
            result
        })
    });
    let tool = ScriptedTool::new("f")
        .with_limits(ToolLimits::new().with_idempotent(true))
        .then(Behaviour::tell_model("busy"))
        .then(Behaviour::text("done"));
    let once = ScriptedTool::new("once").always(Behaviour::tell_model("busy"));
    let options = ExecutionOptions::new().with_middleware(retries);
    let execution = execute(&executor(options, &[&tool, &once]), &["f#1", "once#2"]).await;
    assert_eq!(texts(&execution), ["1=done", "2=busy"]);
    assert_eq!((tool.log().entries(), once.log().entries()), (2, 1));
}

#[tokio::test]
async fn te_arguments_changed_around_a_call_are_validated_again_and_reported() {
    for (value, ok) in [(json!("no number"), false), (json!(2), true)] {
        let given = value.clone();
        let changes = around(move |mut call, next| {
            call.arguments.insert("n".into(), given.clone());
            Box::pin(next.run(call))
        });
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let tool = ScriptedTool::returning("f", "x").with_parameters(&schema);
        let options = ExecutionOptions::new().with_middleware(changes);
        let execution = execute(&executor(options, &[&tool]), &["f#1({\"n\":1})"]).await;
        let result = &execution.results[0];
        if ok {
            assert_eq!(result.outcome(), ToolOutcome::Ok);
            assert_eq!(result.executed_arguments(), Some(&json!({"n": 2})));
        } else {
            let outcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
            assert_eq!(result.outcome(), outcome);
        }
        assert_eq!(tool.log().entries(), usize::from(ok));
    }
}

#[tokio::test]
async fn te_arguments_changed_around_a_call_that_asks_are_changed_once() {
    let appends = around(|mut call, next| {
        if let Some(Value::String(query)) = call.arguments.get_mut("query") {
            query.push('*');
        }
        Box::pin(next.run(call))
    });
    let asks = Behaviour::interrupt(json!("which?"), json!(1));
    let tool = ScriptedTool::new("f").then(asks).always(Behaviour::echo());
    let options = ExecutionOptions::new().with_middleware(appends);
    let executor = executor(options, &[&tool]);
    let paused = execute(&executor, &[r#"f#1({"query":"x"})"#]).await;
    let id = paused.pending[0].request_id().unwrap();
    let answers = [ToolApprovalResponse::resume(id, json!("y"))];
    let paused = paused.paused.clone().unwrap();
    let end = executor
        .resume(paused, &answers, ExecuteOptions::new())
        .await
        .unwrap();
    assert_eq!(texts(&end), [r#"1={"query":"x*"}"#]);
}

#[tokio::test]
async fn te_a_middleware_ends_the_run() {
    let ends = around(|_, _| Box::pin(async { Err(ToolError::terminate("enough")) }));
    let tool = ScriptedTool::returning("f", "x");
    let options = ExecutionOptions::new().with_middleware(ends);
    let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
    assert_eq!(execution.termination, Some(TerminationCause::Middleware));
    assert_eq!(texts(&execution), ["1=enough"]);
}

#[tokio::test(start_paused = true)]
async fn te_a_middleware_cancels_its_own_call_alone() {
    let cancels = around(|call, next| {
        if call.context.tool_name() == "f" {
            call.context.cancellation().cancel();
        }
        Box::pin(next.run(call))
    });
    let waits = ScriptedTool::new("f").always(Behaviour::until_cancelled());
    let other = ScriptedTool::new("g").always(Behaviour::text("G").after_sleep(SECOND));
    let options = ExecutionOptions::new().with_middleware(cancels);
    let execution = execute(&executor(options, &[&waits, &other]), &["f#1", "g#2"]).await;
    let outcome = ToolOutcome::Cancelled { started: true };
    assert_eq!(execution.results[0].outcome(), outcome);
    assert_eq!(execution.results[1].text(), "G");
    assert!(execution.abandoned.is_empty(), "it gave up by itself");
}

#[tokio::test(start_paused = true)]
async fn d7_the_deadline_spans_middleware_body_and_stream() {
    let slow = || {
        around(|call, next| {
            Box::pin(async move {
                tokio::time::sleep(2 * SECOND).await;
                next.run(call).await
            })
        })
    };
    let deadline = ExecutionOptions::new().with_deadline(3 * SECOND);
    let body = Behaviour::text("x").after_sleep(2 * SECOND);
    let stream = Behaviour::returns(|| {
        ToolOutput::stream(futures::stream::once(async {
            tokio::time::sleep(2 * SECOND).await;
            Ok(Content::text("x"))
        }))
    });
    for behaviour in [body, stream] {
        let tool = ScriptedTool::new("f").always(behaviour);
        let options = deadline.clone().with_middleware(slow());
        let start = Instant::now();
        let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
        assert_eq!(start.elapsed(), 3 * SECOND);
        let outcome = ToolOutcome::Error(ToolErrorClass::TimedOut { started: true });
        assert_eq!(execution.results[0].outcome(), outcome);
    }
    let tool = ScriptedTool::returning("f", "x");
    let options = ExecutionOptions::new()
        .with_deadline(SECOND)
        .with_middleware(slow());
    let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
    let outcome = ToolOutcome::Error(ToolErrorClass::TimedOut { started: false });
    assert_eq!(execution.results[0].outcome(), outcome);
}

#[tokio::test]
async fn te_a_middleware_is_around_the_tools_whose_name_fits() {
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_middleware_for(|tool| tool == "a", Named("A", Arc::clone(&log)));
    let (a, b) = (
        ScriptedTool::returning("a", "x"),
        ScriptedTool::returning("b", "x"),
    );
    execute(&executor(options, &[&a, &b]), &["b#1", "a#2", "ghost#3"]).await;
    assert_eq!(said(&log), ["A> 2", "<A"]);
}

/// Panics at one place for the tool `bad`.
#[derive(Debug)]
struct Panics(&'static str, Arc<AtomicUsize>);

#[async_trait]
impl IToolMiddleware for Panics {
    fn applies_to(&self, tool: &str) -> bool {
        assert!(self.0 != "applies_to" || tool == "good", "planted");
        tool != "good"
    }

    fn prepare(&self, _: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        assert_ne!(self.0, "prepare", "planted");
        Ok(())
    }

    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.0, "around", "planted");
        next.run(call).await
    }
}

#[tokio::test]
async fn te12_a_panic_of_a_middleware_settles_its_own_call_wherever_it_is() {
    for place in ["applies_to", "prepare", "around"] {
        let good = ScriptedTool::returning("good", "G");
        let bad = ScriptedTool::returning("bad", "B");
        let around = Arc::new(AtomicUsize::new(0));
        let options = ExecutionOptions::new().with_middleware(Panics(place, around));
        let calls = ["good#1", "bad#2", "ghost#3"];
        let execution = execute(&executor(options, &[&good, &bad]), &calls).await;
        assert_eq!(texts(&execution)[0], "1=G");
        for result in &execution.results[1..] {
            let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
            assert_eq!(result.outcome(), outcome, "{place}");
            assert!(!result.text().contains("planted"));
        }
        assert_eq!(bad.log().entries(), 0, "{place}");
    }
}
