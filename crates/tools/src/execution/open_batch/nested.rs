//! Answers to what a run nested in a call waits for: they are gathered, and enter the body once.

use raf_core::{
    ApprovalDecision, PendingCall, RefusalReason, ToolApprovalResponse, WaitsFor, canonical_json,
};
use serde_json::Value;

use super::{Applied, CallState, OpenBatch};
use crate::context::Resumption;

impl OpenBatch {
    /// Acts on an answer to a nested run; nothing if no call waits for that one.
    pub(super) fn apply_nested(
        &mut self,
        answer: &ToolApprovalResponse,
    ) -> Option<Result<Applied, RefusalReason>> {
        let names = |call: &PendingCall| {
            call.request_id() == Some(&answer.request_id)
                || call.address().as_ref() == Some(&answer.request_id)
        };
        for call in &mut self.calls {
            let (ready, state) = match &mut call.state {
                CallState::Ready(ready) => (ready, None),
                CallState::Interrupted {
                    ready, interrupt, ..
                } if !interrupt.nested.is_empty() => {
                    ready.nested.clone_from(&interrupt.nested);
                    (ready, Some(interrupt.state.clone()))
                }
                _ => continue,
            };
            let Some(index) = ready.nested.iter().position(names) else {
                continue;
            };
            let decision = answer.decision.as_ref();
            let Some(decision) = decision else {
                return Some(Ok(Applied::Nothing));
            };
            if let Err(reason) = fits(&ready.nested[index], answer, decision) {
                return Some(Err(reason));
            }
            let waited = ready.nested.remove(index);
            let request_id = waited.request_id().unwrap_or_default().to_owned();
            let mut answer = answer.clone();
            answer.request_id.clone_from(&request_id);
            let answer = serde_json::to_value(answer).unwrap_or_default();
            let resumption = ready.resumption.get_or_insert_with(|| {
                Resumption::new(state.clone().unwrap_or_default(), Value::Array(Vec::new()))
            });
            if let Some(state) = state {
                *resumption = Resumption::new(state, Value::Array(Vec::new()));
            }
            if let Value::Array(answers) = &mut resumption.data {
                answers.push(answer);
            }
            let occurrence = call.occurrence;
            if let CallState::Interrupted { ready, .. } = &call.state {
                call.state = CallState::Ready(ready.clone());
            }
            return Some(Ok(Applied::Routed {
                request_id,
                occurrence,
            }));
        }
        None
    }
}

/// Whether an answer can be one to what waits; the nested run itself looks closer.
fn fits(
    waits: &PendingCall,
    answer: &ToolApprovalResponse,
    decision: &ApprovalDecision,
) -> Result<(), RefusalReason> {
    match (&waits.waits_for, decision) {
        (_, ApprovalDecision::Malformed(_)) => Err(RefusalReason::Malformed),
        (WaitsFor::Approval(_), ApprovalDecision::Resume { .. })
        | (
            WaitsFor::Data { .. },
            ApprovalDecision::Approve | ApprovalDecision::ApproveEdited { .. },
        ) => Err(RefusalReason::WrongCategory),
        (WaitsFor::Approval(request), _) => match &answer.arguments {
            Some(shown) if canonical_json(shown) != canonical_json(&request.arguments) => {
                Err(RefusalReason::ArgsMismatch)
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}
