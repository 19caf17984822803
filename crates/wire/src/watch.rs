//! Waits for a read, a timeout, a cancel or a deadline, whichever comes first.

use std::future::{Future, poll_fn};
use std::panic::catch_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use raf_core::{Cancellation, Error, ErrorKind};
use tokio::time::{Instant, Sleep, sleep_until};

/// A moment that much later, or the far future if there is no such moment.
pub(crate) fn later(from: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    from.checked_add(wait.min(FAR)).unwrap_or(from)
}

/// Whether a tokio runtime with timers runs here.
pub(crate) fn has_timers() -> bool {
    // tokio tells of missing timers by a panic alone.
    tokio::runtime::Handle::try_current().is_ok()
        && catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// What ends a wait early.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// The run was cancelled.
    Cancelled,
    /// The deadline of the run passed.
    Deadline,
    /// The wait itself was too long.
    TimedOut,
}

/// The clocks of one exchange: one timer, however many reads there are.
pub(crate) struct Watch {
    cancellation: Cancellation,
    cancelled: BoxFuture<'static, ()>,
    deadline: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// Who is woken by timer and token: while it is the same, they need not be asked again.
    registered: Option<Waker>,
}

impl Watch {
    /// Starts the clock of the deadline.
    pub(crate) fn new(cancellation: Cancellation, deadline: Option<Duration>) -> Self {
        let now = Instant::now();
        let deadline = deadline.map(|deadline| later(now, deadline));
        Self {
            cancelled: cancellation.token().clone().cancelled_owned().boxed(),
            cancellation,
            deadline,
            timer: Box::pin(sleep_until(deadline.unwrap_or(now))),
            registered: None,
        }
    }

    /// Waits for the future until `until` at the latest.
    pub(crate) async fn guard<F: Future>(
        &mut self,
        until: Instant,
        future: Pin<&mut F>,
    ) -> Result<F::Output, Interrupted> {
        self.begin();
        self.guard_on(|| until, future).await
    }

    /// Another kind of wait begins: it may end sooner than the one before.
    pub(crate) fn begin(&mut self) {
        self.registered = None;
    }

    /// Waits on, as one of a row of waits, of which none ends sooner than the one before: `until` is asked
    /// for its end only where that counts.
    pub(crate) async fn guard_on<F: Future>(
        &mut self,
        until: impl Fn() -> Instant,
        mut future: Pin<&mut F>,
    ) -> Result<F::Output, Interrupted> {
        poll_fn(|context| {
            if self.cancellation.is_cancelled() {
                return Poll::Ready(Err(Interrupted::Cancelled));
            }
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            self.poll_clocks(&until, context).map(Err)
        })
        .await
    }

    fn poll_clocks(
        &mut self,
        until: impl Fn() -> Instant,
        context: &mut Context<'_>,
    ) -> Poll<Interrupted> {
        let is_registered = |waker: &Waker| is_same_task(waker, context.waker());
        if self.registered.as_ref().is_some_and(is_registered) && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        let until = until();
        let end = self.deadline.map_or(until, |deadline| deadline.min(until));
        if self.cancelled.poll_unpin(context).is_ready() {
            return Poll::Ready(Interrupted::Cancelled);
        }
        loop {
            let now = Instant::now();
            if self.cancellation.is_cancelled() {
                return Poll::Ready(Interrupted::Cancelled);
            }
            if now >= end {
                return Poll::Ready(match self.deadline {
                    Some(deadline) if deadline <= now => Interrupted::Deadline,
                    _ => Interrupted::TimedOut,
                });
            }
            let flag_interval = Duration::from_millis(Cancellation::FLAG_INTERVAL_MS);
            let next = if self.cancellation.has_flag() {
                end.min(now + flag_interval)
            } else {
                end
            };
            // A timer that fires early is only looked at again: reads push `until` on all the time.
            if self.timer.deadline() > next || self.timer.deadline() <= now {
                self.timer.as_mut().reset(next);
            }
            if self.timer.as_mut().poll(context).is_pending() {
                self.registered = Some(context.waker().clone());
                return Poll::Pending;
            }
        }
    }
}

/// Whether both wake the same task. By the data alone: `will_wake` also compares the addresses of the
/// tables, of which the compiler may make several for one runtime.
fn is_same_task(one: &Waker, other: &Waker) -> bool {
    one.will_wake(other) || !one.data().is_null() && one.data() == other.data()
}

impl Interrupted {
    /// The error, unless it is a timeout, which the caller names.
    pub(crate) fn into_error(self, timed_out: impl FnOnce() -> Error) -> Error {
        match self {
            Self::Cancelled => Error::new(ErrorKind::Cancelled, "the run was cancelled"),
            Self::Deadline => Error::new(ErrorKind::Timeout, "the deadline of the run passed")
                .with_context("timeout", "deadline"),
            Self::TimedOut => timed_out(),
        }
    }
}
