//! How many bodies run at once, and in which order they start.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{CancellationToken, ToolOutcome};
use raf_testing::{Behaviour, Latch, ScriptedTool};
use raf_tools::{ExecuteOptions, ExecutionMode, ExecutionOptions, ToolLimits};
use tokio::sync::Barrier;

use super::{execute, executor, message, texts};

fn sleeper(name: &str) -> ScriptedTool {
    ScriptedTool::new(name).always(Behaviour::text("x").after_sleep(Duration::from_millis(5)))
}

#[tokio::test(start_paused = true)]
async fn te01_results_are_in_call_order_and_bodies_run_at_once() {
    let barrier = Arc::new(Barrier::new(2));
    let slow = Behaviour::text("A")
        .after_barrier(&barrier)
        .after_sleep(Duration::from_millis(50));
    let a = ScriptedTool::new("a").always(slow);
    let b = ScriptedTool::new("b").always(Behaviour::text("B").after_barrier(&barrier));
    let executor = executor(ExecutionOptions::new(), &[&a, &b]);
    let execution = execute(&executor, &["a#1", "b#2"]).await;
    assert_eq!(texts(&execution), ["1=A", "2=B"]);
}

#[tokio::test(start_paused = true)]
async fn d8_of_a_thousand_calls_never_more_than_the_bound_run_at_once() {
    let tool = sleeper("f");
    let options = ExecutionOptions::new().with_max_concurrency(8);
    let executor = executor(options, &[&tool]);
    let calls: Vec<String> = (0..1_000).map(|index| format!("f#{index}")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let execution = execute(&executor, &calls).await;
    assert_eq!(execution.results.len(), 1_000);
    assert_eq!(tool.log().entries(), 1_000);
    assert_eq!(tool.log().max_concurrent(), 8);
}

#[tokio::test(start_paused = true)]
async fn h1_a_cancel_empties_the_queue() {
    let token = CancellationToken::new();
    let tool = ScriptedTool::new("f").always(Behaviour::until_cancelled());
    let options = ExecutionOptions::new().with_max_concurrency(8);
    let executor = executor(options, &[&tool]);
    let calls: Vec<String> = (0..1_000).map(|index| format!("f#{index}")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let log = tool.log().clone();
    let cancel = token.clone();
    let message = message(&calls);
    let run = executor.execute(&message, ExecuteOptions::new().with_cancellation(token));
    let stop = async {
        log.wait_for_entries(8).await;
        cancel.cancel();
    };
    let (execution, ()) = tokio::join!(run, stop);
    let execution = execution.unwrap();
    assert_eq!(tool.log().entries(), 8);
    let started = |started| {
        let outcome = ToolOutcome::Cancelled { started };
        execution
            .results
            .iter()
            .filter(|result| result.outcome() == outcome)
            .count()
    };
    assert_eq!((started(true), started(false)), (8, 992));
}

#[tokio::test(start_paused = true)]
async fn d8_a_tool_has_a_bound_of_its_own_over_all_runs_of_an_executor() {
    let narrow = sleeper("narrow").with_limits(ToolLimits::new().with_concurrency(2));
    let wide = sleeper("wide");
    let executor = executor(ExecutionOptions::new(), &[&narrow, &wide]);
    let calls = [
        "narrow#1", "narrow#2", "narrow#3", "wide#4", "wide#5", "narrow#6",
    ];
    let (one, two) = tokio::join!(execute(&executor, &calls), execute(&executor, &calls));
    assert_eq!(one.results.len() + two.results.len(), 12);
    assert_eq!(narrow.log().max_concurrent(), 2);
    assert_eq!(wide.log().max_concurrent(), 4);
}

#[tokio::test(start_paused = true)]
async fn d8_an_exclusive_call_is_a_barrier_in_call_order() {
    let before = Latch::new();
    let f = ScriptedTool::new("f").always(
        Behaviour::text("f")
            .after_sleep(Duration::from_millis(5))
            .after_opening(&before),
    );
    let check = before.clone();
    let alone = ScriptedTool::new("alone")
        .with_limits(ToolLimits::new().with_exclusive(true))
        .always(Behaviour::custom(move |_, _| {
            let finished_before = check.is_open();
            async move { Ok(finished_before.to_string().into()) }
        }));
    let g = ScriptedTool::new("g").always(Behaviour::text("g"));
    let executor = executor(ExecutionOptions::new(), &[&f, &alone, &g]);
    let execution = execute(&executor, &["f#1", "alone#2", "g#3"]).await;
    assert_eq!(texts(&execution), ["1=f", "2=true", "3=g"]);
}

#[tokio::test(start_paused = true)]
async fn te11_sequential_stops_after_a_failure_under_fail_fast_and_after_a_cancel() {
    let sequential = ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
    let fails = || ScriptedTool::new("a").always(Behaviour::tell_model("no"));
    for (policy, runs) in [
        (raf_tools::ErrorPolicy::FailFast, 0),
        (raf_tools::ErrorPolicy::ToModel, 1),
    ] {
        let b = ScriptedTool::returning("b", "B");
        let options = sequential.clone().with_error_policy(policy);
        let executor = executor(options, &[&fails(), &b]);
        let execution = execute(&executor, &["a#1", "b#2"]).await;
        assert_eq!(b.log().entries(), runs, "{policy:?}");
        assert_eq!(execution.results.len(), 2);
        assert_eq!(execution.termination.is_some(), runs == 0);
    }
    let token = CancellationToken::new();
    let cancels = token.clone();
    let a = ScriptedTool::new("a").always(Behaviour::custom(move |_, _| {
        cancels.cancel();
        async { Ok("A".into()) }
    }));
    let b = ScriptedTool::returning("b", "B");
    let executor = executor(sequential, &[&a, &b]);
    let options = ExecuteOptions::new().with_cancellation(token);
    let execution = executor
        .execute(&message(&["a#1", "b#2"]), options)
        .await
        .unwrap();
    assert_eq!(b.log().entries(), 0);
    assert_eq!(
        execution.results[0].outcome(),
        ToolOutcome::Ok,
        "ok stays ok"
    );
    assert_eq!(
        execution.results[1].outcome(),
        ToolOutcome::Cancelled { started: false }
    );
}
