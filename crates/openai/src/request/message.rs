//! One message as JSON text: nothing but what it says itself and what the dialect wants.

use std::sync::Arc;

use raf_core::{
    ChatMessage, Content, Error, MediaContent, MediaSource, MessageRole, ReasoningContent, Result,
    ToolCall, ToolResult,
};

use raf_wire::{
    call_id, data_url, part_owner, push_member as member, push_string as string, tool_name,
};

use crate::dialect::{
    AssistantLast, ContentBesideCalls, NameField, ReasoningEcho, Rules, SystemRole,
};
use crate::request::arrange::PREFIX;

/// What a tool result says that says nothing: an empty text is refused (BerriAI/litellm#42186).
const NO_OUTPUT: &str = "(no output)";

/// The message as the dialect wants it.
pub(crate) fn render(message: &ChatMessage, rules: &Rules) -> Arc<str> {
    let mut json = String::with_capacity(64);
    match message.role() {
        MessageRole::Tool => match message.tool_results().next() {
            Some(result) => tool(&mut json, result, rules),
            None => json.push_str("null"),
        },
        MessageRole::Assistant => assistant(&mut json, message, rules),
        role => prompt(&mut json, message, role, rules),
    }
    json.into()
}

/// Refuses media that Chat Completions has no form for.
///
/// # Errors
/// What to give instead.
pub(crate) fn check_media(messages: &[ChatMessage]) -> Result<()> {
    // What a model made is not sent back.
    let is_sent = |message: &&ChatMessage| message.role() != MessageRole::Assistant;
    let messages = messages
        .iter()
        .filter(is_sent)
        .filter(|message| !message.is_plain_text());
    for content in messages.flat_map(ChatMessage::contents) {
        let fault = match content {
            Content::Audio(media) if !matches!(media.source, MediaSource::Base64(_)) => {
                "audio must be given as base64 bytes"
            }
            Content::File(media) if is_to_be_fetched(media) => {
                "a file must be given as base64 bytes or as the id of an uploaded file"
            }
            _ => continue,
        };
        return Err(Error::misuse(format!(
            "{fault}: Chat Completions fetches images only"
        )));
    }
    Ok(())
}

/// Whether it is media that the server would have to fetch.
fn is_to_be_fetched(media: &MediaContent) -> bool {
    matches!(&media.source, MediaSource::Url(url) if !url.starts_with("data:"))
}

/// Whether the message says anything that goes over the wire.
pub(crate) fn says_something(message: &ChatMessage) -> bool {
    let is_assistant = message.role() == MessageRole::Assistant;
    message.is_plain_text()
        || message.contents().iter().any(|content| match content {
            Content::Text(_) | Content::Refusal(_) => !content.is_empty(),
            Content::ToolCall(_) => is_assistant,
            Content::ToolResult(_) => message.role() == MessageRole::Tool,
            part => !is_assistant && is_sent(part),
        })
}

/// Whether a part of a message that is not the model's goes over the wire. What a provider left in a
/// reply does not, wherever it stands.
fn is_sent(content: &Content) -> bool {
    match content {
        Content::Text(_) | Content::Refusal(_) => !content.is_empty(),
        Content::Unknown(part) => part_owner(part).is_none(),
        other => is_media(other),
    }
}

fn prompt(json: &mut String, message: &ChatMessage, role: MessageRole, rules: &Rules) {
    let role = match role {
        MessageRole::User => "user",
        MessageRole::Developer if rules.system == SystemRole::AndDeveloper => "developer",
        _ => "system",
    };
    begin(json, role);
    let is_plain = message
        .contents()
        .iter()
        .filter(|content| is_sent(content))
        .all(|content| matches!(content, Content::Text(_)));
    if is_plain {
        // A list of parts is refused by many where one text will do (cline/cline#230).
        let texts: Vec<&str> = message
            .contents()
            .iter()
            .filter_map(Content::as_text)
            .filter(|text| !text.is_empty())
            .collect();
        match texts[..] {
            [one] => string(json, one),
            _ => string(json, &texts.join("\n")),
        }
    } else {
        json.push('[');
        for content in message.contents() {
            part(json, content);
        }
        json.push(']');
    }
    let keeps_name = match rules.names {
        NameField::Kept => true,
        NameField::UserOnly => role == "user",
        NameField::Never => false,
    };
    if let (Some(name), true) = (message.name(), keeps_name) {
        member(json, "name", name);
    }
    json.push('}');
}

