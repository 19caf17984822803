//! Images and documents, in the forms that the API takes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raf_core::{ChatMessage, Content, Error, MediaContent, MediaSource, MessageRole, Result};
use raf_wire::{push_member, push_string};

use crate::dialect::Rules;

/// The image types that the API takes, and the bytes that files of them begin with.
const IMAGES: &[(&str, &[u8])] = &[
    ("image/png", b"\x89PNG"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
];

/// Refuses media of the user that the API has no form for.
///
/// # Errors
/// What to give instead.
pub(super) fn check(messages: &[ChatMessage], rules: &Rules) -> Result<()> {
    let of_user = messages
        .iter()
        .filter(|message| !matches!(message.role(), MessageRole::Assistant | MessageRole::Tool))
        .filter(|message| !message.is_plain_text());
    for content in of_user.flat_map(ChatMessage::contents) {
        let fault = match content {
            Content::Audio(_) => "the Messages API takes no sound: give a transcript as text",
            Content::Video(_) => "the Messages API takes no video: give images of it",
            Content::Image(media) => match form(media, true, rules) {
                Form::Fault(fault) => fault,
                _ => continue,
            },
            Content::File(media) => match form(media, false, rules) {
                Form::Fault(fault) => fault,
                _ => continue,
            },
            _ => continue,
        };
        return Err(Error::misuse(fault));
    }
    Ok(())
}

/// Appends the block of an image or a document; nothing where there is no form for it.
pub(super) fn render(json: &mut String, media: &MediaContent, is_image: bool, rules: &Rules) {
    let (source, value, media_type) = match form(media, is_image, rules) {
        Form::Fault(_) => return,
        Form::Base64(media_type, data) => ("base64", data, Some(media_type)),
        Form::Text(text) => ("text", text, Some("text/plain".to_owned())),
        Form::Url(url) => ("url", url.to_owned(), None),
        Form::File(id) => ("file", id.to_owned(), None),
    };
    let kind = if is_image { "image" } else { "document" };
    json.push_str(r#"{"type":""#);
    json.push_str(kind);
    json.push_str(r#"","source":{"type":"#);
    push_string(json, source);
    if let Some(media_type) = media_type {
        push_member(json, "media_type", &media_type);
    }
    let name = match source {
        "url" => "url",
        "file" => "file_id",
        _ => "data",
    };
    push_member(json, name, &value);
    json.push('}');
    if !is_image {
        let title = media.extra.get("title").and_then(|title| title.as_str());
        if let Some(title) = title.or(media.name.as_deref()) {
            push_member(json, "title", title);
        }
        if let Some(context) = media.extra.get("context").and_then(|text| text.as_str()) {
            push_member(json, "context", context);
        }
        if let Some(citations) = media.extra.get("citations") {
            json.push_str(r#","citations":"#);
            json.push_str(&citations.to_string());
        }
    }
    json.push('}');
}

enum Form<'a> {
    Base64(String, String),
    Text(String),
    Url(&'a str),
    File(&'a str),
    Fault(&'static str),
}

fn form<'a>(media: &'a MediaContent, is_image: bool, rules: &Rules) -> Form<'a> {
    let given = media.media_type.as_deref();
    match &media.source {
        MediaSource::FileId(id) => Form::File(id),
        MediaSource::Base64(data) => bytes(data, given, is_image),
        MediaSource::Url(url) => match data_url(url) {
            Some((media_type, data)) => bytes(data, given.or(media_type), is_image),
            None if rules.media_urls => Form::Url(url),
            None => Form::Fault(
                "this endpoint fetches no images or documents: give their bytes as base64",
            ),
        },
        _ => Form::Fault("this version knows no form for such a source of media"),
    }
}

fn bytes(data: &str, given: Option<&str>, is_image: bool) -> Form<'static> {
    if is_image {
        return match image_type(data, given) {
            Some(media_type) => Form::Base64(media_type.to_owned(), data.to_owned()),
            None => Form::Fault(
                "the Messages API takes images of the types image/jpeg, image/png, image/gif and \
                 image/webp: convert the image",
            ),
        };
    }
    let given = given.unwrap_or("application/pdf");
    let kind = given.split(';').next().unwrap_or(given).trim();
    if kind == "application/pdf" {
        return Form::Base64(kind.to_owned(), data.to_owned());
    }
    let text = STANDARD
        .decode(data)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    match text {
        Some(text) if is_text(kind) && !text.trim().is_empty() => Form::Text(text),
        _ => Form::Fault(
            "the Messages API takes documents as PDF or as UTF-8 text: convert the file, or give its \
             text",
        ),
    }
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || matches!(
            kind,
            "application/json" | "application/xml" | "application/yaml" | "application/x-yaml"
        )
}

/// The type of the bytes; the given one only where they do not tell.
fn image_type(data: &str, given: Option<&str>) -> Option<&'static str> {
    let head = data.get(..16).unwrap_or(data);
    let bytes = STANDARD.decode(head).unwrap_or_default();
    let by_bytes = IMAGES.iter().find(|(_, start)| bytes.starts_with(start));
    if let Some((media_type, _)) = by_bytes {
        return Some(media_type);
    }
    let given = match given? {
        "image/jpg" => "image/jpeg",
        given => given,
    };
    IMAGES
        .iter()
        .map(|(media_type, _)| *media_type)
        .find(|media_type| given.eq_ignore_ascii_case(media_type))
}

/// Type and base64 text of a `data:` URL.
fn data_url(url: &str) -> Option<(Option<&str>, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some(((!media_type.is_empty()).then_some(media_type), data))
}
