//! What must be the same in every way that a case is played, as text without anything random (V6).

use raf_core::ChatMessage;

use super::ledger::Ledger;
use super::leg::{Leg, waits};
use crate::notation::{Line, show};

/// A leg in full: for ways that differ in form and reload alone.
pub(crate) fn whole(leg: &Leg, ledger: &Ledger) -> Vec<String> {
    let mut lines = messages(&leg.messages());
    for seen in &leg.seen.requests {
        let request = &seen.request;
        lines.push(format!(
            "request: tools {:?}, choice {:?}, model {:?}",
            request.tool_names(),
            request.options.tool_choice,
            request.options.model
        ));
        lines.extend(messages(&request.messages));
    }
    lines.push(format!("usage {:?} of {:?}", leg.usage(), leg.run_usage()));
    lines.extend(
        leg.rounds()
            .iter()
            .map(|round| format!("round {}: {:?}", round.round, round.usage)),
    );
    lines.push(format!("abandoned {:?}", leg.abandoned()));
    lines.extend(outline(leg));
    lines.iter().map(|line| ledger.without_ids(line)).collect()
}

/// A leg in short: for ways that differ in the wire too.
pub(crate) fn outline(leg: &Leg) -> Vec<String> {
    let mut lines: Vec<String> = Line::of(&leg.messages())
        .into_iter()
        .map(|line| match line {
            // What an error says of the arguments depends on how the wire writes them.
            Line::Result { id, outcome, .. } if outcome != "ok" => format!("R({id}, {outcome})"),
            line => line.to_string(),
        })
        .collect();
    lines.extend(leg.entries.iter().map(|(tool, entry)| {
        let arguments = serde_json::Value::Object(entry.arguments.clone());
        format!(
            "entered {tool} for {} '{}' attempt {} with {arguments}",
            entry.occurrence, entry.call_id, entry.attempt
        )
    }));
    lines.extend(
        leg.pending()
            .iter()
            .map(|call| format!("pending {}", waits(call))),
    );
    lines.push(match leg.stop() {
        None => "dropped".to_owned(),
        Some(_) if is_model_error(leg) => "ended error model".to_owned(),
        // Another process holds no record of a run that has ended.
        Some(stop) => format!("ended {}", show(&stop[..stop.len().min(2)])),
    });
    lines
}

/// Whether the model, or the way to it, failed.
pub(crate) fn is_model_error(leg: &Leg) -> bool {
    leg.error().is_some_and(|error| error.kind().is_model())
}

/// Messages as JSON, one per line, their random ids replaced.
fn messages(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().map(message).collect()
}

fn message(message: &ChatMessage) -> String {
    let mut text = serde_json::to_string(message).unwrap_or_default();
    let results = message.tool_results();
    for id in results.filter_map(|result| result.correlation_id()) {
        text = text.replace(id, "<correlation id>");
    }
    if let Some(id) = message.paused_run_id() {
        text = text.replace(id.as_str(), "<run>");
    }
    text
}
