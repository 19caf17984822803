//! Drops or cancels a stream at each of its await points: after N polls, for every N.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures::{Stream, StreamExt};
use raf_core::CancellationToken;
use tokio::runtime::Builder;

use crate::script::panic_text;

/// What polling a stream a number of times came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct PollRun<T> {
    /// The items that came.
    pub items: Vec<T>,
    /// How often it was polled.
    pub polls: usize,
    /// Whether it ended (`None`).
    pub ended: bool,
}

/// A stream that was dropped or cancelled, and what the test keeps of its surroundings.
#[derive(Debug)]
#[non_exhaustive]
pub struct Interrupted<T, W> {
    /// How often it was polled before that.
    pub polls: usize,
    /// All its items: after a cancellation those that came after it too.
    pub items: Vec<T>,
    /// Whether it had ended by itself before its number of polls was reached.
    pub ended_by_itself: bool,
    /// What the set-up handed over.
    pub world: W,
}

/// More polls than any run under test needs.
const MOST_POLLS: usize = 100_000;

/// Long enough on a paused clock for everything that ends by itself.
const FOR_EVER: Duration = Duration::from_hours(24);

/// Polls a stream at most `count` times, each time that it asks to be polled, and returns right
/// after the last poll, whatever that gave.
pub async fn poll_n<S: Stream + Unpin>(stream: &mut S, count: usize) -> PollRun<S::Item> {
    let mut run = PollRun {
        items: Vec::new(),
        polls: 0,
        ended: false,
    };
    poll_fn(|context| {
        while run.polls < count && !run.ended {
            run.polls += 1;
            match Pin::new(&mut *stream).poll_next(context) {
                Poll::Ready(Some(item)) => run.items.push(item),
                Poll::Ready(None) => run.ended = true,
                Poll::Pending if run.polls < count => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        Poll::Ready(())
    })
    .await;
    run
}

/// Drops a stream after N polls, for N from 0 until it ends by itself or waits for ever, and has
/// `check` look at what is left each time. Returns how many N there were.
///
/// Each N has its own current-thread runtime with a paused clock, so that a run is the same each
/// time; tasks that the drop aborts are gone when `check` is called. Call it from a plain `#[test]`.
///
/// ```
/// use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient};
/// use raf_testing::{Reply, ScriptedChatClient, drop_after_polls};
///
/// let runs = drop_after_polls(
///     async || {
///         let client = ScriptedChatClient::new([Reply::text("Hello")]);
///         let messages = [ChatMessage::user("Hi")];
///         let stream = client.run(&messages, ChatClientRunOptions::new()).await;
///         (stream.unwrap(), client)
///     },
///     async |left| assert_eq!(left.world.probe().live(), 0),
/// );
/// assert_eq!(runs, 6);
/// ```
///
/// # Panics
/// With what `check` panics with, and the number of polls.
pub fn drop_after_polls<S, W>(
    setup: impl AsyncFn() -> (S, W),
    check: impl AsyncFn(Interrupted<S::Item, W>),
) -> usize
where
    S: Stream + Unpin,
{
    for_each_count("dropped", async |count| {
        let (mut stream, world) = setup().await;
        let run = within_limits(poll_n(&mut stream, count)).await;
        let goes_on = run.as_ref().is_some_and(|run| !run.ended);
        drop(stream);
        let_aborted_tasks_end().await;
        if let Some(run) = run {
            check(Interrupted {
                polls: run.polls,
                items: run.items,
                ended_by_itself: run.ended,
                world,
            })
            .await;
        }
        goes_on
    })
}

/// Cancels the token of a stream after N polls, for N from 0 until it ends by itself, reads it to
/// its end and has `check` look at what came. Returns how many N there were.
///
/// As [`drop_after_polls`] in all else; the set-up gets the token.
///
/// # Panics
/// With what `check` panics with, and the number of polls; if the stream does not end although it
/// was cancelled.
pub fn cancel_after_polls<S, W>(
    setup: impl AsyncFn(CancellationToken) -> (S, W),
    check: impl AsyncFn(Interrupted<S::Item, W>),
) -> usize
where
    S: Stream + Unpin,
{
    for_each_count("cancelled", async |count| {
        let token = CancellationToken::new();
        let (mut stream, world) = setup(token.clone()).await;
        let Some(run) = within_limits(poll_n(&mut stream, count)).await else {
            return false;
        };
        token.cancel();
        let mut items = run.items;
        if !run.ended {
            let rest = within_limits(stream.by_ref().collect::<Vec<_>>()).await;
            items.extend(rest.expect("the stream does not end although it was cancelled"));
        }
        drop(stream);
        let_aborted_tasks_end().await;
        check(Interrupted {
            polls: run.polls,
            items,
            ended_by_itself: run.ended,
            world,
        })
        .await;
        !run.ended
    })
}

fn for_each_count(what: &str, play: impl AsyncFn(usize) -> bool) -> usize {
    for count in 0..MOST_POLLS {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime can be made");
        let played = catch_unwind(AssertUnwindSafe(|| runtime.block_on(play(count))));
        match played {
            Ok(true) => {}
            Ok(false) => return count + 1,
            Err(panic) => {
                let text = format!("{what} after {count} polls: {}", panic_text(&*panic));
                resume_unwind(Box::new(text));
            }
        }
    }
    panic!("the stream had not ended after {MOST_POLLS} polls");
}

/// Nothing, if it waits for ever: on a paused clock time passes when nothing else can happen.
async fn within_limits<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = tokio::time::sleep(FOR_EVER) => None,
        output = future => Some(output),
    }
}

/// An abort takes effect when the runtime comes to the task.
async fn let_aborted_tasks_end() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests;
