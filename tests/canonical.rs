//! What must be the same in both forms of a case, as text without anything random.

use raf_core::{ChatMessage, PendingCall, RoundUsage};
use raf_testing::RecordedCall;

use crate::leg::Leg;

/// Messages as JSON, one per line, their random ids (of runs, of log entries) replaced.
pub fn messages(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().map(message).collect()
}

fn message(message: &ChatMessage) -> String {
    let mut text = serde_json::to_string(message).unwrap_or_default();
    for id in message
        .tool_results()
        .filter_map(|result| result.correlation_id())
    {
        text = text.replace(id, "<correlation id>");
    }
    if let Some(id) = message.paused_run_id() {
        text = text.replace(id.as_str(), "<run id>");
    }
    text
}

/// A leg: its messages, requests, executions, usage and end.
pub fn leg(leg: &Leg) -> Vec<String> {
    let mut lines = messages(&leg.messages());
    for seen in leg.requests() {
        let request = &seen.request;
        lines.push(format!(
            "request: tools {:?}, choice {:?}, model {:?}",
            request.tool_names(),
            request.options.tool_choice,
            request.options.model
        ));
        lines.extend(messages(&request.messages));
    }
    lines.extend(leg.entries.iter().map(entry));
    lines.push(format!("usage {:?} of {:?}", leg.usage(), leg.run_usage()));
    lines.extend(leg.rounds().iter().map(round));
    lines.extend(leg.pending().iter().map(pending));
    lines.push(format!("abandoned {:?}", leg.abandoned()));
    lines.push(match &leg.response {
        Ok(response) => format!("ended {:?}", response.finish_reason),
        Err(error) => format!("failed {}: {}", error.kind(), error.message()),
    });
    lines
}

fn entry(entry: &RecordedCall) -> String {
    let arguments = serde_json::Value::Object(entry.arguments.clone());
    format!(
        "entered {} '{}' attempt {} with {arguments}",
        entry.occurrence, entry.call_id, entry.attempt
    )
}

fn round(round: &RoundUsage) -> String {
    format!("round {}: {:?}", round.round, round.usage)
}

fn pending(pending: &PendingCall) -> String {
    format!("pending {} '{}'", pending.occurrence, pending.call.id())
}
