//! How bodies end: deadlines, cancellation and grace, panics, drops, flags.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use raf_core::{CancellationToken, Content, ErrorKind, ToolErrorClass, ToolOutcome};
use raf_testing::{Behaviour, Latch, ScriptedTool};
use raf_tools::{
    BatchEvent, ErrorPolicy, ExecuteOptions, ExecutionOptions, ExecutionUpdate, ToolLimits,
};
use tokio::time::Instant;

use super::{execute, executor, message, texts};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn d7_a_call_has_one_deadline_its_tools_own_or_the_default() {
    let hangs = || ScriptedTool::new("hangs").always(Behaviour::hang());
    let own = hangs().with_limits(ToolLimits::new().with_deadline(3 * SECOND));
    let options = ExecutionOptions::new().with_deadline(7 * SECOND);
    for (tool, after) in [(hangs(), 7 * SECOND), (own, 3 * SECOND)] {
        let start = Instant::now();
        let execution = execute(&executor(options.clone(), &[&tool]), &["hangs#1"]).await;
        assert_eq!(start.elapsed(), after);
        let outcome = ToolOutcome::Error(ToolErrorClass::TimedOut { started: true });
        assert_eq!(execution.results[0].outcome(), outcome);
        assert!(
            execution.results[0]
                .text()
                .contains("may have taken effect")
        );
        assert_eq!(tool.log().dropped(), 1);
    }
    let agent = ScriptedTool::new("agent")
        .with_limits(ToolLimits::new().with_agent_backed(true))
        .always(Behaviour::text("late").after_sleep(100 * SECOND));
    let execution = execute(&executor(options, &[&agent]), &["agent#1"]).await;
    assert_eq!(texts(&execution), ["1=late"]);
}

