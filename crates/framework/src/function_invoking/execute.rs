//! One batch: what may run is run, what happens is emitted as it happens, and what it came to is
//! counted; or the leg pauses with what waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use raf_core::{
    AgentResponseUpdate, BudgetLimit, ClosedReason, ErrorKind, Extensions, FinishReason,
    InterruptNotice, Result, Settlement, SkipReason, ToolCallHead, ToolOutcome,
};
use raf_tools::{
    Batch, BatchCall, BatchContext, BatchEvent, CallState, HoldPolicy, OpenBatch, ToolExecutor,
    address_of,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::durable::{self, OutcomeRecorder};
use super::leg::Leg;
use super::no_progress::{Repetition, round_calls};
use super::options::FunctionInvokingOptions;
use super::outer_run::{Allowance, OuterRun};
use super::pause;
use super::plan::BatchPlan;
use super::records::{self, Saving};
use super::run::Stop;
use super::warning::Warning;

/// What a batch came to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BatchEnd {
    /// The run goes on.
    GoOn,
    /// The leg ends.
    End(FinishReason),
    /// Calls wait for the outside.
    Pause(FinishReason),
    /// Something said stop; every call has its outcome.
    Stopped(Stop),
}

/// Runs a planned batch to its end, or to its pause. With `superseded`, what is still undecided when
/// the rest has run gives way to a new message of the user.
///
/// # Errors
/// What the store fails with.
pub(super) async fn execute(
    executor: &ToolExecutor,
    options: &FunctionInvokingOptions,
    leg: &mut Leg,
    plan: BatchPlan,
    superseded: bool,
    recorder: Option<Arc<OutcomeRecorder>>,
) -> Result<BatchEnd> {
    let BatchPlan { mut batch, mut end } = plan;
    // A leg that was dropped behind its batch has counted it.
    let counted = leg.run.counters.has_counted(batch.round());
    let hold = HoldPolicy {
        mode: options.execution.mode,
        whole_batch: options.hold_whole_batch,
    };
    let mut warning = Warning::foresee(&batch, leg, options);
    for (occurrence, result) in std::mem::take(&mut leg.unshown) {
        warning.emit_or_hold(leg, occurrence, result).await;
    }
    let mut context = BatchContext::new(leg.run.id.clone(), leg.options.cancellation.child())
        .with_parent_run_id(leg.parent_run_id().cloned())
        .with_extensions(extensions(&batch, leg, options));
    if let Some(recorder) = &recorder {
        context = context.with_recorder(recorder.clone());
    }
    let recorder = recorder.as_deref();
    let steered = steered(executor, options);
    let executor = steered.as_ref().unwrap_or(executor);
    loop {
        let runnable = batch.runnable(hold);
        if runnable.is_empty() {
            break;
        }
        if leg.is_out_of_time(options) {
            let outcome = ToolOutcome::skipped(SkipReason::Limit);
            settle_rest(&mut batch, leg, outcome, ClosedReason::Cancelled).await;
            end.get_or_insert(FinishReason::Budget(BudgetLimit::WallTime));
            break;
        }
        let mut bodies = executor.batch(context.clone(), runnable);
        let stopped = drive(
            &mut bodies,
            &mut batch,
            &mut warning,
            leg,
            options,
            recorder,
        )
        .await?;
        leg.abandoned.extend_from_slice(bodies.abandoned());
        if let Some(stop) = stopped {
            warning.release(leg).await;
            settle_rest(&mut batch, leg, stop.not_started(), ClosedReason::Cancelled).await;
            count(&batch, leg, options);
            return Ok(BatchEnd::Stopped(stop));
        }
        if let Some(cause) = bodies.termination() {
            warning.release(leg).await;
            let outcome = ToolOutcome::skipped(SkipReason::Terminated);
            settle_rest(&mut batch, leg, outcome, ClosedReason::Cancelled).await;
            count(&batch, leg, options);
            return Ok(BatchEnd::End(FinishReason::Terminated(cause)));
        }
    }
    if superseded {
        let outcome = ToolOutcome::skipped(SkipReason::Superseded);
        settle_rest(&mut batch, leg, outcome, ClosedReason::Superseded).await;
    }
    if let Some(FinishReason::Terminated(cause)) = end {
        let outcome = ToolOutcome::skipped(SkipReason::Terminated);
        settle_rest(&mut batch, leg, outcome, ClosedReason::Cancelled).await;
        return Ok(BatchEnd::End(FinishReason::Terminated(cause)));
    }
    if !batch.is_done() {
        leg.run.batch_end = end;
        return Ok(BatchEnd::Pause(
            pause::pause(&mut batch, leg, options).await?,
        ));
    }
    let repetition = if counted {
        Repetition::GoOn
    } else {
        count(&batch, leg, options)
    };
    if repetition == Repetition::Warn {
        warning.append();
    }
    warning.release(leg).await;
    if leg.run.record.is_some() {
        records::save(leg, &batch, Saving::Done).await?;
    }
    if let Some(end) = end {
        return Ok(BatchEnd::End(end));
    }
    if let Some(end) = leg.run.counters.failure_end(options) {
        return Ok(BatchEnd::End(end));
    }
    Ok(match repetition {
        Repetition::End => BatchEnd::End(FinishReason::NoProgress),
        Repetition::GoOn | Repetition::Warn => BatchEnd::GoOn,
    })
}

