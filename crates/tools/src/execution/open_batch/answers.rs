//! What an answer does to a call that waits (contract E3, E5, E6).

use raf_core::{
    ApprovalDecision, Occurrence, RefusalReason, ToolApprovalResponse, ToolOutcome, canonical_json,
};
use serde_json::Value;

use super::records::address_of;
use super::{CallState, OpenBatch};
use crate::context::Resumption;
use crate::error::Interrupt;
use crate::execution::prepare::{ReadyCall, SettledCall};

impl OpenBatch {
    /// Acts on an answer.
    ///
    /// # Errors
    /// Why it does not fit; the call stays as it was (contract E3).
    pub fn apply(&mut self, answer: &ToolApprovalResponse) -> Result<Applied, RefusalReason> {
        if let Some(applied) = self.apply_nested(answer) {
            return applied;
        }
        let address = answer.request_id.as_str();
        let found = self.calls.iter_mut().find(|call| match &call.state {
            CallState::Gated {
                request: Some(request),
                ..
            } => request.request_id == address,
            CallState::Interrupted { interrupt, .. } if !interrupt.nested.is_empty() => false,
            CallState::Interrupted {
                request_id, ready, ..
            } => request_id == address || address_of(&self.run_id, ready, request_id) == address,
            _ => false,
        });
        let Some(call) = found else {
            return Err(RefusalReason::UnknownRequest);
        };
        let Some(decision) = &answer.decision else {
            return Ok(Applied::Nothing);
        };
        let occurrence = call.occurrence;
        let (request_id, state) = match (&call.state, decision) {
            (_, ApprovalDecision::Malformed(_)) => return Err(RefusalReason::Malformed),
            (CallState::Gated { ready, .. } | CallState::Interrupted { ready, .. }, _)
                if shows_other_arguments(answer, ready) =>
            {
                return Err(RefusalReason::ArgsMismatch);
            }
            (CallState::Gated { ready, request, .. }, decision) => {
                let request_id = request.as_ref().map(|request| request.request_id.clone());
                (request_id, decide(ready, decision)?)
            }
            (
                CallState::Interrupted {
                    ready,
                    request_id,
                    interrupt,
                },
                decision,
            ) => {
                let state = resume(ready, interrupt, decision)?;
                (Some(request_id.clone()), state)
            }
            _ => return Err(RefusalReason::UnknownRequest),
        };
        let started = match state {
            CallState::Ready(_) => true,
            CallState::Settled(_) => false,
            _ => return Ok(Applied::Nothing),
        };
        call.state = state;
        Ok(Applied::Settled {
            request_id: request_id.unwrap_or_default(),
            occurrence,
            approved: started,
        })
    }
}

/// Whether an answer says that it is about other arguments than the recorded ones.
fn shows_other_arguments(answer: &ToolApprovalResponse, ready: &ReadyCall) -> bool {
    let recorded = Value::Object(ready.arguments.clone());
    let shown = answer.arguments.as_ref();
    shown.is_some_and(|shown| canonical_json(shown) != canonical_json(&recorded))
}

/// What an answer did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// It decides nothing.
    Nothing,
    /// It settled the request.
    Settled {
        /// The request's own id.
        request_id: String,
        /// The call.
        occurrence: Occurrence,
        /// Whether the body is to be entered.
        approved: bool,
    },
    /// It goes to a run nested in a call, which looks at it: the body is to be entered.
    Routed {
        /// The request's own id.
        request_id: String,
        /// The call.
        occurrence: Occurrence,
    },
}

/// What a decision makes of a gated call. The schema is looked at again, and can only tighten.
fn decide(ready: &ReadyCall, decision: &ApprovalDecision) -> Result<CallState, RefusalReason> {
    match decision {
        ApprovalDecision::Approve => {
            let recorded = Value::Object(ready.arguments.clone());
            if ready.tool.schema().faults(&recorded).is_empty() {
                let mut ready = ready.clone();
                ready.approved = true;
                ready.decided = true;
                return Ok(CallState::Ready(Box::new(ready)));
            }
            Ok(denied(
                ready,
                "Rejected: the approved arguments no longer fit the tool.".to_owned(),
            ))
        }
        ApprovalDecision::ApproveEdited { arguments } => {
            let Value::Object(edited) = arguments else {
                return Err(RefusalReason::Malformed);
            };
            if !ready.tool.schema().faults(arguments).is_empty() {
                return Err(RefusalReason::Malformed);
            }
            let mut ready = ready.clone();
            ready.approved = true;
            ready.decided = true;
            ready.edited = *edited != ready.arguments;
            ready.arguments.clone_from(edited);
            Ok(CallState::Ready(Box::new(ready)))
        }
        ApprovalDecision::Deny { reason } => Ok(denied(ready, rejection(reason.as_deref()))),
        _ => Err(RefusalReason::WrongCategory),
    }
}

/// What a decision makes of a call that asked for data.
fn resume(
    ready: &ReadyCall,
    interrupt: &Interrupt,
    decision: &ApprovalDecision,
) -> Result<CallState, RefusalReason> {
    match decision {
        ApprovalDecision::Resume { data } => {
            let mut ready = ready.clone();
            ready.resumption = Some(
                Resumption::new(interrupt.state.clone(), data.clone())
                    .with_middleware(ready.asked_around),
            );
            Ok(CallState::Ready(Box::new(ready)))
        }
        ApprovalDecision::Deny { reason } => Ok(denied(ready, rejection(reason.as_deref()))),
        _ => Err(RefusalReason::WrongCategory),
    }
}

/// What the model reads of a denial.
pub fn rejection(reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("Rejected: {reason}"),
        None => ToolOutcome::Denied.default_text().to_owned(),
    }
}

fn denied(ready: &ReadyCall, text: String) -> CallState {
    let outcome = ToolOutcome::Denied;
    CallState::Settled(SettledCall::new(
        ready.occurrence,
        &ready.call,
        outcome,
        Some(text),
    ))
}

/// The note behind a result of edited arguments: the transcript keeps the model's call, the result
/// says what ran (contract E6).
pub(in crate::execution) fn edited_note(ready: &ReadyCall) -> String {
    let arguments = canonical_json(&Value::Object(ready.arguments.clone()));
    let shown: String = arguments.chars().take(1_000).collect();
    format!("\n[A person edited the arguments; these ran: {shown}]")
}
