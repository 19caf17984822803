//! Callbacks: one start and one end for each body that is entered.

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{Content, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, ScriptedTool};
use raf_tools::{
    CallbackCall, ExecuteOptions, ExecutionOptions, IToolCallback, Interrupt, ToolArguments,
    ToolError, ToolOutput,
};
use serde_json::json;

use super::kinds::kinds;
use super::logging::{Log, Observer, said};
use super::{execute, executor, message, texts};

#[tokio::test]
async fn te61_callbacks_have_one_start_and_one_end_per_body() {
    let log = Log::default();
    let options = ExecutionOptions::new().with_callback(Observer(Arc::clone(&log)));
    let check = async |behaviour: Behaviour, expect: &[&str]| {
        let tool = ScriptedTool::new("f").always(behaviour);
        execute(&executor(options.clone(), &[&tool]), &["f#1"]).await;
        assert_eq!(said(&log), expect);
    };
    check(Behaviour::text("x"), &["start f {}", "end true"]).await;
    let pieces = [Content::text("a"), Content::text("b")];
    let streamed = ["start f {}", "piece a", "piece b", "end false"];
    check(Behaviour::pieces(pieces), &streamed).await;
    let failed = ["start f {}", "error ExecutionFailed"];
    check(Behaviour::tell_model("no"), &failed).await;
    check(Behaviour::panics("p"), &failed).await;
    let asks = Behaviour::interrupt(json!("which?"), json!(1));
    check(asks, &["start f {}", r#"interrupt "which?""#]).await;
}

#[tokio::test]
async fn te62_callbacks_follow_the_native_kind_whole_and_streamed() {
    let log = Log::default();
    let options = ExecutionOptions::new().with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[]);
    for (name, payload) in [
        ("i", &["end true"][..]),
        ("s", &["piece x", "piece y", "piece z", "end false"]),
        ("ei", &["end true"]),
        ("es", &["piece media", "piece media", "end false"]),
    ] {
        let calls = message(&[&format!("{name}#1")]);
        let options = || ExecuteOptions::new().with_tools(kinds().0);
        let mut expected = vec![format!("start {name} {{}}")];
        expected.extend(payload.iter().map(|line| (*line).to_owned()));
        executor.execute(&calls, options()).await.unwrap();
        assert_eq!(said(&log), expected);
        let updates = executor.stream(&calls, options()).unwrap();
        updates.collect::<Vec<_>>().await;
        assert_eq!(said(&log), expected);
    }
}

#[tokio::test]
async fn te64_what_happens_in_the_middle_of_a_stream_is_told_as_what_it_is() {
    let log = Log::default();
    let options = ExecutionOptions::new().with_callback(Observer(Arc::clone(&log)));
    let check = async |end: fn() -> Result<Content, ToolError>, expect: &str| {
        let tool = ScriptedTool::new("f").always(Behaviour::returns(move || {
            let first = futures::stream::once(async { Ok(Content::text("p")) });
            ToolOutput::stream(first.chain(futures::stream::once(async move { end() })))
        }));
        execute(&executor(options.clone(), &[&tool]), &["f#1"]).await;
        assert_eq!(said(&log), ["start f {}", "piece p", expect]);
    };
    check(|| Err(ToolError::tell_model("no")), "error ExecutionFailed").await;
    check(|| panic!("planted"), "error ExecutionFailed").await;
    check(
        || Err(ToolError::interrupt(json!("which?"), json!(1))),
        r#"interrupt "which?""#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn te61_a_body_that_is_dropped_ends_for_its_callbacks_too() {
    let log = Log::default();
    let options = ExecutionOptions::new()
        .with_deadline(std::time::Duration::from_secs(1))
        .with_callback(Observer(Arc::clone(&log)));
    let tool = ScriptedTool::new("f").always(Behaviour::hang());
    execute(&executor(options, &[&tool]), &["f#1"]).await;
    assert_eq!(said(&log), ["start f {}", "error Cancelled"]);
}

#[tokio::test]
async fn te61_a_callback_reads_ids_and_time() {
    #[derive(Debug)]
    struct Reads(Log);
    impl IToolCallback for Reads {
        fn on_end(&self, call: &CallbackCall, _: Option<&ToolOutput>) {
            let context = &call.context;
            assert!(call.elapsed() >= std::time::Duration::ZERO);
            let line = format!(
                "{} {} {} {}",
                context.run_id(),
                context.call_id(),
                context.occurrence(),
                context.attempt()
            );
            super::logging::say(&self.0, line);
        }
    }
    let log = Log::default();
    let options = ExecutionOptions::new().with_callback(Reads(Arc::clone(&log)));
    let tool = ScriptedTool::returning("f", "x");
    let run = ExecuteOptions::new().with_run(raf_core::RunId::from("run"), 3);
    let executor = executor(options, &[&tool]);
    executor.execute(&message(&["f#c"]), run).await.unwrap();
    assert_eq!(said(&log), ["run c 3/0 1"]);
}

#[tokio::test]
async fn te12_a_panicking_callback_harms_nothing_and_the_others_are_told() {
    #[derive(Debug)]
    struct Panics;
    impl IToolCallback for Panics {
        fn on_start(&self, _: &CallbackCall, _: &ToolArguments) {
            panic!("planted");
        }

        fn on_piece(&self, _: &CallbackCall, _: &Content) {
            panic!("planted");
        }

        fn on_end(&self, _: &CallbackCall, _: Option<&ToolOutput>) {
            panic!("planted");
        }

        fn on_error(&self, _: &CallbackCall, _: &ToolError) {
            panic!("planted");
        }

        fn on_interrupt(&self, _: &CallbackCall, _: &Interrupt) {
            panic!("planted");
        }
    }
    let log = Log::default();
    let good = ScriptedTool::returning("good", "G");
    let streams = ScriptedTool::new("s").always(Behaviour::pieces([Content::text("S")]));
    let bad = ScriptedTool::new("bad").always(Behaviour::panics("planted"));
    let asks = ScriptedTool::new("asks").always(Behaviour::interrupt(json!(1), json!(1)));
    let options = ExecutionOptions::new()
        .with_mode(raf_tools::ExecutionMode::Sequential)
        .with_callback(Panics)
        .with_callback(Observer(Arc::clone(&log)));
    let executor = executor(options, &[&good, &streams, &bad, &asks]);
    let execution = execute(&executor, &["good#1", "s#2", "bad#3", "asks#4"]).await;
    assert_eq!(texts(&execution)[..2], ["1=G", "2=S"]);
    let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
    assert_eq!(execution.results[2].outcome(), outcome);
    assert_eq!(execution.pending.len(), 1);
    let starts = said(&log);
    let starts = starts.iter().filter(|line| line.starts_with("start"));
    assert_eq!(starts.count(), 4);
}
