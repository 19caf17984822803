//! From messages and options to the body of a request to `/responses`, by the rules of a dialect.

mod assistant;
mod held;
mod items;
mod parts;
mod settings;
mod tools;

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use raf_core::{
    ChatClientRunOptions, ChatMessage, MessageRole, RenderKey, ResponseFormat, Result,
    is_valid_history, normalise,
};
use raf_wire::{BodyWriter, Restore, ToolsCache};

use super::dialect::{Rules, ToolOutputForm};
use super::parts::ITEM;
use super::reading::Asked;
use super::run_options::ResponsesRunOptions;
use crate::request::{media_after_results, speak_of_json};

/// What the backend of Codex is told where the caller tells nothing: it refuses a request without.
const NO_INSTRUCTIONS: &str = "You are a helpful assistant.";

/// What a client renders requests by.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) model: &'a str,
    pub(crate) streaming: bool,
    pub(crate) cache: &'a ToolsCache,
    /// Under which messages keep what they were rendered to, where that is the same for each request.
    pub(crate) render_key: Option<RenderKey>,
}

/// A request that can be sent.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) body: Bytes,
    /// What the messages said: a part of the body.
    pub(crate) said: Bytes,
    pub(crate) restore: Restore,
    pub(crate) asked: Asked,
    /// The response that the request goes on with.
    pub(crate) previous: Option<String>,
}

/// How the server knows a call that it holds, or that is not a function's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownCall {
    pub(super) is_custom: bool,
    pub(super) wire_id: String,
}

/// Writes a request. With `whole` all of the conversation is sent, whatever the server holds.
///
/// # Errors
/// What is wrong with it by itself.
pub(crate) fn build(
    messages: &[ChatMessage],
    options: &ChatClientRunOptions,
    writer: &Writer<'_>,
    whole: bool,
) -> Result<Built> {
    let Writer { rules, model, .. } = *writer;
    let own = ResponsesRunOptions::of(options);
    let keeps_state = settings::keeps_state(&own, rules)?;
    let messages: Cow<'_, [ChatMessage]> = if is_valid_history(messages) {
        Cow::Borrowed(messages)
    } else {
        Cow::Owned(normalise(messages))
    };
    let held = if keeps_state && !whole {
        held::find(&messages, &own, rules)
    } else {
        held::Held::nothing()
    };
    let calls = known_calls(&messages, rules, held.start);
    let leading = messages
        .iter()
        .take_while(|message| is_system(message))
        .count();
    let in_field = rules.instructions_field || (keeps_state && rules.instructions_with_previous);
    let instructions = instructions(&messages[..leading], options, &messages, rules, in_field);
    let start = if in_field || held.previous.is_some() {
        held.start.max(leading)
    } else {
        held.start
    };
    parts::check_media(&messages[start..])?;
    let mut sent = Cow::Borrowed(&messages[start..]);
    if rules.tool_output == ToolOutputForm::Text && sent.iter().any(has_media) {
        sent = Cow::Owned(media_after_results(sent.into_owned()));
    }
    if rules.instructions_field {
        sent.to_mut().retain(|message| !is_system(message));
    }
    let pieces = items::render(&sent, writer, &calls);

    // Each with its comma and the digits of its place.
    let length: usize = pieces.iter().map(|piece| piece.len() + 8).sum();
    let mut body = BodyWriter::new(length + 1024, options);
    body.field("model", model)?;
    let said_from = body.position();
    let mut extra_item = None;
    match instructions {
        Some(text) if in_field => body.field("instructions", &text)?,
        Some(text) => extra_item = Some(parts::system(&text)),
        None => {}
    }
    body.raw_field("input", |text| {
        text.push(b'[');
        text.extend_from_slice(extra_item.as_deref().unwrap_or_default().as_bytes());
        for (at, piece) in pieces.iter().enumerate() {
            if piece.is_empty() {
                continue;
            }
            if !text.ends_with(b"[") {
                text.push(b',');
            }
            items::push_items(text, piece, at);
        }
        text.push(b']');
    });
    let said_to = body.position();
    settings::write(&mut body, options, &own, writer, keeps_state)?;
    if let Some(previous) = &held.previous {
        body.field("previous_response_id", previous)?;
    }
    if keeps_state && let Some(conversation) = &own.conversation {
        body.field("conversation", conversation)?;
    }
    let tools = tools::write(&mut body, options, &own, writer)?;
    let text = body.finish()?;
    Ok(Built {
        said: text.slice(said_from..said_to),
        body: text,
        restore: tools.restore,
        asked: Asked {
            provider: rules.name.to_string(),
            model: model.to_owned(),
            tools: tools.names,
            is_stored: keeps_state,
            conversation: own.conversation.filter(|_| keeps_state),
            response_id: None,
            can_resume: own.background,
        },
        previous: held.previous,
    })
}

fn is_system(message: &ChatMessage) -> bool {
    matches!(message.role(), MessageRole::System | MessageRole::Developer)
}

fn has_media(message: &ChatMessage) -> bool {
    !message.is_plain_text()
        && message.tool_results().any(|result| {
            let mut contents = result.content().iter();
            contents.any(crate::request::is_media)
        })
}

/// The text of the field `instructions`, or of a system message to add.
fn instructions(
    leading: &[ChatMessage],
    options: &ChatClientRunOptions,
    messages: &[ChatMessage],
    rules: &Rules,
    in_field: bool,
) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    if rules.instructions_field {
        let systems = messages.iter().filter(|message| is_system(message));
        texts.extend(systems.map(ChatMessage::text));
    } else if in_field {
        texts.extend(leading.iter().map(ChatMessage::text));
    }
    // OpenAI refuses the format json_object if nothing speaks of JSON.
    let wants_json = matches!(options.response_format, Some(ResponseFormat::JsonObject));
    if wants_json && !speak_of_json(messages) {
        texts.push("Answer with one JSON object and nothing else.".to_owned());
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() && rules.instructions_field {
        texts.push(NO_INSTRUCTIONS.to_owned());
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The calls of the history whose results are not those of a function under its own id.
fn known_calls<'a>(
    messages: &'a [ChatMessage],
    rules: &Rules,
    held_until: usize,
) -> HashMap<&'a str, KnownCall> {
    let mut known = HashMap::new();
    let calls = messages.iter().enumerate();
    let calls = calls.filter(|(_, message)| !message.is_plain_text());
    let calls = calls.flat_map(|(at, message)| message.tool_calls().map(move |call| (at, call)));
    for (at, call) in calls {
        let is_held = at < held_until;
        let data = call.provider_data();
        let data = data.filter(|data| data.provider == rules.name);
        let Some(item) = data.and_then(|data| data.data.get(ITEM)) else {
            continue;
        };
        let text = |name: &str| item.get(name)?.as_str();
        let is_custom = text("type") == Some("custom_tool_call");
        let held_id = is_held.then(|| text("call_id")).flatten();
        if is_custom || held_id.is_some_and(|id| id != call.id()) {
            let own_id = || items::wire_id(call.id()).into_owned();
            let wire_id = held_id.map_or_else(own_id, str::to_owned);
            known.insert(call.id(), KnownCall { is_custom, wire_id });
        }
    }
    known
}