/// The executor as a leg that was taken up began with it, if that makes a difference.
fn steered(executor: &ToolExecutor, options: &FunctionInvokingOptions) -> Option<ToolExecutor> {
    let (mode, bound) = (options.execution.mode, options.execution.max_concurrency);
    let own = executor.options();
    let differs = (own.mode, own.max_concurrency) != (mode, bound);
    differs.then(|| executor.with_mode(mode, bound))
}

/// What the bodies of a batch see: agents among them also what the run lends them.
fn extensions(batch: &OpenBatch, leg: &Leg, options: &FunctionInvokingOptions) -> Extensions {
    let mut extensions = leg.options.extensions.clone();
    let is_agent = |call: &BatchCall| {
        matches!(&call.state, CallState::Ready(ready) | CallState::Gated { ready, .. }
            if ready.tool.tool().limits().agent_backed)
    };
    if batch.calls().iter().any(is_agent) {
        let until = options
            .max_wall_time
            .and_then(|limit| Instant::now().checked_add(limit.saturating_sub(leg.worked_for())));
        let calls = leg.run.counters.calls_left(options);
        let outer = leg.allowance().cloned();
        extensions.insert(OuterRun {
            allowance: Arc::new(Allowance::new(calls, until, outer)),
            store: Arc::clone(&leg.store),
            durable: leg.is_durable().then(|| leg.durable_run()),
            session_id: leg.options.session_id.clone(),
        });
    }
    extensions
}

/// Gives every call that has no outcome one, and closes its request: the batch does not pause (A2).
async fn settle_rest(
    batch: &mut OpenBatch,
    leg: &mut Leg,
    outcome: ToolOutcome,
    reason: ClosedReason,
) {
    for record in batch.to_records(None) {
        for request_id in record.status.request_ids() {
            if let Some(kept) = &mut leg.run.record {
                kept.settle(request_id, Settlement::Closed(reason));
            }
            leg.emit(AgentResponseUpdate::ToolApprovalClosed {
                request_id: request_id.into(),
                reason,
            })
            .await;
        }
    }
    for settled in batch.settle_rest(outcome) {
        leg.settle(settled).await;
    }
}