fn part(json: &mut String, content: &Content) {
    let mut text = String::new();
    match content {
        Content::Text(part) if !part.text.is_empty() => {
            text.push_str(r#"{"type":"text","text":"#);
            string(&mut text, &part.text);
            text.push('}');
        }
        Content::Image(media) => {
            if let MediaSource::FileId(id) = &media.source {
                file_id(&mut text, id);
            } else {
                text.push_str(r#"{"type":"image_url","image_url":{"url":"#);
                string(&mut text, &data_url(media, "image/png"));
                if let Some(detail) = media.extra.get("detail").and_then(|value| value.as_str()) {
                    member(&mut text, "detail", detail);
                }
                text.push_str("}}");
            }
        }
        Content::Video(media) => {
            text.push_str(r#"{"type":"video_url","video_url":{"url":"#);
            string(&mut text, &data_url(media, "video/mp4"));
            text.push_str("}}");
        }
        Content::Audio(media) => {
            let MediaSource::Base64(data) = &media.source else {
                return note(json, "(sound that this endpoint cannot fetch is left out)");
            };
            text.push_str(r#"{"type":"input_audio","input_audio":{"data":"#);
            string(&mut text, data);
            let format = match media.media_type.as_deref() {
                Some("audio/mpeg" | "audio/mp3") => "mp3",
                Some(other) => other.trim_start_matches("audio/").trim_start_matches("x-"),
                None => "wav",
            };
            member(&mut text, "format", format);
            text.push_str("}}");
        }
        Content::File(media) => {
            if let MediaSource::FileId(id) = &media.source {
                file_id(&mut text, id);
            } else if is_to_be_fetched(media) {
                return note(json, "(a file that this endpoint cannot fetch is left out)");
            } else {
                text.push_str(r#"{"type":"file","file":{"file_data":"#);
                string(&mut text, &data_url(media, "application/octet-stream"));
                member(
                    &mut text,
                    "filename",
                    media.name.as_deref().unwrap_or("file"),
                );
                text.push_str("}}");
            }
        }
        Content::Refusal(part) if !part.text.is_empty() => {
            text.push_str(r#"{"type":"text","text":"#);
            string(&mut text, &part.text);
            text.push('}');
        }
        Content::Unknown(part) if is_sent(content) => text.push_str(&part.value.to_string()),
        _ => {}
    }
    if !text.is_empty() {
        if !json.ends_with('[') {
            json.push(',');
        }
        json.push_str(&text);
    }
}

/// In the place of media that a tool returned and that there is no form for: the run goes on.
fn note(json: &mut String, words: &str) {
    part(json, &Content::text(words));
}

fn file_id(json: &mut String, id: &str) {
    json.push_str(r#"{"type":"file","file":{"file_id":"#);
    string(json, id);
    json.push_str("}}");
}

fn assistant(json: &mut String, message: &ChatMessage, rules: &Rules) {
    begin(json, "assistant");
    let mut text = message.text();
    if text.is_empty() {
        // Words of refusal go back as text: the member of that name is refused by strict servers.
        text = message
            .contents()
            .iter()
            .filter_map(|content| match content {
                Content::Refusal(refusal) => Some(refusal.text.as_str()),
                _ => None,
            })
            .collect();
    }
    match (text.as_str(), rules.content_beside_calls) {
        ("", ContentBesideCalls::Null) => json.push_str("null"),
        (text, _) => string(json, text),
    }
    let has_calls = message.tool_calls().next().is_some();
    if has_calls {
        json.push_str(r#","tool_calls":["#);
        for (place, call) in message.tool_calls().enumerate() {
            if place > 0 {
                json.push(',');
            }
            tool_call(json, call, rules);
        }
        json.push(']');
    }
    reasoning(json, message, has_calls, rules);
    if let (Some(name), NameField::Kept) = (message.name(), rules.names) {
        member(json, "name", name);
    }
    if rules.assistant_last == AssistantLast::Prefix
        && message.extra().get(PREFIX) == Some(&true.into())
    {
        json.push_str(r#","prefix":true"#);
    }
    json.push('}');
}

fn tool_call(json: &mut String, call: &ToolCall, rules: &Rules) {
    json.push_str(r#"{"id":"#);
    string(json, &call_id(call.id(), rules.call_ids));
    json.push_str(r#","type":"function","function":{"name":"#);
    string(json, &tool_name(call.name()));
    member(json, "arguments", call.arguments());
    json.push('}');
    let own = call
        .provider_data()
        .filter(|data| data.provider == rules.name);
    if let Some(extra) = own.and_then(|own| own.data.get("extra_content")) {
        json.push_str(r#","extra_content":"#);
        json.push_str(&extra.to_string());
    }
    json.push('}');
}

fn reasoning(json: &mut String, message: &ChatMessage, has_calls: bool, rules: &Rules) {
    let parts = || {
        message
            .contents()
            .iter()
            .filter_map(|content| match content {
                Content::Reasoning(part) => Some(part),
                _ => None,
            })
    };
    let text = || parts().map(|part| part.text.as_str()).collect::<String>();
    match rules.reasoning {
        ReasoningEcho::Required if has_calls => member(json, "reasoning_content", &text()),
        ReasoningEcho::RequiredNonEmpty if has_calls => {
            let text = text();
            let text = if text.is_empty() { " " } else { &text };
            member(json, "reasoning_content", text);
        }
        ReasoningEcho::OwnDetails => {
            let details: Vec<_> = parts()
                .filter_map(|part| own_details(part, rules))
                .flatten()
                .map(ToString::to_string)
                .collect();
            if !details.is_empty() {
                json.push_str(r#","reasoning_details":["#);
                json.push_str(&details.join(","));
                json.push(']');
            }
        }
        _ => {}
    }
}

fn own_details<'a>(
    part: &'a ReasoningContent,
    rules: &Rules,
) -> Option<&'a Vec<serde_json::Value>> {
    let data = part.provider_data.as_ref()?;
    let is_own = data.provider == rules.name;
    data.data
        .get("reasoning_details")?
        .as_array()
        .filter(|_| is_own)
}

fn tool(json: &mut String, result: &ToolResult, rules: &Rules) {
    json.push_str(r#"{"role":"tool","tool_call_id":"#);
    string(json, &call_id(result.call_id(), rules.call_ids));
    json.push_str(r#","content":"#);
    let texts: Vec<&str> = result
        .content()
        .iter()
        .filter_map(Content::as_text)
        .filter(|text| !text.is_empty())
        .collect();
    let has_media = result.content().iter().any(is_media);
    match texts[..] {
        [] if has_media => string(json, "(see the message that follows the tool results)"),
        [] if result.outcome().is_ok() => string(json, NO_OUTPUT),
        [] => string(json, result.outcome().default_text()),
        [one] => string(json, one),
        _ => string(json, &texts.join("\n")),
    }
    json.push('}');
}

/// Whether a part of a tool result has to go in a message of its own, since results are text.
pub(crate) fn is_media(content: &Content) -> bool {
    matches!(
        content,
        Content::Image(_) | Content::Audio(_) | Content::Video(_) | Content::File(_)
    )
}

fn begin(json: &mut String, role: &str) {
    json.push_str(r#"{"role":""#);
    json.push_str(role);
    json.push_str(r#"","content":"#);
}
