//! What the person decides in a leg, and the results that the caller gives.

use raf_core::{ChatMessage, ToolApprovalResponse, ToolResult};
use serde_json::json;

use super::player::{CannotGoOn, Player};
use crate::format::{Always, Answer, Ordered};
use crate::load::LegPlan;

type Answers = (Vec<ToolApprovalResponse>, Vec<ChatMessage>);

/// The answers of a leg, and the results that the caller gives.
pub(crate) fn answers(player: &mut Player<'_>, plan: &LegPlan) -> Result<Answers, CannotGoOn> {
    let mut answers = Vec::new();
    let mut results = Vec::new();
    for (label, answer) in plan.step.decide.iter().flat_map(Ordered::iter) {
        if let Answer::Result(text) = answer {
            results.push(ChatMessage::tool(ToolResult::ok(label, text)));
            continue;
        }
        let literal = label.strip_prefix("id:").map(str::to_owned);
        let Some(id) = literal.or_else(|| player.ledger.request_of(label)) else {
            let text = format!(
                "nothing was asked about '{label}' so far; an id that was never given is written \
                 `id:…`"
            );
            player.fault(plan.line, text);
            return Err(CannotGoOn);
        };
        match answer {
            Answer::Null => answers.push(of_json(&id, &json!(null))),
            Answer::Approve => answers.push(ToolApprovalResponse::approve(id)),
            Answer::Deny(reason) => answers.push(ToolApprovalResponse::deny(id, reason)),
            Answer::Edit(arguments) => {
                answers.push(ToolApprovalResponse::approve_edited(id, arguments.clone()));
            }
            Answer::ApproveSeen(arguments) => {
                let yes = ToolApprovalResponse::approve(id);
                answers.push(yes.with_arguments(arguments.clone()));
            }
            Answer::Resume(data) => answers.push(ToolApprovalResponse::resume(id, data.clone())),
            Answer::Malformed(value) => answers.push(of_json(&id, value)),
            Answer::Times(times) => {
                let yes = ToolApprovalResponse::approve(id);
                answers.extend(std::iter::repeat_n(yes, *times));
            }
            Answer::Always(scope) => {
                let scope = match scope {
                    Always::Tool => raf_core::ApprovalScope::ToolInSession,
                    Always::Arguments => raf_core::ApprovalScope::ArgumentsInSession,
                };
                answers.push(ToolApprovalResponse::approve(id).with_remember(scope));
                player.ledger.gated_logs.clear();
            }
            Answer::Result(_) => {}
        }
    }
    for (id, text) in plan.step.results.iter().flat_map(Ordered::iter) {
        results.push(ChatMessage::tool(ToolResult::ok(id, text)));
    }
    Ok((answers, results))
}

/// The JSON form of an answer with any decision.
fn of_json(id: &str, decision: &serde_json::Value) -> ToolApprovalResponse {
    serde_json::from_value(json!({"request_id": id, "decision": decision}))
        .expect("any decision can be read")
}
