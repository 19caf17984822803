//! What the server holds of a conversation, and what is new.

use raf_core::{ChatMessage, Content, MessageRole, MessageStatus};
use raf_wire::own_part;

use crate::responses::dialect::Rules;
use crate::responses::run_options::ResponsesRunOptions;

/// What the server holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// The response to go on with.
    pub(super) previous: Option<String>,
    /// From which message on the conversation is new.
    pub(super) start: usize,
}

impl Held {
    pub(super) fn nothing() -> Self {
        Self {
            previous: None,
            start: 0,
        }
    }
}

/// Looks for the last response that was finished and kept. A reply that broke off is passed over: the
/// conversation goes on from the last committed one (contract of fi15); one that is whole and has no id
/// means that the server keeps nothing any more, and all is sent.
pub(super) fn find(messages: &[ChatMessage], own: &ResponsesRunOptions, rules: &Rules) -> Held {
    let is_model = |message: &ChatMessage| message.role() == MessageRole::Assistant;
    let replies = messages.iter().enumerate().rev();
    for (at, message) in replies.filter(|(_, message)| is_model(message)) {
        match mark(message, rules) {
            Some((id, conversation)) if conversation == own.conversation => {
                // A conversation is named by its own id.
                return Held {
                    previous: id.filter(|_| own.conversation.is_none()),
                    start: at + 1,
                };
            }
            None if message.status() == MessageStatus::Incomplete => {}
            _ => break,
        }
    }
    Held {
        previous: own.previous.clone().filter(|_| own.conversation.is_none()),
        start: 0,
    }
}

/// The id of the response that a message is, if the server keeps it, and its conversation.
fn mark(message: &ChatMessage, rules: &Rules) -> Option<(Option<String>, Option<String>)> {
    message.contents().iter().rev().find_map(|content| {
        let Content::Unknown(part) = content else {
            return None;
        };
        let mark = own_part(part, &rules.name)?;
        let text = |name: &str| mark.get(name)?.as_str().map(str::to_owned);
        (text("type")? == "response").then_some(())?;
        Some((text("id"), text("conversation")))
    })
}
