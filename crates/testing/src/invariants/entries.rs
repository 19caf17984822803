//! Bodies are entered once per call (V2), and gated ones only after a yes (V3).

use std::collections::HashSet;

use raf_core::{ApprovalDecision, ApprovalRequest, ToolApprovalResponse};

use crate::tools::RecordedCall;

/// No body was entered twice for the same call and attempt, and attempts count up from 1.
///
/// Give it the entries of all tools of the test: `log.calls()`, joined.
pub fn check_entries(entries: &[RecordedCall]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = HashSet::new();
    for entry in entries {
        if !seen.insert((&entry.run_id, entry.occurrence, entry.attempt)) {
            faults.push(format!(
                "the body was entered twice for call '{}' at {} of run {}, attempt {}",
                entry.call_id, entry.occurrence, entry.run_id, entry.attempt
            ));
        }
    }
    for entry in entries {
        let before = (
            &entry.run_id,
            entry.occurrence,
            entry.attempt.wrapping_sub(1),
        );
        if entry.attempt == 0 || (entry.attempt > 1 && !seen.contains(&before)) {
            faults.push(format!(
                "the body was entered for call '{}' at {} as attempt {}, without the one before",
                entry.call_id, entry.occurrence, entry.attempt
            ));
        }
    }
    faults
}

/// Each entry of a gated body has a request of its own that was answered with a yes.
///
/// Give it the entries of the gated tools, the requests that were announced and the answers that
/// were given in the whole test.
pub fn check_gated_entries(
    entries: &[RecordedCall],
    requests: &[ApprovalRequest],
    answers: &[ToolApprovalResponse],
) -> Vec<String> {
    let mut faults = Vec::new();
    for entry in entries {
        let request = requests.iter().find(|request| {
            request.run_id == entry.run_id && request.occurrence == entry.occurrence
        });
        let Some(request) = request else {
            faults.push(format!(
                "the gated body was entered for call '{}' at {}, and nobody was asked",
                entry.call_id, entry.occurrence
            ));
            continue;
        };
        let own = answers
            .iter()
            .filter(|answer| answer.request_id == request.request_id);
        let mut agreed = own.filter_map(|answer| match &answer.decision {
            Some(ApprovalDecision::Approve) => Some(&request.arguments),
            Some(ApprovalDecision::ApproveEdited { arguments }) => Some(arguments),
            _ => None,
        });
        if !agreed.any(|arguments| arguments.as_object() == Some(&entry.arguments)) {
            faults.push(format!(
                "the gated body was entered for call '{}' at {}, and nobody said yes to what ran",
                entry.call_id, entry.occurrence
            ));
        }
    }
    faults
}