/// Drives the bodies to their end; says what told them to stop, if anything did.
async fn drive(
    bodies: &mut Batch,
    batch: &mut OpenBatch,
    warning: &mut Warning,
    leg: &mut Leg,
    options: &FunctionInvokingOptions,
    recorder: Option<&OutcomeRecorder>,
) -> Result<Option<Stop>> {
    let mut stopped = Box::pin(leg.stopped());
    let mut stop = None;
    // A save that failed: what runs comes to its end, in hand, and nothing more begins (contract I6).
    let mut unsaved = None;
    // What runs nested in a call have used, until its outcome is kept: it belongs to that.
    let mut used = BTreeMap::new();
    let mut limited = false;
    loop {
        if stop.is_none() {
            stop = leg.stop();
            if stop.is_some() {
                bodies.cancel();
            }
        }
        let event = tokio::select! {
            biased;
            event = bodies.next() => event,
            cause = &mut stopped, if stop.is_none() => {
                stop = Some(cause);
                bodies.cancel();
                continue;
            }
        };
        let Some(event) = event else {
            return unsaved.map_or(Ok(stop), Err);
        };
        batch.note(&event, false);
        if let BatchEvent::Interrupted { ready, .. } = &event
            && let used = used.remove(&ready.occurrence).unwrap_or_default()
            && let Some((error, asks)) = durable::lost_question(recorder, batch, ready, used).await
        {
            durable::keep_in_hand(leg, ready.occurrence.round, asks);
            if error.kind() != ErrorKind::Store {
                return Err(error);
            }
            bodies.skip_queued(SkipReason::Limit);
            unsaved.get_or_insert(error);
            continue;
        }
        match event {
            BatchEvent::Starting { calls } => {
                let Some(recorder) = recorder else { continue };
                if let Err(error) = recorder.started(&calls).await {
                    // It may have been kept: then the journal says that these have started.
                    durable::not_entered(leg, calls.iter().map(|call| call.occurrence));
                    if error.kind() != ErrorKind::Store {
                        return Err(error);
                    }
                    bodies.skip_queued(SkipReason::Limit);
                    unsaved = Some(error);
                }
            }
            BatchEvent::Started { occurrence, call } => {
                let call = Box::new(ToolCallHead::new(call.id(), call.name()));
                leg.emit(AgentResponseUpdate::ToolStarted { occurrence, call })
                    .await;
            }
            BatchEvent::Progress {
                occurrence,
                content,
            } => {
                let content = Box::new(content);
                leg.emit(AgentResponseUpdate::ToolProgress {
                    occurrence,
                    content,
                })
                .await;
            }
            BatchEvent::Nested { occurrence, nested } => {
                let nested = Box::new(nested);
                leg.emit(AgentResponseUpdate::Nested { occurrence, nested })
                    .await;
            }
            BatchEvent::LeftOpen { error, .. } => {
                // It stays in flight: the leg that takes the run up enters it again.
                if error.kind() != ErrorKind::Store {
                    return Err(error);
                }
                bodies.skip_queued(SkipReason::Limit);
                unsaved.get_or_insert(error);
            }
            BatchEvent::NestedUsed { occurrence, report } => {
                used.insert(occurrence, report.clone());
                leg.count_nested(report);
            }
            BatchEvent::Finished(finished) => {
                let skipped = finished.result.outcome() == ToolOutcome::skipped(SkipReason::Limit);
                if unsaved.is_some() && skipped && !limited {
                    // It begins in the leg that saves what is in hand.
                    continue;
                }
                let used = used.remove(&finished.occurrence).unwrap_or_default();
                if let Some((error, outcome)) = durable::lost(recorder, &finished, used).await {
                    durable::keep_in_hand(leg, finished.occurrence.round, outcome);
                    if error.kind() != ErrorKind::Store {
                        return Err(error);
                    }
                    bodies.skip_queued(SkipReason::Limit);
                    unsaved.get_or_insert(error);
                    continue;
                }
                let failed = finished.result.outcome().is_error();
                let limit = failed && leg.run.counters.would_end(results(batch), options);
                if limit || leg.is_out_of_time(options) {
                    bodies.skip_queued(SkipReason::Limit);
                    limited = true;
                }
                warning
                    .emit_or_hold(leg, finished.occurrence, finished.result)
                    .await;
            }
            // What the nested run asks was announced by itself.
            BatchEvent::Interrupted { interrupt, .. } if !interrupt.nested.is_empty() => {}
            BatchEvent::Interrupted {
                ready,
                interrupt,
                request_id,
            } => {
                let notice = InterruptNotice {
                    address: address_of(&leg.run.id, &ready, &request_id),
                    request_id,
                    information: interrupt.information,
                };
                leg.emit(AgentResponseUpdate::ToolInterrupted {
                    occurrence: ready.occurrence,
                    interrupt: Box::new(notice),
                })
                .await;
            }
            other => tracing::error!(?other, "an event of a batch that the loop does not know"),
        }
    }
}

/// Tool and outcome of each call that has one, in call order.
fn results(batch: &OpenBatch) -> impl Iterator<Item = (&str, ToolOutcome)> {
    batch
        .outcomes()
        .map(|(call, done)| (call.tool_name(), done.outcome))
}

/// Counts a round whose calls all have their outcome, in call order.
fn count(batch: &OpenBatch, leg: &mut Leg, options: &FunctionInvokingOptions) -> Repetition {
    leg.run.counters.count_round(results(batch));
    leg.run.counters.set_counted(batch.round());
    let counts = batch.outcomes().any(|(_, done)| done.outcome.is_ok())
        && !batch.outcomes().any(|(_, done)| done.polling);
    if !counts {
        return Repetition::GoOn;
    }
    let calls = round_calls(batch.calls());
    let digests = batch.digests().into_values().collect();
    leg.run
        .no_progress
        .count(calls, digests, options.no_progress_rounds)
}
