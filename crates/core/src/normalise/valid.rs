//! Whether a history may be sent: the rules of [`normalise`](super::normalise) as a check.

use std::collections::HashSet;
use std::fmt;

use super::{is_empty, is_object};
use crate::content::Content;
use crate::message::{ChatMessage, MessageRole};

/// What [`validate_history`] finds wrong. Indices count messages from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryFault {
    /// The call with this id has no result directly behind its message, in call order.
    MissingResult {
        /// The assistant message.
        message: usize,
        /// The call.
        call_id: String,
    },
    /// A result whose call does not stand directly before it.
    StrayResult {
        /// The message that holds it.
        message: usize,
        /// The call that it names.
        call_id: String,
    },
    /// An assistant message that says nothing.
    EmptyAssistantMessage {
        /// The message.
        message: usize,
    },
    /// A call id that is empty, or was used before.
    BadCallId {
        /// The assistant message.
        message: usize,
        /// The id.
        call_id: String,
    },
    /// A call whose argument text is not a JSON object.
    BadArguments {
        /// The assistant message.
        message: usize,
        /// The call.
        call_id: String,
    },
    /// A tool message that does not hold exactly one result and nothing else.
    BadToolMessage {
        /// The message.
        message: usize,
    },
}

impl fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingResult { message, call_id } => {
                write!(
                    f,
                    "message {message}: call '{call_id}' has no result behind it"
                )
            }
            Self::StrayResult { message, call_id } => {
                write!(
                    f,
                    "message {message}: the result of '{call_id}' lacks its call before it"
                )
            }
            Self::EmptyAssistantMessage { message } => {
                write!(f, "message {message}: the assistant message is empty")
            }
            Self::BadCallId { message, call_id } => {
                write!(
                    f,
                    "message {message}: the call id '{call_id}' is empty or not unique"
                )
            }
            Self::BadArguments { message, call_id } => {
                write!(
                    f,
                    "message {message}: the arguments of '{call_id}' are no JSON object"
                )
            }
            Self::BadToolMessage { message } => {
                write!(
                    f,
                    "message {message}: a tool message must hold exactly one result"
                )
            }
        }
    }
}

/// Whether a history is valid to send: what [`normalise`](super::normalise) guarantees of its output (contract A1).
///
/// # Errors
/// Every fault, in order.
pub fn validate_history(messages: &[ChatMessage]) -> Result<(), Vec<HistoryFault>> {
    let mut faults = Vec::new();
    let mut ids = HashSet::new();
    let mut expected: Vec<(usize, &str)> = Vec::new();
    let missing = |expected: &mut Vec<(usize, &str)>, faults: &mut Vec<HistoryFault>| {
        faults.extend(
            expected
                .drain(..)
                .map(|(message, id)| HistoryFault::MissingResult {
                    message,
                    call_id: id.to_owned(),
                }),
        );
    };
    for (message, item) in messages.iter().enumerate() {
        if item.role() == MessageRole::Tool {
            if item.contents().len() != 1 || item.tool_results().next().is_none() {
                faults.push(HistoryFault::BadToolMessage { message });
            }
        } else {
            missing(&mut expected, &mut faults);
        }
        for result in item.tool_results() {
            match expected.first() {
                Some((_, id)) if *id == result.call_id() && item.role() == MessageRole::Tool => {
                    expected.remove(0);
                }
                _ => faults.push(HistoryFault::StrayResult {
                    message,
                    call_id: result.call_id().to_owned(),
                }),
            }
        }
        if item.role() != MessageRole::Assistant {
            continue;
        }
        if is_empty(item) {
            faults.push(HistoryFault::EmptyAssistantMessage { message });
        }
        for call in item.tool_calls() {
            let call_id = call.id().to_owned();
            if call_id.is_empty() || !ids.insert(call.id()) {
                faults.push(HistoryFault::BadCallId { message, call_id });
            } else if !is_object(call) {
                faults.push(HistoryFault::BadArguments { message, call_id });
            }
            expected.push((message, call.id()));
        }
    }
    missing(&mut expected, &mut faults);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

/// Whether [`validate_history`] finds no fault, without saying which: what a client asks before each
/// request.
pub fn is_valid_history(messages: &[ChatMessage]) -> bool {
    let mut ids: Vec<&str> = Vec::new();
    let mut messages = messages.iter();
    while let Some(message) = messages.next() {
        if message.role() == MessageRole::Tool {
            return false;
        }
        if message.is_plain_text() {
            continue;
        }
        if message.tool_results().next().is_some() {
            return false;
        }
        if message.role() != MessageRole::Assistant {
            continue;
        }
        if is_empty(message) {
            return false;
        }
        for call in message.tool_calls() {
            if call.id().is_empty() || !is_object(call) {
                return false;
            }
            ids.push(call.id());
        }
        for call in message.tool_calls() {
            let answers = |result: &ChatMessage| {
                result.role() == MessageRole::Tool
                    && matches!(result.contents(), [Content::ToolResult(result)]
                        if result.call_id() == call.id())
            };
            if !messages.next().is_some_and(answers) {
                return false;
            }
        }
    }
    all_differ(&mut ids)
}

/// Whether no text stands in two places: what is asked of ids before each request, so that it is told by
/// their ends where these differ. The texts are sorted if they must be.
pub fn all_differ(texts: &mut [&str]) -> bool {
    // Those that count up need no sorting.
    if texts.is_sorted_by(|one, next| one < next) {
        return true;
    }
    let end = |text: &&str| match text.as_bytes().last_chunk::<16>() {
        Some(end) => u128::from_le_bytes(*end),
        None => text
            .bytes()
            .fold(0, |end, byte| end << 8 | u128::from(byte)),
    };
    let mut ends: Vec<u128> = texts.iter().map(end).collect();
    ends.sort_unstable();
    if ends.is_sorted_by(|one, next| one < next) {
        return true;
    }
    texts.sort_unstable();
    texts.is_sorted_by(|one, next| one < next)
}
