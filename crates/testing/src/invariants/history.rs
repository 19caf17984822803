//! Pairing of calls and results, in what is sent and in what is kept (V1).

use raf_core::{ChatMessage, MessageRole, PendingCall, ToolCall, normalise, validate_history};

use crate::request::ScriptedRequest;

/// Each request is valid to send: every call has its one result, directly behind, in call order.
pub fn check_requests(requests: &[ScriptedRequest]) -> Vec<String> {
    let mut faults = Vec::new();
    for request in requests {
        let found = validate_history(&request.messages)
            .err()
            .unwrap_or_default();
        faults.extend(found.iter().map(|fault| {
            format!(
                "request {}: {fault}; it was {:?}",
                request.index,
                request.lines()
            )
        }));
    }
    faults
}

/// Each request begins with the whole request before it (contract A7): for the requests of one run
/// without a reducer and without messages of context providers.
pub fn check_prefixes(requests: &[ScriptedRequest]) -> Vec<String> {
    let json = |message: &ChatMessage| serde_json::to_string(message).unwrap_or_default();
    let mut faults = Vec::new();
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let differs = before.messages.iter().enumerate().find(|(index, message)| {
            let same = after.messages.get(*index);
            same.is_none_or(|same| !same.is_same(message) && json(same) != json(message))
        });
        if let Some((index, message)) = differs {
            faults.push(format!(
                "request {}: message {index} is not the one of the request before, {}",
                after.index,
                json(message)
            ));
        }
    }
    faults
}

/// A transcript as a leg left it: each call that is not `pending` has exactly one result, behind
/// its message, in call order, and what `normalise` makes of it is valid to send.
pub fn check_transcript(messages: &[ChatMessage], pending: &[PendingCall]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expected: Vec<(usize, u32, &ToolCall)> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role() == MessageRole::Tool {
            for result in message.tool_results() {
                // Ids repeat: of several calls with this one it is the one at the result's place.
                let own = result.occurrence().map(|occurrence| occurrence.position);
                let of_id = |(_, _, call): &(usize, u32, &ToolCall)| call.id() == result.call_id();
                let place = expected
                    .iter()
                    .position(|call| of_id(call) && Some(call.1) == own)
                    .or_else(|| expected.iter().position(of_id));
                let Some(place) = place else {
                    faults.push(format!(
                        "message {index}: a result of '{}' without its call before it",
                        result.call_id()
                    ));
                    continue;
                };
                settle(&mut faults, expected.drain(..place), pending);
                expected.remove(0);
            }
        } else {
            settle(&mut faults, expected.drain(..), pending);
        }
        if message.role() == MessageRole::Assistant {
            let calls = (0..).zip(message.tool_calls());
            expected = calls
                .map(|(position, call)| (index, position, call))
                .collect();
        }
    }
    settle(&mut faults, expected.drain(..), pending);
    let sendable = validate_history(&normalise(messages))
        .err()
        .unwrap_or_default();
    faults.extend(
        sendable
            .iter()
            .map(|fault| format!("after normalise: {fault}")),
    );
    faults
}

fn settle<'a>(
    faults: &mut Vec<String>,
    unanswered: impl Iterator<Item = (usize, u32, &'a ToolCall)>,
    pending: &[PendingCall],
) {
    for (index, position, call) in unanswered {
        let waits = |waiting: &PendingCall| {
            waiting.occurrence.position == position && waiting.call == *call
        };
        if !pending.iter().any(waits) {
            faults.push(format!(
                "message {index}: the call '{}' of '{}' has no result in its place",
                call.id(),
                call.name()
            ));
        }
    }
}
