//! A conversation that is ahead of the journal by one reply: its owner died behind the end of the reply's
//! message and before the write that would have kept it.
//!
//! A text is the answer: the run has its end. Calls are not run, for no record says that the model asked for
//! them (contract I3); they are settled as not started, and the model is asked again.

use std::collections::BTreeSet;

use raf_core::{
    AgentResponseUpdate, CallRecord, CallStatus, ChatMessage, FinishReason, MessageStatus,
    Occurrence, Result, RunRecord, SkipReason, ToolCall, ToolOutcome, ToolResult,
};
use raf_tools::SettledCall;

use super::Beginning;
use super::find::shown_calls;
use crate::function_invoking::durable::{Beyond, Recovered};
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::plan::{self, ReplyKind};
use crate::function_invoking::records;
use crate::function_invoking::steps::RunEnd;

/// The reply that is ahead of an interrupted run and what stands behind it, if it can be this run's.
///
/// # Errors
/// What the store fails with.
pub(super) async fn reply_ahead(
    leg: &Leg,
    recovered: &Recovered,
    record: &RunRecord,
) -> Result<Option<Vec<ChatMessage>>> {
    match &recovered.beyond {
        Beyond::Reply(ahead) if is_own(leg, recovered, record).await? => Ok(Some(ahead.clone())),
        _ => Ok(None),
    }
}

/// Whether what stands behind the journal can be of the run: no request is made before all calls of the
/// last reply have their outcome, and no other run of the session may have made it.
async fn is_own(leg: &Leg, recovered: &Recovered, record: &RunRecord) -> Result<bool> {
    let is_settled = |call: &CallRecord| matches!(call.status, CallStatus::Settled { .. });
    if !record.calls.iter().all(is_settled) || !recovered.used.is_empty() {
        return Ok(false);
    }
    let Some(session) = &record.session_id else {
        return Ok(true);
    };
    let open = leg.store.list_open(Some(session)).await?;
    let is_rival = |other: &RunRecord| {
        other.run_id != record.run_id
            && (other.working || shown_calls(leg.input(), other).is_some())
    };
    Ok(!open.iter().any(is_rival))
}

/// Goes on behind it, in the round after the one that it took.
///
/// # Errors
/// A record that this version cannot read.
pub(super) async fn go_on(
    leg: &mut Leg,
    record: RunRecord,
    ahead: &[ChatMessage],
    options: &FunctionInvokingOptions,
) -> Result<Beginning> {
    leg.run = records::restore(record)?;
    leg.first_request = false;
    let last = options.wrap_up && leg.run.counters.is_last_round(options);
    if let Some(answer) = answer(ahead) {
        leg.run.counters.rounds += 1;
        let end = if last {
            FinishReason::MaxRounds
        } else {
            answer
        };
        return Ok(Beginning::Ended(RunEnd::Finished(end)));
    }
    settle(leg, ahead).await;
    leg.run.counters.rounds += 1;
    records::begin_round_again(leg);
    Ok(Beginning::Continue)
}

/// Settles the calls of a reply that a run has left behind with the conversation.
///
/// # Errors
/// What the store fails with.
pub(super) async fn settle_left_behind(
    leg: &mut Leg,
    recovered: &Recovered,
    record: &RunRecord,
) -> Result<()> {
    if let Beyond::MovedOn(ahead) = &recovered.beyond
        && is_own(leg, recovered, record).await?
    {
        settle(leg, ahead).await;
    }
    Ok(())
}

/// Settles what was in flight when the owner of a run died that the conversation has left behind: what the
/// journal has is told, what had started is unknown, the rest gave way.
pub(super) async fn settle_in_flight(leg: &mut Leg, recovered: &Recovered, record: &RunRecord) {
    for (occurrence, result) in std::mem::take(&mut leg.unshown) {
        leg.emit(AgentResponseUpdate::ToolCalled { occurrence, result })
            .await;
    }
    if !recovered.interrupted {
        return;
    }
    for call in &record.calls {
        if matches!(call.status, CallStatus::Settled { .. }) {
            continue;
        }
        let outcome = if recovered.in_flight.has_started(call.position) {
            ToolOutcome::Unknown
        } else {
            ToolOutcome::skipped(SkipReason::Superseded)
        };
        let occurrence = Occurrence::new(record.round, call.position);
        leg.settle(SettledCall::new(occurrence, &call.call, outcome, None))
            .await;
    }
}

/// Gives the calls of the reply that have no result theirs: they were not started.
async fn settle(leg: &mut Leg, ahead: &[ChatMessage]) {
    let reply = ahead.first().into_iter();
    let calls: Vec<ToolCall> = reply.flat_map(ChatMessage::tool_calls).cloned().collect();
    let results = ahead.iter().flat_map(ChatMessage::tool_results);
    let places = results.filter_map(ToolResult::occurrence);
    let settled: BTreeSet<u32> = places.map(|place| place.position).collect();
    let outcome = ToolOutcome::Cancelled { started: false };
    for call in plan::unfinished_reply(&calls, leg.run.counters.rounds, outcome) {
        if !settled.contains(&call.occurrence.position) {
            leg.settle(call).await;
        }
    }
}

/// How a run ends with these messages, if they are one whole answer.
pub(super) fn answer(ahead: &[ChatMessage]) -> Option<FinishReason> {
    let [reply] = ahead else { return None };
    if reply.status() != MessageStatus::Complete {
        return None;
    }
    match plan::classify(reply.contents(), &FinishReason::Stop, None, None) {
        ReplyKind::Answer(end) => Some(end),
        _ => None,
    }
}
