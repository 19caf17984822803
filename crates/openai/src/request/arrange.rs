//! Which messages are sent, in which order: what a server's rules say of neighbours and places.

use std::borrow::Cow;

use raf_core::{ChatMessage, Content, MessageRole, ToolResult};

use crate::dialect::{AssistantLast, Rules, SystemRole};
use crate::request::message::{is_media, says_something};

/// The messages as the dialect wants them. `instructions` are added to the caller's own.
pub(crate) fn arrange<'a>(
    messages: &'a [ChatMessage],
    instructions: Option<String>,
    rules: &Rules,
) -> Cow<'a, [ChatMessage]> {
    let has_media = |message: &ChatMessage| {
        message.role() == MessageRole::Tool
            && message
                .tool_results()
                .any(|result| result.content().iter().any(is_media))
    };
    let is_plain = instructions.is_none()
        && !rules.single_system
        && rules.system != SystemRole::None
        && !rules.strict_alternation
        && rules.user_after_tool
        && rules.assistant_last == AssistantLast::Allowed
        && messages.iter().all(says_something)
        && !messages.iter().any(has_media);
    if is_plain {
        return Cow::Borrowed(messages);
    }
    let mut arranged: Vec<ChatMessage> = messages
        .iter()
        .filter(|message| says_something(message))
        .cloned()
        .collect();
    if arranged.iter().any(has_media) {
        arranged = media_after_results(arranged);
    }
    if let Some(instructions) = instructions {
        let place = arranged
            .iter()
            .take_while(|message| is_system(message))
            .count();
        arranged.insert(place, ChatMessage::system(instructions));
    }
    if rules.single_system {
        arranged = join_systems(arranged);
    }
    if rules.system == SystemRole::None {
        arranged = systems_to_users(arranged);
    }
    if !rules.user_after_tool {
        arranged = answer_tools(arranged);
    }
    if rules.strict_alternation {
        arranged = join_neighbours(arranged);
    }
    if rules.assistant_last == AssistantLast::Prefix {
        mark_prefix(&mut arranged);
    }
    Cow::Owned(arranged)
}

fn is_system(message: &ChatMessage) -> bool {
    matches!(message.role(), MessageRole::System | MessageRole::Developer)
}

/// Results are text: their media follow in a message of the user.
pub(crate) fn media_after_results(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut arranged = Vec::with_capacity(messages.len() + 1);
    let mut media: Vec<Content> = Vec::new();
    for message in messages {
        if message.role() != MessageRole::Tool {
            arranged.extend(media_message(&mut media));
        }
        for result in message.tool_results() {
            let parts = result.content().iter().filter(|part| is_media(part));
            let before = media.len();
            media.extend(parts.cloned());
            if media.len() > before {
                media.insert(before, Content::text(caption(result)));
            }
        }
        arranged.push(message);
    }
    arranged.extend(media_message(&mut media));
    arranged
}

fn caption(result: &ToolResult) -> String {
    match result.name() {
        "" => "Returned by the tool:".to_owned(),
        name => format!("Returned by the tool {name}:"),
    }
}

fn media_message(media: &mut Vec<Content>) -> Option<ChatMessage> {
    let parts = std::mem::take(media);
    (!parts.is_empty()).then(|| ChatMessage::new(MessageRole::User, parts))
}

/// One system message, at the start.
fn join_systems(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let is_fit = messages.iter().skip(1).all(|message| !is_system(message));
    if is_fit {
        return messages;
    }
    let (systems, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_system);
    let texts: Vec<String> = systems.iter().map(ChatMessage::text).collect();
    let mut arranged = vec![ChatMessage::system(texts.join("\n\n"))];
    arranged.extend(others);
    arranged
}

/// Instructions at the start of the next user message, for servers that know no other place.
fn systems_to_users(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut arranged = Vec::with_capacity(messages.len());
    let mut held: Option<ChatMessage> = None;
    for message in messages {
        if is_system(&message) {
            let as_user = ChatMessage::new(MessageRole::User, message.contents().to_vec());
            held = Some(match held {
                Some(before) => join(&before, &as_user),
                None => as_user,
            });
        } else {
            match held.take() {
                Some(before) if message.role() == MessageRole::User => {
                    arranged.push(join(&before, &message));
                }
                before => {
                    arranged.extend(before);
                    arranged.push(message);
                }
            }
        }
    }
    arranged.extend(held);
    arranged
}

/// A word of the assistant between a tool's and the user's.
fn answer_tools(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut arranged: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    for message in messages {
        let after_tool = arranged
            .last()
            .is_some_and(|last| last.role() == MessageRole::Tool);
        if after_tool && message.role() == MessageRole::User {
            arranged.push(ChatMessage::assistant("OK."));
        }
        arranged.push(message);
    }
    arranged
}

/// No two neighbours of one role, tool messages apart.
fn join_neighbours(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut arranged: Vec<ChatMessage> = Vec::with_capacity(messages.len());
    for message in messages {
        let same = arranged.last().filter(|last| {
            last.role() == message.role()
                && message.role() != MessageRole::Tool
                && last.tool_calls().next().is_none()
        });
        match same {
            Some(last) => {
                let joined = join(last, &message);
                arranged.pop();
                arranged.push(joined);
            }
            None => arranged.push(message),
        }
    }
    arranged
}

fn join(first: &ChatMessage, second: &ChatMessage) -> ChatMessage {
    let mut contents = first.contents().to_vec();
    let mut more = second.contents().to_vec();
    // Text to text, so that one plain text is sent.
    if let (Some(Content::Text(end)), Some(Content::Text(start))) =
        (contents.last_mut(), more.first())
    {
        end.text.push_str("\n\n");
        end.text.push_str(&start.text);
        more.remove(0);
    }
    contents.extend(more);
    first.to_builder().replace_contents(contents).build()
}

/// Mistral goes on with the last message if it is marked; the mark is the message's own field.
fn mark_prefix(messages: &mut [ChatMessage]) {
    if let Some(last) = messages.last_mut()
        && last.role() == MessageRole::Assistant
        && last.tool_calls().next().is_none()
    {
        *last = last.to_builder().extra(PREFIX, true.into()).build();
    }
}

/// The field by which a rendered message says that it is to be gone on with.
pub(crate) const PREFIX: &str = "prefix";
