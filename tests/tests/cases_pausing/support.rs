//! What the tests here share.

use raf_core::{ErrorKind, FinishReason, ToolApprovalResponse};
use raf_tests::Leg;
use raf_tests::pausing::Ledger;
use serde_json::json;

/// Checks that a leg paused for these calls: `c1 approval`, `c2 data`, …
#[track_caller]
pub(crate) fn assert_paused(leg: &Leg, waiting: &[&str]) {
    assert_eq!(*leg.reason(), FinishReason::AwaitingApproval);
    assert_eq!(Ledger::waiting(leg), waiting);
}

/// Checks that a leg ended well and nothing waits.
#[track_caller]
pub(crate) fn assert_completed(leg: &Leg) {
    assert_eq!(*leg.reason(), FinishReason::Stop);
    assert!(leg.pending().is_empty());
}

/// Checks that a leg was refused for this reason, made no model request, entered no body, and still
/// waits for these calls.
#[track_caller]
pub(crate) fn assert_refused(leg: &Leg, reason: &str, waiting: &[&str]) {
    assert_eq!(
        leg.error_kind(),
        ErrorKind::ApprovalRefused,
        "{:?}",
        leg.error()
    );
    assert_eq!(leg.error().code(), Some(reason));
    assert_eq!(Ledger::waiting(leg), waiting);
    assert!(leg.requests().is_empty(), "a model request was made");
    assert!(leg.entries.is_empty(), "a body was entered");
    assert!(leg.messages().is_empty(), "{:?}", leg.lines());
}

/// The JSON form of an answer with any decision.
pub(crate) fn answer_of_json(id: &str, decision: &serde_json::Value) -> ToolApprovalResponse {
    serde_json::from_value(json!({"request_id": id, "decision": decision}))
        .expect("any decision can be read")
}
