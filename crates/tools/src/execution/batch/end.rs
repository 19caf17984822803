//! How bodies end: joined, given up, rendered, reported.

use std::sync::{Arc, PoisonError};

use raf_core::{AbandonedCall, Occurrence, RunId, TerminationCause, ToolOutcome};
use tokio::task::JoinError;
use tokio::time::Instant;
use tracing::Span;

use super::{Batch, BatchEvent, FinishedCall, Held, Running};
use crate::execution::body::{BodyEnd, panic_message};
use crate::execution::invoke::lock;
use crate::execution::options::{ErrorPolicy, ExecutionMode};
use crate::execution::prepare::{ReadyCall, SettledCall};
use crate::execution::render::{BodyOutcome, Rendered, render};

/// Writes to the span of a call what became of it.
fn tell_outcome(span: &Span, outcome: ToolOutcome) {
    span.record("raf.tool.outcome", outcome.as_str());
    if let ToolOutcome::Error(class) = outcome {
        span.record("error.type", class.as_str());
    }
}

/// What the task of a body comes to.
#[derive(Debug)]
pub(super) enum TaskEnd {
    /// The end of its body.
    Body(BodyEnd),
    /// Its outcome, which it has offered to the recorder.
    Outcome(Box<FinishedCall>, Option<TerminationCause>),
}

impl Batch {
    pub(super) fn joined(&mut self, joined: Result<(Occurrence, TaskEnd), JoinError>) {
        match joined {
            Ok((occurrence, TaskEnd::Body(end))) => self.settle(occurrence, end),
            Ok((occurrence, TaskEnd::Outcome(finished, termination))) => {
                self.outcome(occurrence, *finished, termination);
            }
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
        self.show_nested_use(occurrence, &body);
        if matches!(end, BodyEnd::Abandoned) {
            self.abandoned.push(AbandonedCall {
                occurrence,
                call: body.ready.call.clone(),
            });
        }
        if let (BodyEnd::NeverEntered, Some(cause)) = (&end, self.stop_cause) {
            let ready = &body.ready;
            let outcome = cause.not_started();
            tell_outcome(&body.span, outcome);
            self.report(SettledCall::new(occurrence, &ready.call, outcome, None));
            return;
        }
        let mut entries = std::mem::take(&mut *lock(&body.entries));
        let ready = body.ready.ran(&mut entries, &end);
        match render(&ready, end, body.entered, &self.options) {
            BodyOutcome::Interrupted(interrupt) => {
                body.span.record("raf.tool.outcome", "interrupted");
                let ready = Arc::unwrap_or_clone(ready).interrupted(&entries);
                let in_order = self.options.mode == ExecutionMode::Sequential || body.exclusive;
                self.held = if in_order || self.held == Held::All {
                    Held::All
                } else {
                    Held::ExclusiveCalls
                };
                let request_id = RunId::random().to_string();
                self.events.push_back(BatchEvent::Interrupted {
                    ready: Box::new(ready),
                    interrupt,
                    request_id,
                });
            }
            BodyOutcome::LeftOpen(error) => {
                body.span.record("raf.tool.outcome", "left_open");
                self.held = Held::All;
                let event = BatchEvent::LeftOpen { occurrence, error };
                self.events.push_back(event);
            }
            BodyOutcome::Settled(rendered) => {
                tell_outcome(&body.span, rendered.result.outcome());
                self.finish(&ready, rendered);
            }
        }
    }

    /// An outcome that the task of the body has made.
    fn outcome(
        &mut self,
        occurrence: Occurrence,
        finished: FinishedCall,
        termination: Option<TerminationCause>,
    ) {
        self.show_progress();
        let Some(body) = self.running.remove(&occurrence) else {
            return;
        };
        self.show_nested_use(occurrence, &body);
        tell_outcome(&body.span, finished.result.outcome());
        self.finished(finished, termination);
    }

    fn finish(&mut self, ready: &ReadyCall, rendered: Rendered) {
        let (finished, termination) = FinishedCall::of_body(ready, rendered);
        self.finished(finished, termination);
    }

    fn finished(&mut self, finished: FinishedCall, termination: Option<TerminationCause>) {
        let failed = finished.result.outcome().is_error();
        self.events.push_back(BatchEvent::Finished(finished));
        if let Some(cause) = termination {
            self.terminate(cause);
        } else if failed && self.options.error_policy == ErrorPolicy::FailFast {
            self.terminate(TerminationCause::FailFast);
        }
    }

    /// Tells what a nested run has used: kept with the body, read when it ends.
    fn show_nested_use(&mut self, occurrence: Occurrence, body: &Running) {
        let report =
            std::mem::take(&mut *body.nested.lock().unwrap_or_else(PoisonError::into_inner));
        if !report.is_empty() {
            let event = BatchEvent::NestedUsed { occurrence, report };
            self.events.push_back(event);
        }
    }

    /// Gives up bodies that block their thread beyond deadline and grace.
    pub(super) fn give_up(&mut self, now: Instant) {
        self.show_progress();
        // A body that has ended is keeping its outcome.
        for body in self.running.values_mut() {
            if lock(&body.entries).ended {
                body.give_up_at = None;
            }
        }
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
            self.show_nested_use(occurrence, &body);
            let call = body.ready.call.clone();
            self.abandoned.push(AbandonedCall { occurrence, call });
            let end = match self.stop_cause {
                Some(_) => BodyEnd::Abandoned,
                None => BodyEnd::TimedOut,
            };
            if let BodyOutcome::Settled(rendered) =
                render(&body.ready, end, body.entered, &self.options)
            {
                tell_outcome(&body.span, rendered.result.outcome());
                self.finish(&body.ready, rendered);
            }
        }
    }
}
