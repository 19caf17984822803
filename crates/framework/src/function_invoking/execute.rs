//! One batch: what was planned is done, what happens is emitted as it happens, and what it came to is
//! counted.

use std::collections::BTreeMap;

use raf_core::{
    AgentResponseUpdate, Content, FinishReason, Occurrence, PendingCall, SkipReason, ToolCallHead,
    ToolOutcome, WaitsFor,
};
use raf_tools::{
    Batch, BatchContext, BatchEvent, FinishedCall, QueuedCall, SettledCall, ToolExecutor,
};

use super::leg::{Leg, Stop};
use super::no_progress::{Repetition, RoundCalls, WARNING, round_calls};
use super::options::FunctionInvokingOptions;
use super::plan::{Action, BatchPlan};

/// What a batch came to.
pub(super) enum BatchEnd {
    /// The run goes on.
    GoOn,
    /// The leg ends.
    End(FinishReason),
    /// Something said stop; every call has its outcome.
    Stopped(Stop),
}

/// Runs a planned batch to its end.
pub(super) async fn execute(
    executor: &ToolExecutor,
    options: &FunctionInvokingOptions,
    leg: &mut Leg,
    plan: BatchPlan,
) -> BatchEnd {
    let calls = round_calls(plan.calls.iter().map(|planned| &planned.call));
    let mut queue = Vec::with_capacity(plan.calls.len());
    for planned in plan.calls {
        match planned.action {
            Action::Run(ready) => queue.push(QueuedCall::Ready(ready)),
            Action::Settle(settled) => queue.push(QueuedCall::Settled(settled)),
            Action::AwaitResult => leg.pending.push(PendingCall::new(
                planned.occurrence,
                planned.call,
                WaitsFor::ToolResult,
            )),
        }
    }
    let mut state = BatchState {
        hold: queue.last().map(occurrence_of).filter(|_| {
            leg.pending.is_empty() && leg.no_progress.may_warn(&calls, options.no_progress_rounds)
        }),
        held: None,
        finished: BTreeMap::new(),
    };
    let context = BatchContext::new(leg.run_id.clone(), leg.options.cancellation.child())
        .with_extensions(leg.options.extensions.clone());
    let mut batch = executor.batch(context, queue);
    let stopped = state.drive(&mut batch, leg, options).await;
    leg.abandoned.extend_from_slice(batch.abandoned());
    let repetition = state.count(leg, calls, options);
    if let Some(mut last) = state.held.take() {
        if repetition == Repetition::Warn {
            let mut content = last.result.content().to_vec();
            content.push(Content::text(WARNING));
            last.result = last.result.to_builder().content(content).build();
        }
        emit(leg, last).await;
    }
    if let Some(stop) = stopped {
        settle_pending(leg, stop.not_started()).await;
        return BatchEnd::Stopped(stop);
    }
    let termination = batch.termination().map(FinishReason::Terminated);
    let terminated = plan
        .end
        .as_ref()
        .filter(|end| matches!(end, FinishReason::Terminated(_)));
    if let Some(end) = termination.or_else(|| terminated.cloned()) {
        settle_pending(leg, ToolOutcome::skipped(SkipReason::Terminated)).await;
        return BatchEnd::End(end);
    }
    if !leg.pending.is_empty() {
        return BatchEnd::End(FinishReason::AwaitingToolResults);
    }
    if let Some(end) = plan.end {
        return BatchEnd::End(end);
    }
    if let Some(end) = leg.counters.failure_end(options) {
        return BatchEnd::End(end);
    }
    match repetition {
        Repetition::End => BatchEnd::End(FinishReason::NoProgress),
        Repetition::GoOn | Repetition::Warn => BatchEnd::GoOn,
    }
}

/// Gives the calls that would have waited their outcome, since the leg does not end in a pause (A2).
async fn settle_pending(leg: &mut Leg, outcome: ToolOutcome) {
    for pending in std::mem::take(&mut leg.pending) {
        let settled = SettledCall::new(pending.occurrence, &pending.call, outcome, None);
        leg.settle(settled).await;
    }
}

struct BatchState {
    /// The last call, if its result may have to carry a warning.
    hold: Option<Occurrence>,
    held: Option<FinishedCall>,
    finished: BTreeMap<Occurrence, Outcome>,
}

/// What is counted of a finished call.
struct Outcome {
    tool: String,
    outcome: ToolOutcome,
    digest: raf_tools::ResultDigest,
    polling: bool,
}

impl BatchState {
    async fn drive(
        &mut self,
        batch: &mut Batch,
        leg: &mut Leg,
        options: &FunctionInvokingOptions,
    ) -> Option<Stop> {
        let mut stopped = Box::pin(leg.stopped());
        let mut stop = None;
        loop {
            let event = tokio::select! {
                biased;
                cause = &mut stopped, if stop.is_none() => {
                    stop = Some(cause);
                    batch.cancel();
                    continue;
                }
                event = batch.next() => event,
            };
            match event {
                None => return stop,
                Some(BatchEvent::Started { occurrence, call }) => {
                    let call = Box::new(ToolCallHead::new(call.id(), call.name()));
                    leg.emit(AgentResponseUpdate::ToolStarted { occurrence, call })
                        .await;
                }
                Some(BatchEvent::Progress {
                    occurrence,
                    content,
                }) => {
                    let content = Box::new(content);
                    leg.emit(AgentResponseUpdate::ToolProgress {
                        occurrence,
                        content,
                    })
                    .await;
                }
                Some(BatchEvent::Finished(finished)) => {
                    self.finished(batch, leg, options, finished).await;
                }
                Some(other) => {
                    tracing::error!(?other, "an event of a batch that the loop does not know");
                }
            }
        }
    }

    async fn finished(
        &mut self,
        batch: &mut Batch,
        leg: &mut Leg,
        options: &FunctionInvokingOptions,
        finished: FinishedCall,
    ) {
        let outcome = finished.result.outcome();
        self.finished.insert(
            finished.occurrence,
            Outcome {
                tool: finished.call.name().to_owned(),
                outcome,
                digest: finished.digest,
                polling: finished.polling,
            },
        );
        if outcome.is_error() && leg.counters.would_end(self.results(), options) {
            batch.skip_queued(SkipReason::Limit);
        }
        if self.hold == Some(finished.occurrence) {
            self.held = Some(finished);
        } else {
            emit(leg, finished).await;
        }
    }

    fn results(&self) -> impl Iterator<Item = (&str, ToolOutcome)> {
        self.finished
            .values()
            .map(|finished| (finished.tool.as_str(), finished.outcome))
    }

    /// Counts the round, in call order.
    fn count(
        &self,
        leg: &mut Leg,
        calls: RoundCalls,
        options: &FunctionInvokingOptions,
    ) -> Repetition {
        leg.counters.count_round(self.results());
        let counts = self.finished.len() == calls.len()
            && self.finished.values().any(|call| call.outcome.is_ok())
            && !self.finished.values().any(|call| call.polling);
        if !counts {
            return Repetition::GoOn;
        }
        let digests = self.finished.values().map(|call| call.digest).collect();
        leg.no_progress
            .count(calls, digests, options.no_progress_rounds)
    }
}

fn occurrence_of(queued: &QueuedCall) -> Occurrence {
    match queued {
        QueuedCall::Ready(ready) => ready.occurrence,
        QueuedCall::Settled(settled) => settled.occurrence,
    }
}

async fn emit(leg: &mut Leg, finished: FinishedCall) {
    leg.emit(AgentResponseUpdate::ToolCalled {
        occurrence: finished.occurrence,
        result: finished.result,
    })
    .await;
}
