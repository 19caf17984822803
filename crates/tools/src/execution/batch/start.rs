//! What starts when: in call order, exclusive calls alone, within the bounds.

use std::sync::Arc;

use raf_core::TerminationCause;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use super::{Batch, BatchEvent, Held, QueuedCall, Running};
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
                self.start(*ready, permit);
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
        let task = async move {
            let end = body.await;
            drop(permit);
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
