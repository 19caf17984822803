//! A batch of calls in flight: starts bodies in order and within bounds, reports what happens.
//!
//! The batch owns its bodies: a `JoinSet`, so that dropping it aborts them. This is the only place of
//! raf that spawns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use raf_core::{
    AbandonedCall, Cancellation, Content, Extensions, Occurrence, RunId, SkipReason,
    TerminationCause, ToolCall, ToolErrorClass, ToolOutcome, ToolResult,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::Instrument;

use super::body::{BodyEnd, BodyLimits, panic_message, run_body};
use super::digest::ResultDigest;
use super::invoke::Invocation;
use super::options::{ErrorPolicy, ExecutionMode, ExecutionOptions};
use super::permits::ToolPermits;
use super::prepare::{ReadyCall, SettledCall};
use super::progress::{Piece, Progress};
use super::render::{BodyOutcome, Rendered, StopCause, render};
use super::stopping::cancelled;
use crate::context::ToolContext;
use crate::error::Interrupt;
use crate::tool::ToolDeadline;

/// How long after the end of deadline and grace a body that blocks its thread is given up.
const BACKSTOP: Duration = Duration::from_millis(250);

/// What a batch belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchContext {
    /// The run.
    pub run_id: RunId,
    /// The run that it is nested in.
    pub parent_run_id: Option<RunId>,
    /// What stops it.
    pub cancellation: Cancellation,
    /// Per-run things that tools may read.
    pub extensions: Extensions,
}

impl BatchContext {
    /// A batch of a run.
    pub fn new(run_id: RunId, cancellation: Cancellation) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            cancellation,
            extensions: Extensions::new(),
        }
    }

    /// Sets the per-run things that tools may read.
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// Sets the run that the run is nested in.
    pub fn with_parent_run_id(mut self, parent: Option<RunId>) -> Self {
        self.parent_run_id = parent;
        self
    }
}

/// What happens in a batch.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// A body is being entered.
    Started {
        /// Which call.
        occurrence: Occurrence,
        /// As the model made it.
        call: ToolCall,
    },
    /// A running body says something.
    Progress {
        /// Which call.
        occurrence: Occurrence,
        /// What it says.
        content: Content,
    },
    /// A call has its outcome.
    Finished(FinishedCall),
    /// A body waits for the outside.
    Interrupted {
        /// The call, to be entered again with the answer.
        ready: Box<ReadyCall>,
        /// What it says, and what it wants to find again.
        interrupt: Interrupt,
        /// A random id by which an answer names it.
        request_id: String,
    },
}

/// A call that has its outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedCall {
    /// Which call.
    pub occurrence: Occurrence,
    /// As the model made it.
    pub call: ToolCall,
    /// What became of it.
    pub result: ToolResult,
    /// The fingerprint of the result before it was rendered.
    pub digest: ResultDigest,
    /// Whether equal calls of this tool are a way to wait.
    pub polling: bool,
}

/// One item of the queue.
#[derive(Debug)]
pub enum QueuedCall {
    /// A body to run.
    Ready(Box<ReadyCall>),
    /// An outcome to report in its turn.
    Settled(SettledCall),
}

/// A batch in flight.
#[derive(Debug)]
pub struct Batch {
    context: BatchContext,
    options: ExecutionOptions,
    permits: Arc<ToolPermits>,
    /// Stops with the run, or alone.
    stop: Cancellation,
    stop_cause: Option<StopCause>,
    termination: Option<TerminationCause>,
    queue: VecDeque<QueuedCall>,
    running: BTreeMap<Occurrence, Running>,
    bodies: JoinSet<(Occurrence, BodyEnd)>,
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
    ready: Box<ReadyCall>,
    abort: AbortHandle,
    give_up_at: Option<Instant>,
    counts: bool,
    exclusive: bool,
    /// Whether the body was entered, and not only its middleware.
    entered: bool,
}

impl Batch {
    pub(super) fn new(
        context: BatchContext,
        options: ExecutionOptions,
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
            self.start_ready();
            if !self.events.is_empty() {
                continue;
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
        for queued in std::mem::take(&mut self.queue) {
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
        let give_up_at = Instant::now() + self.options.grace + BACKSTOP;
        for body in self.running.values_mut() {
            body.give_up_at = Some(give_up_at);
        }
        for queued in std::mem::take(&mut self.queue) {
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
            });
        }
    }

