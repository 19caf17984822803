//! The harness reaches every await point, and reports where a check failed.

use std::cell::RefCell;
use std::time::Duration;

use raf_core::{Emitter, ErrorKind, Result, emit_stream};
use raf_tools::{ITool, ToolArguments, ToolContext};
use tokio::task::JoinSet;

use super::{cancel_after_polls, drop_after_polls, poll_n};
use crate::HangingTool;

/// A stream that says `items` numbers and sleeps a minute before each.
async fn slow(mut out: Emitter<u32>, items: u32) -> Result<()> {
    for item in 0..items {
        tokio::time::sleep(Duration::from_mins(1)).await;
        out.emit(item).await;
    }
    Ok(())
}

#[tokio::test]
async fn it_polls_no_more_than_it_is_told_to() {
    let mut stream = futures::stream::iter([1, 2, 3]);
    let run = poll_n(&mut stream, 2).await;
    assert_eq!((run.items, run.polls, run.ended), (vec![1, 2], 2, false));
    let rest = poll_n(&mut stream, 5).await;
    assert_eq!((rest.items, rest.polls, rest.ended), (vec![3], 2, true));
    let mut pending = futures::stream::pending::<u32>();
    assert_eq!(poll_n(&mut pending, 1).await.polls, 1);
}

#[test]
fn every_poll_is_a_point_to_drop_at() {
    let seen = RefCell::new(Vec::new());
    let runs = drop_after_polls(
        async || (emit_stream(|out| slow(out, 2)), ()),
        async |left| {
            let mut seen = seen.borrow_mut();
            seen.push((left.polls, left.items.len(), left.ended_by_itself));
        },
    );
    // Each item takes a poll that starts the timer and one that it wakes; the end takes one.
    assert_eq!(runs, 6);
    let seen = seen.into_inner();
    assert_eq!(seen[0], (0, 0, false));
    assert_eq!(seen[2], (2, 1, false));
    assert_eq!(seen[5], (5, 2, true));
}

#[test]
fn a_stream_that_waits_for_ever_is_dropped_where_it_waits() {
    let runs = drop_after_polls(
        async || (futures::stream::pending::<u32>(), ()),
        async |left| assert!(left.items.is_empty()),
    );
    assert_eq!(runs, 3);
}

#[test]
fn tasks_that_the_drop_aborts_are_gone_when_it_is_checked() {
    drop_after_polls(
        async || {
            let tool = HangingTool::new();
            let log = tool.log().clone();
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                let _ = tool
                    .call(ToolContext::detached("c"), ToolArguments::new())
                    .await;
            });
            let stream = emit_stream(async move |mut out: Emitter<u32>| {
                let _tasks = tasks;
                slow_one(&mut out).await;
                Ok(())
            });
            (stream, log)
        },
        async |left| assert_eq!(left.world.running(), 0),
    );
}

async fn slow_one(out: &mut Emitter<u32>) {
    tokio::time::sleep(Duration::from_mins(1)).await;
    out.emit(1).await;
}

#[test]
fn cancelling_reaches_every_point_and_the_rest_is_read() {
    let ends = RefCell::new(Vec::new());
    let runs = cancel_after_polls(
        async |token| {
            let stream = emit_stream(async move |out: Emitter<u32>| {
                tokio::select! {
                    biased;
                    () = token.cancelled() => {
                        Err(raf_core::Error::new(ErrorKind::Cancelled, "stop"))
                    }
                    end = slow(out, 1) => end,
                }
            });
            (stream, ())
        },
        async |left| ends.borrow_mut().push(left.items.last().map(Result::is_ok)),
    );
    assert_eq!(runs, 4);
    assert_eq!(
        ends.into_inner(),
        [Some(false), Some(false), Some(false), Some(true)]
    );
}

#[test]
#[should_panic(expected = "dropped after 1 polls: no")]
fn a_failing_check_says_after_how_many_polls() {
    drop_after_polls(
        async || (futures::stream::iter([1, 2]), ()),
        async |left| assert!(left.polls == 0, "no"),
    );
}

#[test]
#[should_panic(expected = "does not end although it was cancelled")]
fn a_stream_that_ignores_its_token_is_reported() {
    cancel_after_polls(
        async |_| (futures::stream::pending::<u32>(), ()),
        async |_| {},
    );
}
