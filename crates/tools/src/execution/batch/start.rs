//! What starts when: in call order, exclusive calls alone, within the bounds.

use std::sync::Arc;

use raf_core::TerminationCause;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use super::end::TaskEnd;
use super::keep::Keeper;
use super::{Batch, BatchEvent, Held, QueuedCall, Running, StartingCall};
use crate::context::ToolContext;
use crate::execution::body::{BodyLimits, run_body};
use crate::execution::invoke::Invocation;
use crate::execution::options::{ErrorPolicy, ExecutionMode};
use crate::execution::prepare::ReadyCall;
use crate::tool::ToolDeadline;

impl Batch {
    /// Starts what may start: in call order, exclusive calls alone, within the bounds.
    pub(super) fn start_ready(&mut self) {
        let mut index = 0;
        while self.stop_cause.is_none() && self.held != Held::All && index < self.queue.len() {
            let sequential = self.options.mode == ExecutionMode::Sequential;
            let busy = !self.running.is_empty() || !self.starting.is_empty();
            let exclusive = |ready: &ReadyCall| ready.tool.tool().limits().exclusive;
            let alone = self.running.values().any(|body| body.exclusive)
                || self.starting.iter().any(|(ready, _)| exclusive(ready));
            if alone || (sequential && (index > 0 || busy)) {
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
            if limits.exclusive && (index > 0 || busy) {
                return;
            }
            let counts = |ready: &ReadyCall| !ready.tool.tool().limits().agent_backed;
            let in_flight = self.running.values().filter(|body| body.counts).count()
                + self
                    .starting
                    .iter()
                    .filter(|(ready, _)| counts(ready))
                    .count();
            if !limits.agent_backed && in_flight >= self.options.max_concurrency {
                return;
            }
            let permit = match (limits.concurrency, limits.agent_backed) {
                (Some(bound), false) => {
                    if self.awaited.iter().any(|name| name == ready.tool.name()) {
                        index += 1;
                        continue;
                    }
                    let name = ready.tool.name().to_owned();
                    let permit = match self.granted.remove(&name) {
                        Some(permit) => Ok(permit),
                        None => self.permits.acquire(ready.tool.identity(), bound),
                    };
                    match permit {
                        Ok(permit) => Some(permit),
                        Err(wait) => {
                            self.awaited.push(name.clone());
                            self.waiting
                                .push(Box::pin(async move { (name, wait.await) }));
                            // Only this tool is at its bound: others may pass.
                            index += 1;
                            continue;
                        }
                    }
                }
                _ => None,
            };
            if let Some(QueuedCall::Ready(ready)) = self.queue.remove(index) {
                if self.context.recorder.is_some() {
                    self.starting.push((*ready, permit));
                } else {
                    self.start(*ready, permit);
                }
            }
        }
    }

    /// Says which bodies are about to be entered, once.
    pub(super) fn announce(&mut self) -> Option<BatchEvent> {
        if self.announced || self.starting.is_empty() {
            return None;
        }
        self.announced = true;
        let starting = |(ready, _): &(ReadyCall, _)| StartingCall {
            occurrence: ready.occurrence,
            attempt: ready.attempt,
            idempotent: ready.tool.tool().limits().idempotent,
        };
        let calls = self.starting.iter().map(starting).collect();
        Some(BatchEvent::Starting { calls })
    }

    /// Enters the bodies that were announced.
    pub(super) fn enter_announced(&mut self) {
        if std::mem::take(&mut self.announced) {
            for (ready, permit) in std::mem::take(&mut self.starting) {
                self.start(ready, permit);
            }
        }
    }

    /// Takes the calls whose bodies were not entered.
    pub(super) fn not_started(&mut self) -> Vec<QueuedCall> {
        let starting = std::mem::take(&mut self.starting).into_iter();
        let starting = starting.map(|(ready, _)| QueuedCall::Ready(Box::new(ready)));
        let mut calls: Vec<QueuedCall> = starting.collect();
        calls.extend(std::mem::take(&mut self.queue));
        calls
    }

    fn after_error_of_settled(&mut self) {
        if let Some(BatchEvent::Finished(finished)) = self.events.back() {
            let failed = finished.result.outcome().is_error();
            if failed && self.options.error_policy == ErrorPolicy::FailFast {
                self.terminate(TerminationCause::FailFast);
            }
        }
    }

    fn start(&mut self, ready: ReadyCall, permit: Option<OwnedSemaphorePermit>) {
        let ready = Arc::new(ready);
        let limits = ready.tool.tool().limits();
        let deadline = match limits.deadline {
            ToolDeadline::After(deadline) => Some(deadline),
            ToolDeadline::Inherit if !limits.agent_backed => self.options.deadline,
            ToolDeadline::Inherit | ToolDeadline::Never => None,
        };
        let occurrence = ready.occurrence;
        let stop = self.stop.child();
        let progress = Arc::clone(&self.progress);
        let updates = Arc::clone(&self.progress);
        let nested = Arc::default();
        let context = ToolContext::builder(ready.call.id(), ready.tool.name())
            .run_id(self.context.run_id.clone())
            .parent_run_id(self.context.parent_run_id.clone())
            .occurrence(occurrence)
            .attempt(ready.attempt)
            .cancellation(stop.clone())
            .extensions(self.context.extensions.clone())
            .resumption(ready.resumption.clone())
            .progress(move |content| progress.push(occurrence, content))
            .nested(
                move |update| updates.push_nested(occurrence, update),
                Arc::clone(&nested),
            )
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
            error.type = tracing::field::Empty,
        );
        let invocation = Invocation::new(
            Arc::clone(&ready),
            Arc::clone(&self.options),
            Arc::clone(&self.progress),
        );
        let entries = invocation.entries();
        let grace = self.options.grace;
        let body = run_body(invocation, context, stop, BodyLimits { deadline, grace });
        let keeper = self.context.recorder.clone().map(|recorder| Keeper {
            recorder,
            ready: Arc::clone(&ready),
            entries: Arc::clone(&entries),
            nested: Arc::clone(&nested),
            options: Arc::clone(&self.options),
        });
        let task = async move {
            let end = body.await;
            drop(permit);
            let end = match keeper {
                Some(keeper) => keeper.keep(end).await,
                None => TaskEnd::Body(end),
            };
            (occurrence, end)
        };
        // A subscriber of this scope alone reaches the body too.
        let task = task.instrument(span.clone()).with_current_subscriber();
        let abort = self.bodies.spawn(task);
        let running = Running {
            abort,
            give_up_at: deadline.and_then(|deadline| self.give_up_at(deadline)),
            span,
            counts: !limits.agent_backed,
            exclusive: limits.exclusive,
            entered: false,
            entries,
            nested,
            ready,
        };
        self.running.insert(occurrence, running);
    }
}
