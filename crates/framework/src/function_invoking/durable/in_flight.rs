//! What is known of a batch that was in flight when its leg ended.

use std::collections::{BTreeMap, BTreeSet};

use raf_core::{
    CallStatus, ChatMessage, ClosedReason, Error, ErrorKind, Occurrence, Result, RunRecord,
    Settlement, StepEvent, ToolOutcome, ToolResult,
};
use raf_tools::{CallState, NestedReport, OpenBatch, ResultDigest, SettledCall, ToolSet};

use super::value::Outcome;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::steps::supported;

/// Starts and outcomes of the calls of a batch, by position.
#[derive(Debug, Default)]
pub(in crate::function_invoking) struct InFlight {
    pub(super) outcomes: BTreeMap<u32, Outcome>,
    started: BTreeSet<u32>,
    /// Calls that started and have no outcome, and whose body is known not to have been entered.
    pub(super) not_entered: Vec<u32>,
}

impl InFlight {
    /// Notes what happened, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] for what cannot be read.
    pub(in crate::function_invoking) fn note(&mut self, event: StepEvent) -> Result<()> {
        match event {
            StepEvent::Started(call) => {
                self.started.insert(call.position);
            }
            StepEvent::Ended { value, .. } => {
                let outcome: Outcome = serde_json::from_value(value).map_err(|error| {
                    Error::new(ErrorKind::Store, "the outcome of a call cannot be read")
                        .with_code("corrupt")
                        .with_source(error)
                })?;
                supported(outcome.format)?;
                self.settle(outcome);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes an outcome.
    pub(super) fn settle(&mut self, outcome: Outcome) {
        self.started.remove(&outcome.position);
        self.outcomes.insert(outcome.position, outcome);
    }

    /// A record was written that holds all of it.
    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
        self.started.clear();
    }

    /// Lays the outcomes over the calls of the record; the batch shows those that nobody was shown. What
    /// runs nested in these calls have used is to be counted at the run of the record.
    pub(in crate::function_invoking) fn lay_over(
        &mut self,
        leg: &mut Leg,
        record: &mut RunRecord,
    ) -> Vec<NestedReport> {
        let mut used = Vec::new();
        for (position, outcome) in std::mem::take(&mut self.outcomes) {
            let calls = &mut record.calls;
            let call = calls.iter_mut().find(|call| call.position == position);
            let is_open = |call: &&mut raf_core::CallRecord| {
                !matches!(call.status, CallStatus::Settled { .. })
            };
            let Some(call) = call.filter(is_open) else {
                continue;
            };
            used.push(outcome.used);
            if let Some(asks) = outcome.call {
                *call = *asks;
                continue;
            }
            let Some(result) = outcome.result else {
                continue;
            };
            call.status = CallStatus::Settled {
                outcome: result.outcome(),
                digest: outcome.digest,
                result: None,
            };
            let occurrence = Occurrence::new(record.round, position);
            if !is_shown(leg, occurrence) {
                leg.unshown.push((occurrence, result));
            }
        }
        used
    }

    /// Whether a call started and has no outcome.
    pub(in crate::function_invoking) fn has_started(&self, position: u32) -> bool {
        self.started.contains(&position) && !self.not_entered.contains(&position)
    }

    /// Says of each call that started and has no outcome what becomes of it: run with the same key if
    /// its tool is idempotent, its body was not entered or is a run of its own that goes on, else unknown.
    pub(in crate::function_invoking) fn settle_unknown(
        &self,
        batch: &mut OpenBatch,
        tools: &ToolSet,
        nested_journals: bool,
    ) {
        for call in batch.calls().to_vec() {
            let position = call.occurrence.position;
            if !self.has_started(position) {
                continue;
            }
            let body = tools.get(call.tool_name()).and_then(|entry| entry.body());
            let limits = body.map(|tool| tool.tool().limits());
            if limits.is_some_and(|limits| {
                limits.idempotent || (limits.self_resuming && nested_journals)
            }) {
                continue;
            }
            if !matches!(call.state, CallState::Ready(_)) {
                continue;
            }
            let outcome = ToolOutcome::Unknown;
            let settled = SettledCall::new(call.occurrence, &call.call, outcome, None);
            batch.set(call.occurrence, CallState::Settled(settled));
        }
    }
}

/// Takes from the transcript which calls of an interrupted batch were said not to have been started: who
/// settled them died before that was kept. They stay so: nobody may be told that a call had no effect, and then
/// have it run.
pub(super) fn settle_as_shown(leg: &Leg, record: &mut RunRecord) {
    let mut requests = Vec::new();
    for call in &mut record.calls {
        if matches!(call.status, CallStatus::Settled { .. }) {
            continue;
        }
        let occurrence = Occurrence::new(record.round, call.position);
        let Some(outcome) = shown(leg, occurrence).map(ToolResult::outcome) else {
            continue;
        };
        if !matches!(
            outcome,
            ToolOutcome::Cancelled { started: false } | ToolOutcome::Skipped { .. }
        ) {
            continue;
        }
        requests.extend(call.status.request_ids().map(str::to_owned));
        call.status = CallStatus::Settled {
            outcome,
            digest: ResultDigest::of(outcome, "").value(),
            result: None,
        };
    }
    for request_id in requests {
        record.settle(&request_id, Settlement::Closed(ClosedReason::Cancelled));
    }
}

/// Whether the transcript has the result of a call of its last reply that asks for calls.
fn is_shown(leg: &Leg, occurrence: Occurrence) -> bool {
    shown(leg, occurrence).is_some()
}

fn shown(leg: &Leg, occurrence: Occurrence) -> Option<&ToolResult> {
    let transcript = leg.input().iter().chain(leg.new_messages());
    let asks = |message: &&ChatMessage| message.tool_calls().next().is_some();
    transcript
        .rev()
        .take_while(|message| !asks(message))
        .flat_map(ChatMessage::tool_results)
        .find(|result| result.occurrence() == Some(occurrence))
}

/// Reports results again that a record has and nobody was shown: the leg that made them ended first.
pub(in crate::function_invoking) fn report_again(batch: &mut OpenBatch, leg: &Leg) {
    for call in batch.calls().to_vec() {
        if let CallState::Done(done) = &call.state
            && let Some(result) = &done.result
            && !is_shown(leg, call.occurrence)
        {
            let settled = SettledCall {
                occurrence: call.occurrence,
                call: call.call.clone(),
                result: result.clone(),
            };
            batch.set(call.occurrence, CallState::Settled(settled));
        }
    }
}
