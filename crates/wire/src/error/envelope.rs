//! Finds what a server says went wrong, in whatever shape it says it.

use std::borrow::Cow;
use std::time::Duration;

use crate::error::retry_hint::duration_text;
use crate::json::Json;

/// What an error body or event says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireError {
    /// What it says, in its own words.
    pub message: String,
    /// Codes, types and statuses, the most telling first.
    pub codes: Vec<String>,
    /// A code that is an HTTP status.
    pub status: Option<u16>,
    /// The id of the request, where the error has one.
    pub request_id: Option<String>,
    /// The wait that it asks for.
    pub retry_after: Option<Duration>,
}

/// How deep an error may be wrapped in others.
const DEPTH: usize = 8;

/// The error of a reply that says it went well by its HTTP status, if it holds one.
///
/// `error` that says nothing (`null`, `""`, `{}`) is none. Without `choices`, a flat error object
/// counts too: vLLM's `{"object":"error",…}`, `FastAPI`'s `detail`, Cloudflare's `errors`, `MiniMax`'s
/// `base_resp`.
pub fn in_band(frame: &Json) -> Option<WireError> {
    if let Some(error) = frame.filled("error") {
        let mut found = read_error(error);
        if found.request_id.is_none() {
            found.request_id = text(frame, "request_id");
        }
        return Some(found);
    }
    if let Some(base) = frame.present("base_resp")
        && base
            .get("status_code")
            .and_then(Json::as_count)
            .unwrap_or(0)
            != 0
    {
        return Some(read_error(base));
    }
    let word = |name: &str| frame.get(name).and_then(Json::as_str).unwrap_or("");
    if word("object") == "error" || word("type") == "error" {
        return Some(read_error(frame));
    }
    let has_choices = frame.present("choices").is_some();
    let has_message = ["message", "Message", "detail"]
        .iter()
        .any(|name| frame.filled(name).is_some());
    let has_code = ["code", "error_code", "status", "type", "detail", "__type"]
        .iter()
        .any(|name| frame.filled(name).is_some());
    let is_flat = !has_choices && has_message && has_code;
    let has_errors = !has_choices && frame.filled("errors").is_some();
    (is_flat || has_errors).then(|| read_error(frame))
}

/// Reads what is known to be an error.
pub fn read_error(value: &Json) -> WireError {
    let mut found = WireError::default();
    collect(value, &mut found, DEPTH);
    found
}

/// Reads an error body: JSON, else plain text; of an HTML page nothing is kept.
pub fn read_body(body: &[u8]) -> WireError {
    let text = String::from_utf8_lossy(body);
    let unframed = without_frame(text.trim());
    let text = unframed.trim();
    match Json::parse_repaired(text) {
        Ok(value) => read_error(&value),
        Err(_) => WireError {
            message: if text.starts_with('<') {
                String::new()
            } else {
                text.to_owned()
            },
            ..WireError::default()
        },
    }
}

/// The data of a body that is framed as an event, though it is none.
fn without_frame(text: &str) -> Cow<'_, str> {
    if !text.starts_with("data:") && !text.starts_with("event:") {
        return Cow::Borrowed(text);
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = data.map(str::trim).filter(|line| *line != "[DONE]");
    Cow::Owned(data.collect::<Vec<_>>().join("\n"))
}

fn collect(value: &Json, found: &mut WireError, depth: usize) {
    if depth == 0 {
        return;
    }
    match value {
        // Gemini wraps the body in a list; FastAPI and Cloudflare list several errors.
        Json::Array(items) => {
            for item in items {
                collect(item, found, depth - 1);
            }
        }
        Json::String(text) => collect_text(text, found, depth),
        Json::Object(_) => collect_object(value, found, depth),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn collect_object(value: &Json, found: &mut WireError, depth: usize) {
    for inner in ["error", "innererror", "errors", "upstream_error"] {
        if let Some(inner) = value.filled(inner) {
            collect(inner, found, depth - 1);
        }
    }
    for name in [
        "code",
        "error_code",
        "status_code",
        "type",
        "status",
        "reason",
        "__type",
    ] {
        if let Some(code) = value.get(name).and_then(Json::scalar_text) {
            add_code(&code, found);
        }
    }
    for name in [
        "message",
        "Message",
        "detail",
        "details",
        "msg",
        "status_msg",
    ] {
        if let Some(message) = value.filled(name) {
            collect(message, found, depth - 1);
        }
    }
    // OpenRouter keeps the words of the provider behind it here.
    if let Some(raw) = value
        .get("metadata")
        .and_then(|metadata| metadata.filled("raw"))
    {
        collect(raw, found, depth - 1);
    }
    if found.request_id.is_none() {
        found.request_id = text(value, "request_id");
    }
    if found.retry_after.is_none() {
        let delay = value.get("retryDelay").and_then(Json::as_str);
        // Cloudflare says it in seconds.
        let seconds = || value.get("retry_after").and_then(Json::as_count);
        found.retry_after = delay
            .and_then(duration_text)
            .or_else(|| seconds().map(Duration::from_secs));
    }
}

/// A text is a message, or an error body of a server further behind.
fn collect_text(text: &str, found: &mut WireError, depth: usize) {
    let text = text.trim();
    if text.starts_with(['{', '['])
        && let Ok(inner) = Json::parse(text)
    {
        return collect(&inner, found, depth - 1);
    }
    if text.is_empty() || found.message.contains(text) || text.starts_with('<') {
        return;
    }
    if let Some(inner) = wrapped(text) {
        return collect(&inner, found, depth - 1);
    }
    if !found.message.is_empty() {
        found.message.push_str("; ");
    }
    found.message.push_str(text);
}

/// The error body that a gateway has put in the middle of its own words
/// (`litellm.BadRequestError: AnthropicException - {…}. Received Model Group=m`).
fn wrapped(text: &str) -> Option<Json> {
    let start = text.find('{')?;
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Json>();
    let inner = documents.next()?.ok()?;
    let says = |name| {
        inner.filled(name).is_some_and(|inner| match inner {
            Json::Object(_) => inner.filled("message").is_some(),
            _ => false,
        })
    };
    says("error").then_some(inner)
}

fn add_code(code: &str, found: &mut WireError) {
    let code = code.trim();
    if let Ok(status) = code.parse::<u16>()
        && (400..600).contains(&status)
    {
        found.status.get_or_insert(status);
    } else if !code.is_empty()
        && !["error", "None", "null", "<nil>"].contains(&code)
        && code.len() <= 100
    {
        found.codes.push(code.to_owned());
    }
}

fn text(value: &Json, name: &str) -> Option<String> {
    value.filled(name)?.as_str().map(str::to_owned)
}
