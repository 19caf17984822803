//! From a transcript to what may be sent: a pure, deterministic, idempotent function (contract A).
//!
//! Calls and results are paired by occurrence, not by id: a call arms, a result consumes. The output
//! of a longer transcript begins with the output of a shorter one, as long as the shorter one has no
//! open call, so that prompt caches hold (A7).

mod valid;

use std::collections::{HashMap, HashSet};

use crate::content::{Content, ToolCall, ToolOutcome, ToolResult, TrustLabel};
use crate::message::{ChatMessage, MessageRole};

pub use valid::{HistoryFault, all_differ, is_valid_history, validate_history};

/// Makes a transcript valid to send.
///
/// In the output each call has exactly one result, directly behind its assistant message, in call
/// order, one tool message per result; no result lacks its call; no assistant message is empty; ids
/// are present and unique, calls and results re-labelled together; every argument text is a JSON
/// object (a malformed one is sent as `{"malformed_arguments": "…"}`). A result that is missing is
/// filled as cancelled. Messages that need no change are the same handles.
///
/// A transcript that is valid as it is costs one look at each message.
pub fn normalise(transcript: &[ChatMessage]) -> Vec<ChatMessage> {
    if is_valid_history(transcript) {
        return transcript.to_vec();
    }
    made_valid(transcript)
}

fn made_valid(transcript: &[ChatMessage]) -> Vec<ChatMessage> {
    let mut results = pair(transcript);
    let mut ids = Ids::default();
    let mut output = Vec::with_capacity(transcript.len());
    for (index, message) in transcript.iter().enumerate() {
        match message.role() {
            MessageRole::Tool => {}
            MessageRole::Assistant => {
                if is_empty(message) {
                    continue;
                }
                let labels: Vec<String> = message
                    .tool_calls()
                    .enumerate()
                    .map(|(position, call)| ids.label(call.id(), output.len(), position))
                    .collect();
                output.push(sendable(message, &labels));
                for (position, (call, label)) in message.tool_calls().zip(&labels).enumerate() {
                    let result = results.remove(&(index, position));
                    output.push(result_message(call, label, result.as_ref()));
                }
            }
            _ => output.push(without_results(message)),
        }
    }
    output
}

/// The result that belongs to each call: by message index and position.
fn pair(transcript: &[ChatMessage]) -> HashMap<(usize, usize), Found<'_>> {
    let mut open: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    let mut last_calls: Vec<(usize, usize, &str)> = Vec::new();
    let mut results = HashMap::new();
    for (index, message) in transcript.iter().enumerate() {
        if message.role() == MessageRole::Assistant && message.tool_calls().next().is_some() {
            last_calls.clear();
            for (position, call) in message.tool_calls().enumerate() {
                open.entry(call.id()).or_default().push((index, position));
                last_calls.push((index, position, call.id()));
            }
        }
        let mut has_result = false;
        for result in message.tool_results() {
            has_result = true;
            let own = result.occurrence().map(|place| place.position as usize);
            // A result that the loop made belongs to the call at its own place, whatever a caller has
            // put there before.
            let place = own
                .and_then(|position| last_calls.get(position))
                .filter(|(.., id)| *id == result.call_id())
                .map(|(at, position, _)| (*at, *position));
            if let Some(place) = place {
                let calls = open.entry(result.call_id()).or_default();
                let is_open = calls.contains(&place);
                if is_open || results.get(&place).is_some_and(Found::is_foreign) {
                    calls.retain(|call| *call != place);
                    results.insert(place, Found::Result(message, result));
                    continue;
                }
            }
            // Of several open calls with this id those of the latest message come first, and of
            // these the one at the result's own position, else the earliest.
            let Some(calls) = open.get_mut(result.call_id()) else {
                continue;
            };
            let Some(&(latest, _)) = calls.last() else {
                continue;
            };
            let of_latest = |(at, _): &(usize, usize)| *at == latest;
            let chosen = calls
                .iter()
                .position(|call| of_latest(call) && Some(call.1) == own)
                .or_else(|| calls.iter().position(of_latest));
            if let Some(chosen) = chosen {
                results.insert(calls.remove(chosen), Found::Result(message, result));
            }
        }
        // A tool message of plain text answers the first open call of the last assistant message.
        if message.role() == MessageRole::Tool && !has_result {
            let unanswered = last_calls
                .iter()
                .find(|(at, position, _)| !results.contains_key(&(*at, *position)));
            if let Some(&(at, position, id)) = unanswered {
                if let Some(calls) = open.get_mut(id) {
                    calls.retain(|call| *call != (at, position));
                }
                results.insert((at, position), Found::Text(message));
            }
        }
    }
    results
}