#[tokio::test(start_paused = true)]
async fn b5_a_slow_consumer_never_makes_a_deadline_fire() {
    let tool = ScriptedTool::new("f")
        .with_limits(ToolLimits::new().with_deadline(SECOND))
        .always(Behaviour::text("done").after_sleep(Duration::from_millis(500)));
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let mut updates = executor
        .stream(&message(&["f#1"]), ExecuteOptions::new())
        .unwrap();
    let first = updates.next().await;
    assert!(matches!(
        first,
        Some(ExecutionUpdate::Event(BatchEvent::Started { .. }))
    ));
    tokio::time::sleep(100 * SECOND).await;
    let Some(ExecutionUpdate::Event(BatchEvent::Finished(finished))) = updates.next().await else {
        panic!("the call must have its outcome");
    };
    assert_eq!(finished.result.outcome(), ToolOutcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn h1_a_body_that_returns_within_the_grace_keeps_its_outcome() {
    let token = CancellationToken::new();
    let latch = Latch::new();
    let tidies = ScriptedTool::new("tidies").always(
        Behaviour::text("tidied")
            .after_cancellation()
            .after_sleep(SECOND),
    );
    let gives_up = ScriptedTool::new("gives_up").always(Behaviour::until_cancelled());
    let ignores = ScriptedTool::new("ignores").always(Behaviour::hang().after_opening(&latch));
    let executor = executor(ExecutionOptions::new(), &[&tidies, &gives_up, &ignores]);
    let options = ExecuteOptions::new().with_cancellation(token.clone());
    let message = message(&["tidies#1", "gives_up#2", "ignores#3"]);
    let stop = async {
        latch.wait().await;
        token.cancel();
        Instant::now()
    };
    let (execution, stopped) = tokio::join!(executor.execute(&message, options), stop);
    let execution = execution.unwrap();
    assert_eq!(stopped.elapsed(), 2 * SECOND, "the grace");
    let outcomes: Vec<_> = execution
        .results
        .iter()
        .map(raf_core::ToolResult::outcome)
        .collect();
    let cancelled = ToolOutcome::Cancelled { started: true };
    assert_eq!(outcomes, [ToolOutcome::Ok, cancelled, cancelled]);
    let abandoned: Vec<_> = execution
        .abandoned
        .iter()
        .map(|call| call.call.id())
        .collect();
    assert_eq!(abandoned, ["3"], "only the one that did not end by itself");
    assert_eq!(ignores.log().running(), 0, "it was dropped");
}

#[tokio::test(start_paused = true)]
async fn h1_a_flag_is_seen_while_bodies_are_awaited() {
    let flag = Arc::new(AtomicBool::new(false));
    let tool = ScriptedTool::new("f").always(Behaviour::until_cancelled());
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let options = ExecuteOptions::new().with_cancellation(Arc::clone(&flag));
    let log = tool.log().clone();
    let message = message(&["f#1"]);
    let stop = async {
        log.wait_for_entries(1).await;
        flag.store(true, Ordering::Release);
    };
    let (execution, ()) = tokio::join!(executor.execute(&message, options), stop);
    let outcome = execution.unwrap().results[0].outcome();
    assert_eq!(outcome, ToolOutcome::Cancelled { started: true });
}

#[tokio::test]
async fn b5_a_body_that_blocks_its_thread_is_given_up_and_reported() {
    let token = CancellationToken::new();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let entered = Latch::new();
    let open = entered.clone();
    let tool = ScriptedTool::new("blocks").always(Behaviour::custom(move |_, _| {
        let blocked = Arc::clone(&blocked);
        let open = open.clone();
        async move {
            open.open();
            let _ = blocked.lock().unwrap().recv();
            Ok("late".into())
        }
    }));
    // The body runs on a worker of its own runtime, so that blocking it blocks nobody else.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let grace = Duration::from_millis(1);
    let executor = executor(ExecutionOptions::new().with_grace(grace), &[&tool]);
    let message = message(&["blocks#1"]);
    let options = ExecuteOptions::new().with_cancellation(token.clone());
    let execution = tokio::task::spawn_blocking(move || {
        let execution = runtime.block_on(async {
            let run = executor.execute(&message, options);
            let stop = async {
                entered.wait().await;
                token.cancel();
            };
            tokio::join!(run, stop).0.unwrap()
        });
        release.send(()).unwrap();
        runtime.shutdown_background();
        execution
    })
    .await
    .unwrap();
    assert_eq!(
        execution.results[0].outcome(),
        ToolOutcome::Cancelled { started: true }
    );
    assert_eq!(execution.abandoned.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn te12_a_panic_settles_its_own_call_alone() {
    let panics = ScriptedTool::new("p").always(Behaviour::panics("secret stack"));
    let good = ScriptedTool::returning("g", "G");
    for calls in [&["p#1"][..], &["p#1", "g#2"], &["g#2", "p#1"]] {
        for mode in [
            raf_tools::ExecutionMode::Parallel,
            raf_tools::ExecutionMode::Sequential,
        ] {
            let options = ExecutionOptions::new().with_mode(mode);
            let execution = execute(&executor(options, &[&panics, &good]), calls).await;
            assert_eq!(execution.results.len(), calls.len());
            for result in &execution.results {
                if result.call_id() == "1" {
                    let outcome = ToolOutcome::Error(ToolErrorClass::Panicked);
                    assert_eq!(result.outcome(), outcome);
                    assert_eq!(result.name(), "p");
                    assert!(!result.text().contains("secret"), "{}", result.text());
                } else {
                    assert_eq!(result.text(), "G");
                }
            }
        }
    }
}

#[tokio::test]
async fn te13_an_error_is_its_calls_result_and_its_siblings_stay() {
    let good = ScriptedTool::returning("good", "G");
    let bad = ScriptedTool::new("bad").always(Behaviour::tell_model("no such city"));
    let executor = executor(ExecutionOptions::new(), &[&good, &bad]);
    let execution = execute(&executor, &["good#1", "bad#2"]).await;
    assert_eq!(texts(&execution), ["1=G", "2=no such city"]);
    let outcomes: Vec<_> = execution
        .results
        .iter()
        .map(raf_core::ToolResult::outcome)
        .collect();
    let failed = ToolOutcome::Error(ToolErrorClass::Failed);
    assert_eq!(outcomes, [ToolOutcome::Ok, failed]);
    assert_eq!(execution.termination, None);
}

#[tokio::test(start_paused = true)]
async fn te13_fail_fast_cancels_and_joins_the_siblings() {
    let waits = ScriptedTool::new("waits").always(Behaviour::until_cancelled());
    let log = waits.log().clone();
    let bad = ScriptedTool::new("bad").always(Behaviour::custom(move |_, _| {
        let log = log.clone();
        async move {
            log.wait_for_entries(1).await;
            Err(raf_tools::ToolError::tell_model("broken"))
        }
    }));
    let options = ExecutionOptions::new().with_error_policy(ErrorPolicy::FailFast);
    let execution = execute(&executor(options, &[&waits, &bad]), &["waits#1", "bad#2"]).await;
    assert_eq!(waits.log().running(), 0, "joined");
    assert_eq!(
        execution.results[0].outcome(),
        ToolOutcome::Cancelled { started: true }
    );
    assert_eq!(execution.results[1].text(), "broken");
    assert_eq!(
        execution.termination,
        Some(raf_core::TerminationCause::FailFast)
    );
}

#[tokio::test(start_paused = true)]
async fn te36_a_first_piece_is_shown_before_its_body_ends() {
    let latch = Latch::new();
    let held = latch.clone();
    let streams = ScriptedTool::new("s").always(Behaviour::custom(move |_, _| {
        let held = held.clone();
        let pieces = futures::stream::once(async { Ok(Content::text("x")) }).chain(
            futures::stream::once(async move {
                held.wait().await;
                Ok(Content::text("y"))
            }),
        );
        std::future::ready(Ok(raf_tools::ToolOutput::stream(pieces)))
    }));
    let executor = executor(ExecutionOptions::new(), &[&streams]);
    let mut updates = executor
        .stream(&message(&["s#1"]), ExecuteOptions::new())
        .unwrap();
    loop {
        match updates.next().await {
            Some(ExecutionUpdate::Event(BatchEvent::Progress { content, .. })) => {
                assert_eq!(content.as_text(), Some("x"));
                break;
            }
            Some(ExecutionUpdate::Event(BatchEvent::Started { .. })) => {}
            other => panic!("{other:?} before the first piece"),
        }
    }
    latch.open();
    let mut last = None;
    while let Some(update) = updates.next().await {
        last = Some(update);
    }
    let Some(ExecutionUpdate::End(execution)) = last else {
        panic!("the end comes last");
    };
    assert_eq!(texts(&execution), ["1=xy"]);
}

#[tokio::test]
async fn d5_every_outcome_of_a_batch_that_was_ended_is_told() {
    let fatal = ScriptedTool::new("fatal").always(Behaviour::fatal("stop"));
    let gated = ScriptedTool::new("gated")
        .gated()
        .always(Behaviour::text("x"));
    let executor = executor(ExecutionOptions::new(), &[&fatal, &gated]);
    let updates = executor
        .stream(&message(&["fatal#1", "gated#2"]), ExecuteOptions::new())
        .unwrap();
    let updates: Vec<ExecutionUpdate> = updates.collect().await;
    let mut told = Vec::new();
    for update in &updates {
        if let ExecutionUpdate::Event(BatchEvent::Finished(finished)) = update {
            told.push((finished.result.call_id(), finished.result.outcome()));
        }
    }
    let Some(ExecutionUpdate::End(end)) = updates.last() else {
        panic!("the end comes last");
    };
    let results = end.results.iter();
    let results: Vec<_> = results
        .map(|result| (result.call_id(), result.outcome()))
        .collect();
    assert_eq!(told, results);
    assert_eq!(told.len(), 2);
}

#[tokio::test]
async fn deadlines_and_grace_without_end_are_no_overflow() {
    let limits = ToolLimits::new().with_deadline(Duration::MAX);
    let tool = ScriptedTool::returning("f", "x").with_limits(limits);
    let options = ExecutionOptions::new().with_grace(Duration::MAX);
    let execution = execute(&executor(options, &[&tool]), &["f#1"]).await;
    assert_eq!(texts(&execution), ["1=x"]);
}

#[test]
fn a_runtime_without_timers_is_a_misuse() {
    let tool = ScriptedTool::returning("f", "x");
    let executor = executor(ExecutionOptions::new(), &[&tool]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let message = message(&["f#1"]);
    let ended = runtime.block_on(executor.execute(&message, ExecuteOptions::new()));
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("enable_time"));
}
