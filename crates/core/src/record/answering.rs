//! Whether an answer can be kept for a run: what a store asks before a leg looks closer.

use super::RunRecord;
use crate::approval::{
    ApprovalDecision, PendingCall, RefusalReason, ToolApprovalResponse, WaitsFor,
};
use crate::json::canonical_json;

impl RunRecord {
    /// Why a store refuses to keep an answer, by its request id; `None` if it fits what waits. The
    /// leg that acts on it looks closer: at edited arguments and at the policies.
    ///
    /// An answer that decides nothing is refused as malformed: there is nothing to keep.
    pub fn refusal_of(&self, answer: &ToolApprovalResponse, now_ms: u64) -> Option<RefusalReason> {
        let request_id = answer.request_id.as_str();
        if let Some(settlement) = self.settlement(request_id) {
            return Some(settlement.refusal());
        }
        let pending = self.pending();
        let waits = pending
            .iter()
            .find(|call| call.request_id() == Some(request_id));
        match (waits, &answer.decision) {
            _ if self.closed => Some(RefusalReason::Stale),
            (None, _) => Some(RefusalReason::UnknownRequest),
            (_, None | Some(ApprovalDecision::Malformed(_))) => Some(RefusalReason::Malformed),
            (Some(waits), Some(decision)) => misfit(waits, answer, decision, now_ms),
        }
    }

    /// Until when somebody may answer, in milliseconds since 1970 began: the end of the last request's
    /// time if everything that waits has one.
    pub fn answerable_until_ms(&self) -> Option<u64> {
        let pending = self.pending();
        let ends = pending.iter().filter_map(|call| match &call.waits_for {
            WaitsFor::EarlierCall => None,
            WaitsFor::Approval(request) => Some(request.expires_at_ms),
            WaitsFor::ToolResult | WaitsFor::Data { .. } => Some(None),
        });
        let ends: Option<Vec<u64>> = ends.collect();
        ends?.into_iter().max()
    }
}

fn misfit(
    waits: &PendingCall,
    answer: &ToolApprovalResponse,
    decision: &ApprovalDecision,
    now_ms: u64,
) -> Option<RefusalReason> {
    match (&waits.waits_for, decision) {
        (WaitsFor::Approval(request), _) if request.is_expired(now_ms) => {
            Some(RefusalReason::Stale)
        }
        (WaitsFor::Approval(_), ApprovalDecision::Resume { .. })
        | (
            WaitsFor::Data { .. },
            ApprovalDecision::Approve | ApprovalDecision::ApproveEdited { .. },
        ) => Some(RefusalReason::WrongCategory),
        (WaitsFor::Approval(_), ApprovalDecision::ApproveEdited { arguments })
            if !arguments.is_object() =>
        {
            Some(RefusalReason::Malformed)
        }
        (WaitsFor::Approval(request), _) => {
            let shown = answer.arguments.as_ref();
            shown
                .is_some_and(|shown| canonical_json(shown) != canonical_json(&request.arguments))
                .then_some(RefusalReason::ArgsMismatch)
        }
        _ => None,
    }
}
