//! Content parts of a request's items.

use raf_core::{
    ChatMessage, Content, Error, MediaContent, MediaSource, MessageRole, Result, UnknownContent,
};
use raf_wire::{data_url, part_owner, push_member, push_string};

/// Refuses media of the user that the Responses API has no form for. That of a result becomes a note: its
/// tool has run.
///
/// # Errors
/// What to give instead.
pub(super) fn check_media(messages: &[ChatMessage]) -> Result<()> {
    // What a model made is not sent back.
    let is_sent = |message: &&ChatMessage| message.role() != MessageRole::Assistant;
    for content in messages
        .iter()
        .filter(is_sent)
        .filter(|message| !message.is_plain_text())
        .flat_map(ChatMessage::contents)
    {
        let fault = match content {
            Content::Video(_) => "it takes no video: give single images",
            Content::Audio(media) if !matches!(media.source, MediaSource::Base64(_)) => {
                "audio must be given as base64 bytes"
            }
            _ => continue,
        };
        return Err(Error::misuse(format!("the Responses API: {fault}")));
    }
    Ok(())
}

/// A system message of this text.
pub(super) fn system(text: &str) -> String {
    let mut json = String::new();
    begin_message(&mut json, "system");
    json.push('[');
    push_text(&mut json, "input_text", text);
    json.push_str("]}");
    json
}

pub(super) fn begin_message(json: &mut String, role: &str) {
    json.push_str(r#"{"type":"message","role":""#);
    json.push_str(role);
    json.push_str(r#"","content":"#);
}

/// A message of the user, of the system or of a developer; parts that are items by themselves stand
/// behind it. Parts that a provider left in a reply are not said by any of these, and are left out.
/// Nothing, if it says nothing.
pub(super) fn prompt(message: &ChatMessage) -> String {
    let role = match message.role() {
        MessageRole::User => "user",
        MessageRole::Developer => "developer",
        _ => "system",
    };
    let mut list = String::from("[");
    let mut items = Vec::new();
    for content in message.contents() {
        match content {
            Content::Unknown(part) if is_item(part) => {
                items.push(part.value.to_string());
            }
            content => push_part(&mut list, content),
        }
    }
    let mut json = String::new();
    if list.len() > 1 {
        list.push(']');
        begin_message(&mut json, role);
        json.push_str(&list);
        json.push('}');
    }
    for item in items {
        if !json.is_empty() {
            json.push(',');
        }
        json.push_str(&item);
    }
    json
}

fn is_item(part: &UnknownContent) -> bool {
    part_owner(part).is_none() && !part.kind().starts_with("input_")
}

/// Appends a part of a user's message or of a tool's output to a list.
pub(super) fn push_part(list: &mut String, content: &Content) {
    match content {
        Content::Text(text) if !text.text.is_empty() => push_text(list, "input_text", &text.text),
        Content::Refusal(refusal) if !refusal.text.is_empty() => {
            push_text(list, "input_text", &refusal.text);
        }
        Content::Image(media) => {
            separate(list);
            list.push_str(r#"{"type":"input_image""#);
            match &media.source {
                MediaSource::FileId(id) => push_member(list, "file_id", id),
                _ => push_member(list, "image_url", &data_url(media, "image/png")),
            }
            if let Some(detail) = media.extra.get("detail").and_then(|value| value.as_str()) {
                push_member(list, "detail", detail);
            }
            list.push('}');
        }
        Content::File(media) => push_file(list, media),
        Content::Audio(media) => {
            let MediaSource::Base64(data) = &media.source else {
                let note = "(sound that this endpoint cannot fetch is left out)";
                return push_text(list, "input_text", note);
            };
            separate(list);
            list.push_str(r#"{"type":"input_audio","input_audio":{"data":"#);
            push_string(list, data);
            let kind = media.media_type.as_deref().unwrap_or("audio/wav");
            let format = match kind {
                "audio/mpeg" => "mp3",
                other => other.trim_start_matches("audio/").trim_start_matches("x-"),
            };
            push_member(list, "format", format);
            list.push_str("}}");
        }
        Content::Video(_) => {
            push_text(
                list,
                "input_text",
                "(a video that this endpoint cannot take is left out)",
            );
        }
        Content::Unknown(part) if part_owner(part).is_none() => {
            separate(list);
            list.push_str(&part.value.to_string());
        }
        _ => {}
    }
}

fn push_file(list: &mut String, media: &MediaContent) {
    separate(list);
    list.push_str(r#"{"type":"input_file""#);
    match &media.source {
        MediaSource::FileId(id) => push_member(list, "file_id", id),
        MediaSource::Url(url) if !url.starts_with("data:") => push_member(list, "file_url", url),
        _ => {
            // A file without a name is refused.
            push_member(list, "filename", media.name.as_deref().unwrap_or("file"));
            let data = data_url(media, "application/octet-stream");
            push_member(list, "file_data", &data);
        }
    }
    list.push('}');
}

pub(super) fn push_text(list: &mut String, kind: &str, text: &str) {
    separate(list);
    list.push_str(r#"{"type":""#);
    list.push_str(kind);
    list.push_str(r#"","text":"#);
    push_string(list, text);
    list.push('}');
}

pub(super) fn separate(list: &mut String) {
    if !list.ends_with('[') {
        list.push(',');
    }
}