enum Found<'a> {
    /// A result part, in a message of its own or with others.
    Result(&'a ChatMessage, &'a ToolResult),
    /// A tool message of plain text.
    Text(&'a ChatMessage),
}

impl Found<'_> {
    /// Whether the loop did not make it.
    fn is_foreign(&self) -> bool {
        match self {
            Self::Result(_, result) => result.occurrence().is_none(),
            Self::Text(_) => true,
        }
    }
}

/// Ids that were given out in this request.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    /// The id itself if it is free, else one made of the place of its call in the output.
    fn label(&mut self, id: &str, message: usize, position: usize) -> String {
        let mut label = id.to_owned();
        let mut attempt = 0;
        while label.is_empty() || !self.0.insert(label.clone()) {
            label = match attempt {
                0 => format!("call_{message}_{position}"),
                _ => format!("call_{message}_{position}_{attempt}"),
            };
            attempt += 1;
        }
        label
    }
}

fn is_empty(message: &ChatMessage) -> bool {
    message.contents().iter().all(|content| {
        content.is_empty() || matches!(content, Content::Reasoning(_) | Content::ToolResult(_))
    })
}

/// The assistant message with these ids, its arguments JSON objects, without stray results.
fn sendable(message: &ChatMessage, labels: &[String]) -> ChatMessage {
    let unchanged = message
        .tool_calls()
        .zip(labels)
        .all(|(call, label)| call.id() == label && is_object(call))
        && !message
            .contents()
            .iter()
            .any(|content| matches!(content, Content::ToolResult(_)));
    if unchanged {
        return (*message).clone();
    }
    let mut labels = labels.iter();
    let contents = message
        .contents()
        .iter()
        .filter_map(|content| match content {
            Content::ToolCall(call) => {
                let label = labels.next()?;
                let mut builder = call.to_builder().id(label);
                if !is_object(call) {
                    builder = builder.arguments(sendable_arguments(call)).complete(true);
                }
                Some(Content::ToolCall(builder.build()))
            }
            Content::ToolResult(_) => None,
            other => Some(other.clone()),
        })
        .collect();
    message.to_builder().replace_contents(contents).build()
}

fn is_object(call: &ToolCall) -> bool {
    call.is_complete()
        && call.arguments_fault().is_none()
        && call.arguments().trim_start().starts_with('{')
}

fn sendable_arguments(call: &ToolCall) -> String {
    match call.parse_arguments() {
        Ok(arguments) if arguments.is_empty() => "{}".to_owned(),
        Ok(_) => call.arguments().to_owned(),
        Err(_) => serde_json::json!({ "malformed_arguments": call.arguments() }).to_string(),
    }
}

fn result_message(call: &ToolCall, label: &str, found: Option<&Found<'_>>) -> ChatMessage {
    match found {
        Some(Found::Result(message, result)) => {
            let alone = message.role() == MessageRole::Tool && message.contents().len() == 1;
            if alone && result.call_id() == label {
                return (*message).clone();
            }
            ChatMessage::tool(result.to_builder().call_id(label).build())
        }
        Some(Found::Text(message)) => ChatMessage::tool(
            ToolResult::builder(label, ToolOutcome::Ok)
                .name(call.name())
                .content(message.contents().to_vec())
                .build(),
        ),
        None => {
            let outcome = ToolOutcome::Cancelled { started: true };
            ChatMessage::tool(
                ToolResult::builder(label, outcome)
                    .name(call.name())
                    .trust(TrustLabel::Framework)
                    .text(
                        "No result was recorded for this call: it was cancelled. It may have \
                         taken effect.",
                    )
                    .build(),
            )
        }
    }
}

fn without_results(message: &ChatMessage) -> ChatMessage {
    let is_result = |content: &Content| matches!(content, Content::ToolResult(_));
    if !message.contents().iter().any(is_result) {
        return (*message).clone();
    }
    let contents = message
        .contents()
        .iter()
        .filter(|content| !is_result(content));
    let contents = contents.cloned().collect();
    message.to_builder().replace_contents(contents).build()
}

#[cfg(test)]
mod tests;