    /// Starts what may start: in call order, exclusive calls alone, within the bounds.
    fn start_ready(&mut self) {
        let mut index = 0;
        while self.stop_cause.is_none() && self.held != Held::All && index < self.queue.len() {
            let sequential = self.options.mode == ExecutionMode::Sequential;
            let alone = self.running.values().any(|body| body.exclusive);
            if alone || (sequential && (index > 0 || !self.running.is_empty())) {
                return;
            }
            let QueuedCall::Ready(ready) = &self.queue[index] else {
                if let Some(QueuedCall::Settled(settled)) = self.queue.remove(index) {
                    self.report(settled);
                    self.after_error_of_settled();
                }
                continue;
            };
            let limits = ready.tool.tool().limits();
            if limits.exclusive && self.held == Held::ExclusiveCalls {
                self.held = Held::All;
                return;
            }
            if limits.exclusive && (index > 0 || !self.running.is_empty()) {
                return;
            }
            let in_flight = self.running.values().filter(|body| body.counts).count();
            if !limits.agent_backed && in_flight >= self.options.max_concurrency {
                return;
            }
            let permit = match (limits.concurrency, limits.agent_backed) {
                (Some(bound), false) => {
                    let name = ready.tool.name().to_owned();
                    let permit = match self.granted.remove(&name) {
                        Some(permit) => Ok(permit),
                        None => self.permits.acquire(&name, bound),
                    };
                    match permit {
                        Ok(permit) => Some(permit),
                        Err(wait) => {
                            if !self.awaited.contains(&name) {
                                self.awaited.push(name.clone());
                                self.waiting
                                    .push(Box::pin(async move { (name, wait.await) }));
                            }
                            // Only this tool is at its bound: others may pass.
                            index += 1;
                            continue;
                        }
                    }
                }
                _ => None,
            };
            if let Some(QueuedCall::Ready(ready)) = self.queue.remove(index) {
                self.start(ready, permit);
            }
        }
    }

    fn after_error_of_settled(&mut self) {
        if let Some(BatchEvent::Finished(finished)) = self.events.back() {
            let failed = finished.result.outcome().is_error();
            if failed && self.options.error_policy == ErrorPolicy::FailFast {
                self.terminate(TerminationCause::FailFast);
            }
        }
    }

