//! A batch of calls in flight: starts bodies in order and within bounds, reports what happens.
//!
//! The batch owns its bodies: a `JoinSet`, so that dropping it aborts them. This is the only place of
//! raf that spawns.

mod end;
mod event;
mod keep;
mod start;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use raf_core::{AbandonedCall, Cancellation, Occurrence, SkipReason, TerminationCause};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tracing::Span;

use crate::context::NestedReport;

use self::end::TaskEnd;
pub use self::event::{
    BatchContext, BatchEvent, FinishedCall, ICallRecorder, QueuedCall, StartingCall,
};
use super::invoke::Entries;
use super::options::ExecutionOptions;
use super::permits::ToolPermits;
use super::prepare::{ReadyCall, SettledCall};
use super::progress::{Piece, Progress};
use super::render::StopCause;
use super::stopping::cancelled;

/// How long after the end of deadline and grace a body that blocks its thread is given up.
const BACKSTOP: Duration = Duration::from_millis(250);

/// A batch in flight.
#[derive(Debug)]
pub struct Batch {
    context: BatchContext,
    options: Arc<ExecutionOptions>,
    permits: Arc<ToolPermits>,
    /// Stops with the run, or alone.
    stop: Cancellation,
    stop_cause: Option<StopCause>,
    termination: Option<TerminationCause>,
    queue: VecDeque<QueuedCall>,
    /// What is about to start, once that is kept.
    starting: Vec<(ReadyCall, Option<OwnedSemaphorePermit>)>,
    /// Whether it was said that they are.
    announced: bool,
    running: BTreeMap<Occurrence, Running>,
    bodies: JoinSet<(Occurrence, TaskEnd)>,
    waiting: FuturesUnordered<BoxFuture<'static, (String, OwnedSemaphorePermit)>>,
    awaited: Vec<String>,
    granted: BTreeMap<String, OwnedSemaphorePermit>,
    progress: Arc<Progress>,
    events: VecDeque<BatchEvent>,
    abandoned: Vec<AbandonedCall>,
    held: Held,
}

/// What does not start any more because a call before it waits for the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    ExclusiveCalls,
    All,
}

#[derive(Debug)]
struct Running {
    ready: Arc<ReadyCall>,
    /// What becomes of its body.
    entries: Arc<Mutex<Entries>>,
    /// What runs nested in it have used.
    nested: Arc<Mutex<NestedReport>>,
    abort: AbortHandle,
    give_up_at: Option<Instant>,
    /// Its `execute_tool` span.
    span: Span,
    counts: bool,
    exclusive: bool,
    /// Whether the body was entered, and not only its middleware.
    entered: bool,
}

impl Batch {
    pub(super) fn new(
        context: BatchContext,
        options: Arc<ExecutionOptions>,
        permits: Arc<ToolPermits>,
        calls: Vec<QueuedCall>,
    ) -> Self {
        Self {
            stop: context.cancellation.child(),
            context,
            options,
            permits,
            stop_cause: None,
            termination: None,
            queue: calls.into(),
            starting: Vec::new(),
            announced: false,
            running: BTreeMap::new(),
            bodies: JoinSet::new(),
            waiting: FuturesUnordered::new(),
            awaited: Vec::new(),
            granted: BTreeMap::new(),
            progress: Arc::default(),
            events: VecDeque::new(),
            abandoned: Vec::new(),
            held: Held::Nothing,
        }
    }

    /// The next thing that happens; `None` when every call has its outcome, waits for the outside,
    /// or is held behind one that does.
    ///
    /// Cancel-safe: what has happened is not lost when the future is dropped.
    pub async fn next(&mut self) -> Option<BatchEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            self.show_progress();
            if self.stop_cause.is_none() && self.stop.is_cancelled() {
                self.begin_stop(StopCause::Cancelled);
            }
            self.enter_announced();
            self.start_ready();
            if !self.events.is_empty() {
                continue;
            }
            if let Some(starting) = self.announce() {
                return Some(starting);
            }
            if self.running.is_empty() && (self.queue.is_empty() || self.held == Held::All) {
                return None;
            }
            let give_up_at = self
                .running
                .values()
                .filter_map(|body| body.give_up_at)
                .min();
            let backstop = async {
                match give_up_at {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(joined) = self.bodies.join_next(), if !self.bodies.is_empty() => {
                    self.joined(joined);
                }
                () = self.progress.changed() => {}
                Some((tool, permit)) = self.waiting.next(), if !self.waiting.is_empty() => {
                    self.awaited.retain(|name| *name != tool);
                    self.granted.insert(tool, permit);
                }
                () = cancelled(&self.stop), if self.stop_cause.is_none() => {}
                () = backstop => self.give_up(Instant::now()),
            }
        }
    }

    /// Tells running bodies to stop and starts none any more: the outcome of those that give up is
    /// cancelled.
    pub fn cancel(&mut self) {
        self.begin_stop(StopCause::Cancelled);
    }

    /// Ends the batch: running bodies are told to stop, the rest is skipped as terminated.
    pub fn terminate(&mut self, cause: TerminationCause) {
        self.termination.get_or_insert(cause);
        self.begin_stop(StopCause::Terminated);
    }

    /// Skips what has not started; what runs goes on.
    pub fn skip_queued(&mut self, reason: SkipReason) {
        for queued in self.not_started() {
            let settled = match queued {
                QueuedCall::Settled(settled) => settled,
                QueuedCall::Ready(ready) => {
                    SettledCall::skipped(ready.occurrence, &ready.call, reason)
                }
            };
            self.report(settled);
        }
    }

    /// Why the batch was ended, if it was.
    pub fn termination(&self) -> Option<TerminationCause> {
        self.termination
    }

    /// The bodies that did not end within their grace.
    pub fn abandoned(&self) -> &[AbandonedCall] {
        &self.abandoned
    }

    fn begin_stop(&mut self, cause: StopCause) {
        if self.stop_cause.is_some() {
            return;
        }
        self.stop_cause = Some(cause);
        self.stop.cancel();
        let give_up_at = self.give_up_at(Duration::ZERO);
        for body in self.running.values_mut() {
            body.give_up_at = give_up_at;
        }
        for queued in self.not_started() {
            let settled = match queued {
                QueuedCall::Settled(settled) => settled,
                QueuedCall::Ready(ready) => {
                    SettledCall::new(ready.occurrence, &ready.call, cause.not_started(), None)
                }
            };
            self.report(settled);
        }
    }

    fn show_progress(&mut self) {
        while let Some((occurrence, piece)) = self.progress.pop() {
            // What a body says after its outcome (from a clone of its context) is not shown.
            let Some(body) = self.running.get_mut(&occurrence) else {
                continue;
            };
            body.entered |= matches!(piece, Piece::Entered);
            self.events.push_back(match piece {
                Piece::Entered => BatchEvent::Started {
                    occurrence,
                    call: body.ready.call.clone(),
                },
                Piece::Said(content) => BatchEvent::Progress {
                    occurrence,
                    content,
                },
                Piece::Nested(nested) => BatchEvent::Nested { occurrence, nested },
            });
        }
    }

    fn report(&mut self, settled: SettledCall) {
        let finished = FinishedCall::from_settled(settled);
        self.events.push_back(BatchEvent::Finished(finished));
    }

    /// When a body that may take this long, and then its grace, is given up; `None` is never.
    fn give_up_at(&self, wait: Duration) -> Option<Instant> {
        let whole = wait
            .saturating_add(self.options.grace)
            .saturating_add(BACKSTOP);
        Instant::now().checked_add(whole)
    }
}
