//! What the answers of a leg come to: each is matched with the record, then acted on, before anything
//! is written.

use raf_core::{
    ApprovalDecision, ApprovalRule, ApprovalScope, CallStatus, RefusalReason, Result, RunRecord,
    Settlement, ToolApprovalResponse, ToolCall, ToolResult, canonical_json,
};
use raf_tools::{Applied, BatchCall, CallState, OpenBatch, SettledCall};
use serde_json::Value;

use super::find::Shown;
use super::refusal_of;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::pause::now_ms;
use crate::function_invoking::policy::{self, PolicyFacts};

/// What the answers of a leg come to, before anything is written.
pub(super) struct Step {
    pub(super) record: RunRecord,
    /// The batch as recorded.
    before: OpenBatch,
    pub(super) acted: bool,
    pub(super) refusals: Vec<(String, RefusalReason)>,
    pub(super) denied: Vec<(String, String)>,
    pub(super) remember: Vec<ApprovalRule>,
    /// Answers that name no request of this run.
    foreign: Vec<String>,
}

impl Step {
    pub(super) fn new(record: RunRecord, before: OpenBatch) -> Self {
        Self {
            record,
            before,
            acted: false,
            refusals: Vec::new(),
            denied: Vec::new(),
            remember: Vec::new(),
            foreign: Vec::new(),
        }
    }

    pub(super) fn answer(
        &mut self,
        batch: &mut OpenBatch,
        answer: &ToolApprovalResponse,
        shown: Option<&Shown>,
        facts: PolicyFacts<'_>,
    ) {
        let Some(decision) = &answer.decision else {
            return;
        };
        let request_id = answer.request_id.clone();
        if let Some(settlement) = self.record.settlement(&request_id) {
            self.refusals.push((request_id, settlement.refusal()));
            return;
        }
        if let Some(recorded) = self.record.open_request(&request_id) {
            if let CallStatus::AwaitingApproval { request } = &recorded.status
                && request.is_expired(now_ms())
            {
                self.refusals.push((request_id, RefusalReason::Stale));
                return;
            }
            let call = shown.and_then(|shown| shown.calls.get(recorded.position as usize));
            if !call.is_some_and(|call| is_same_call(call, &recorded.call)) {
                self.refusals
                    .push((request_id, RefusalReason::ArgsMismatch));
                return;
            }
        }
        match batch.apply(answer) {
            Ok(Applied::Settled {
                request_id,
                occurrence,
                approved,
            }) => {
                self.settled(&request_id, answer);
                if approved {
                    self.approved(batch, occurrence, answer, facts);
                } else if matches!(decision, ApprovalDecision::Deny { .. }) {
                    self.denied(occurrence);
                }
            }
            Ok(Applied::Routed { request_id, .. }) => self.settled(&request_id, answer),
            Ok(_) => {}
            Err(RefusalReason::UnknownRequest) => self.foreign.push(request_id),
            Err(reason) => self.refusals.push((request_id, reason)),
        }
    }

    /// Notes that a request is answered, under its id and the name that the answer used: an address.
    fn settled(&mut self, request_id: &str, answer: &ToolApprovalResponse) {
        self.acted = true;
        self.record.settle(request_id, Settlement::Answered);
        self.record.settle(&answer.request_id, Settlement::Answered);
    }

    /// A policy can take back what was approved; a wider yes becomes a rule.
    fn approved(
        &mut self,
        batch: &mut OpenBatch,
        occurrence: raf_core::Occurrence,
        answer: &ToolApprovalResponse,
        facts: PolicyFacts<'_>,
    ) {
        let call = batch
            .calls()
            .iter()
            .find(|call| call.occurrence == occurrence);
        let Some(CallState::Ready(ready)) = call.map(|call| call.state.clone()) else {
            return;
        };
        if let Some(text) = policy::tightens(&ready, facts) {
            let outcome = raf_core::ToolOutcome::Denied;
            let settled = SettledCall::new(occurrence, &ready.call, outcome, Some(text));
            batch.set(occurrence, CallState::Settled(settled));
            return;
        }
        if let Some(remember) = answer.remember {
            self.remember.push(ApprovalRule {
                tool: ready.tool.name().to_owned(),
                arguments: match remember {
                    ApprovalScope::ArgumentsInSession => Some(policy::canonical(&ready)),
                    _ => None,
                },
            });
        }
    }

    fn denied(&mut self, occurrence: raf_core::Occurrence) {
        let call = self
            .before
            .calls()
            .iter()
            .find(|call| call.occurrence == occurrence);
        if let Some(CallState::Gated { ready, .. }) = call.map(|call| &call.state) {
            let tool = ready.tool.name().to_owned();
            self.denied.push((tool, policy::canonical(ready)));
        }
    }

    /// Results that the caller gives: those of declared-only tools settle their calls, one for a call
    /// that waits for a decision is of the wrong category (contract I4).
    pub(super) fn results_of_caller(&mut self, batch: &mut OpenBatch, shown: &Shown) {
        let mut results: Vec<&ToolResult> = shown.results.iter().collect();
        let mut take = |call: &BatchCall| {
            let given = results
                .iter()
                .position(|result| result.call_id() == call.call.id())?;
            Some(results.remove(given))
        };
        // Ids are labels that calls may share: who waits for a result comes first.
        let waits = |call: &&BatchCall| matches!(call.state, CallState::DeclaredOnly);
        for call in self.before.calls().iter().filter(waits) {
            if let Some(result) = take(call) {
                batch.answered_by_caller(call.occurrence, result);
                self.acted = true;
            }
        }
        let undecided = |call: &&BatchCall| call.state.is_undecided();
        for call in self.before.calls().iter().filter(undecided) {
            if take(call).is_none() {
                continue;
            }
            let record = self.record.calls.get(call.occurrence.position as usize);
            if let Some(request_id) = record.and_then(|call| call.status.request_id()) {
                let refusal = (request_id.to_owned(), RefusalReason::WrongCategory);
                self.refusals.push(refusal);
            }
        }
    }

    /// Answers that belong to other runs or to none.
    pub(super) async fn elsewhere(&mut self, leg: &Leg) -> Result<()> {
        for request_id in std::mem::take(&mut self.foreign) {
            let reason = match refusal_of(leg, &request_id).await? {
                // Open, yet of another conversation.
                RefusalReason::ArgsMismatch => RefusalReason::UnknownRequest,
                other => other,
            };
            self.refusals.push((request_id, reason));
        }
        Ok(())
    }

    /// Whether the record holds calls that an earlier leg left in the middle: bodies without an
    /// outcome, approved calls that were not run.
    pub(super) fn has_unfinished(&self) -> bool {
        let hold = raf_tools::HoldPolicy {
            mode: raf_tools::ExecutionMode::Parallel,
            whole_batch: false,
        };
        self.record
            .calls
            .iter()
            .any(|call| matches!(call.status, CallStatus::Started))
            && !self.before.runnable(hold).is_empty()
    }
}

/// Whether two calls ask for the same thing.
fn is_same_call(shown: &ToolCall, recorded: &ToolCall) -> bool {
    let arguments = |call: &ToolCall| match call.parsed_arguments() {
        Ok(arguments) => canonical_json(&Value::Object(arguments.clone())),
        Err(_) => call.arguments().to_owned(),
    };
    shown.name() == recorded.name() && arguments(shown) == arguments(recorded)
}