    fn start(&mut self, ready: Box<ReadyCall>, permit: Option<OwnedSemaphorePermit>) {
        let limits = ready.tool.tool().limits();
        let deadline = match limits.deadline {
            ToolDeadline::After(deadline) => Some(deadline),
            ToolDeadline::Inherit if !limits.agent_backed => self.options.deadline,
            ToolDeadline::Inherit | ToolDeadline::Never => None,
        };
        let occurrence = ready.occurrence;
        let stop = self.stop.child();
        let progress = Arc::clone(&self.progress);
        let entered = Arc::clone(&self.progress);
        let context = ToolContext::builder(ready.call.id(), ready.tool.name())
            .run_id(self.context.run_id.clone())
            .parent_run_id(self.context.parent_run_id.clone())
            .occurrence(occurrence)
            .attempt(ready.attempt)
            .cancellation(stop.clone())
            .extensions(self.context.extensions.clone())
            .resumption(ready.resumption.clone())
            .progress(move |content| progress.push(occurrence, content))
            .build();
        // OpenTelemetry GenAI semantic conventions, "Execute tool span".
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = format!("execute_tool {}", ready.tool.name()),
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = ready.tool.name(),
            gen_ai.tool.call.id = ready.call.id(),
            raf.run.id = self.context.run_id.as_str(),
            raf.tool.outcome = tracing::field::Empty,
        );
        let invocation = Invocation::new(ready.clone(), &self.options, move || {
            entered.entered(occurrence);
        });
        let grace = self.options.grace;
        let body = run_body(invocation, context, stop, BodyLimits { deadline, grace });
        let task = async move {
            let end = body.await;
            drop(permit);
            (occurrence, end)
        };
        let abort = self.bodies.spawn(task.instrument(span));
        let running = Running {
            abort,
            give_up_at: deadline
                .map(|deadline| Instant::now() + deadline + self.options.grace + BACKSTOP),
            counts: !limits.agent_backed,
            exclusive: limits.exclusive,
            entered: false,
            ready,
        };
        self.running.insert(occurrence, running);
    }

    fn joined(&mut self, joined: Result<(Occurrence, BodyEnd), JoinError>) {
        match joined {
            Ok((occurrence, end)) => self.settle(occurrence, end),
            // The wrapper catches panics of the body: what is left is a runtime that shuts down,
            // the abort of a body that was given up, or a panic while the body was dropped.
            Err(error) => {
                let ended = self
                    .running
                    .iter()
                    .find(|(_, body)| body.abort.id() == error.id())
                    .map(|(occurrence, _)| *occurrence);
                let end = match error.try_into_panic() {
                    Ok(payload) => BodyEnd::Panicked(panic_message(&*payload)),
                    Err(_) => BodyEnd::Abandoned,
                };
                if let Some(occurrence) = ended {
                    self.settle(occurrence, end);
                }
            }
        }
    }

    fn settle(&mut self, occurrence: Occurrence, end: BodyEnd) {
        // A body that was given up has its outcome.
        if !self.running.contains_key(&occurrence) {
            return;
        }
        self.show_progress();
        let Some(body) = self.running.remove(&occurrence) else {
            return;
        };
        if matches!(end, BodyEnd::Abandoned) {
            self.abandoned.push(AbandonedCall {
                occurrence,
                call: body.ready.call.clone(),
            });
        }
        if let (BodyEnd::NeverEntered, Some(cause)) = (&end, self.stop_cause) {
            let ready = &body.ready;
            let outcome = cause.not_started();
            self.report(SettledCall::new(occurrence, &ready.call, outcome, None));
            return;
        }
        match render(&body.ready, end, body.entered, &self.options) {
            BodyOutcome::Interrupted(interrupt) => {
                let ready = body.ready;
                let in_order = self.options.mode == ExecutionMode::Sequential || body.exclusive;
                self.held = if in_order || self.held == Held::All {
                    Held::All
                } else {
                    Held::ExclusiveCalls
                };
                let request_id = RunId::random().to_string();
                self.events.push_back(BatchEvent::Interrupted {
                    ready,
                    interrupt,
                    request_id,
                });
            }
            BodyOutcome::Settled(rendered) => self.finish(&body.ready, rendered),
        }
    }

    fn finish(&mut self, ready: &ReadyCall, rendered: Rendered) {
        let failed = rendered.result.outcome().is_error();
        self.events.push_back(BatchEvent::Finished(FinishedCall {
            occurrence: ready.occurrence,
            call: ready.call.clone(),
            result: rendered.result,
            digest: rendered.digest,
            polling: ready.tool.tool().limits().polling,
        }));
        if let Some(cause) = rendered.termination {
            self.terminate(cause);
        } else if failed && self.options.error_policy == ErrorPolicy::FailFast {
            self.terminate(TerminationCause::FailFast);
        }
    }

    /// Gives up bodies that block their thread beyond deadline and grace.
    fn give_up(&mut self, now: Instant) {
        self.show_progress();
        let late: Vec<Occurrence> = self
            .running
            .iter()
            .filter(|(_, body)| body.give_up_at.is_some_and(|instant| instant <= now))
            .map(|(occurrence, _)| *occurrence)
            .collect();
        for occurrence in late {
            let Some(body) = self.running.remove(&occurrence) else {
                continue;
            };
            body.abort.abort();
            let call = body.ready.call.clone();
            self.abandoned.push(AbandonedCall { occurrence, call });
            let end = match self.stop_cause {
                Some(_) => BodyEnd::Abandoned,
                None => BodyEnd::TimedOut,
            };
            if let BodyOutcome::Settled(rendered) =
                render(&body.ready, end, body.entered, &self.options)
            {
                self.finish(&body.ready, rendered);
            }
        }
    }

    fn report(&mut self, settled: SettledCall) {
        let outcome = settled.result.outcome();
        let text = match outcome {
            ToolOutcome::Error(ToolErrorClass::InvalidArguments) => settled.result.text(),
            _ => String::new(),
        };
        self.events.push_back(BatchEvent::Finished(FinishedCall {
            occurrence: settled.occurrence,
            call: settled.call,
            digest: ResultDigest::of(outcome, &text),
            result: settled.result,
            polling: false,
        }));
    }
}
