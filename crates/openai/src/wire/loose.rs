//! The loose reading of a frame or body: every form that a server has been seen to send.

use std::borrow::Cow;

use raf_core::Result;
use serde_json::Map;

use raf_wire::{CallPiece, Json, LEGACY_CALL, WireReply, in_band, read_error};

use crate::response::Reply;
use crate::wire::finish::{Ending, ending};
use crate::wire::usage;

/// Tells the reply what a frame or a whole body says.
///
/// # Errors
/// The error that it holds: `error` non-empty, an error object in its stead, a choice that failed.
pub(crate) fn apply(frame: &Json, reply: &mut Reply) -> Result<()> {
    let member = |name| frame.get(name).and_then(Json::as_str).unwrap_or("");
    reply.identify(member("id"), member("model"));
    let choices = frame.get("choices").and_then(Json::as_array).unwrap_or(&[]);
    let groq = frame.get("x_groq");
    let places = [
        groq.and_then(|groq| groq.get("usage")),
        choices.first().and_then(|choice| choice.get("usage")),
        frame.get("usage"),
    ];
    for place in places.into_iter().flatten() {
        if let Some(reported) = usage::read(place) {
            reply.usage(reported);
        }
    }
    let found = in_band(frame).or_else(|| groq.and_then(in_band));
    // Text that came with the error is kept; the choice's own error is less telling.
    let applied = match first_choice(choices) {
        Some(choice) => apply_choice(choice, reply),
        None => Ok(()),
    };
    if let Some(error) = found {
        return Err(reply.in_band_error(&error));
    }
    applied
}

/// Whether a frame holds a message as a whole.
pub(crate) fn is_whole_answer(frame: &Json) -> bool {
    let choices = frame.get("choices").and_then(Json::as_array);
    choices.is_some_and(|choices| {
        choices
            .iter()
            .any(|choice| choice.present("message").is_some() || choice.present("text").is_some())
    })
}

/// The choice that counts: the one of index 0, or the only one that has none.
fn first_choice(choices: &[Json]) -> Option<&Json> {
    let index = |choice: &&Json| {
        let index = choice.present("index");
        index.is_none_or(|index| index.as_count() == Some(0))
    };
    choices
        .iter()
        .filter(|choice| choice.is_object())
        .find(index)
}

fn apply_choice(choice: &Json, reply: &mut Reply) -> Result<()> {
    if let Some(delta) = choice.present("delta") {
        reply.delta_begins();
        if !delta.is_object() {
            reply.text(&delta.scalar_text().unwrap_or_default());
        }
        apply_message(delta, reply)?;
    } else if let Some(message) = choice.present("message") {
        if reply.message_counts() {
            apply_message(message, reply)?;
        } else if !reply.has_calls() {
            // Text was streamed, the calls were not: they are no repetition.
            apply_calls(message, reply)?;
        }
    } else if let Some(text) = choice.get("text").and_then(Json::as_str) {
        reply.text(text);
    }
    let word = choice.get("finish_reason").and_then(Json::scalar_text);
    let word = word.unwrap_or_default();
    if let Some(error) = choice.filled("error") {
        return Err(reply.in_band_error(&read_error(error)));
    }
    if ending(&word) == Ending::Failed {
        return Err(reply.failed_ending(&word));
    }
    reply.finish_reason(&word);
    Ok(())
}

fn apply_message(message: &Json, reply: &mut Reply) -> Result<()> {
    apply_reasoning(message, reply);
    if let Some(content) = message.present("content") {
        apply_content(content, reply);
    }
    if let Some(refusal) = message.get("refusal").and_then(Json::as_str) {
        reply.refusal(refusal);
    }
    for image in message
        .get("images")
        .and_then(Json::as_array)
        .unwrap_or(&[])
    {
        reply.unknown_part(image);
    }
    apply_calls(message, reply)
}

fn apply_calls(message: &Json, reply: &mut Reply) -> Result<()> {
    if let Some(calls) = message.filled("tool_calls") {
        reply.calls_begin();
        let one = std::slice::from_ref(calls);
        for call in calls.as_array().unwrap_or(one) {
            apply_call(call, reply)?;
        }
    }
    if let Some(function) = message.filled("function_call") {
        reply.calls_begin();
        apply_function(Some(LEGACY_CALL), "", function, None, reply)?;
    }
    Ok(())
}

/// One field counts, however many say it.
fn apply_reasoning(message: &Json, reply: &mut Reply) {
    let fields = [
        "reasoning_content",
        "reasoning",
        "reasoning_text",
        "thinking",
    ];
    let text = fields
        .iter()
        .find_map(|field| message.filled(field)?.as_str());
    let details = message
        .get("reasoning_details")
        .and_then(Json::as_array)
        .unwrap_or(&[]);
    match text {
        Some(text) => reply.reasoning(text),
        None => {
            for detail in details {
                for field in ["text", "summary"] {
                    reply.reasoning(detail.get(field).and_then(Json::as_str).unwrap_or(""));
                }
            }
        }
    }
    reply.reasoning_details(details);
}

fn apply_content(content: &Json, reply: &mut Reply) {
    match content {
        Json::Array(parts) => {
            for part in parts {
                apply_part(part, reply);
            }
        }
        Json::Object(_) => apply_part(content, reply),
        other => reply.text(&other.scalar_text().unwrap_or_default()),
    }
}

fn apply_part(part: &Json, reply: &mut Reply) {
    let kind = part.get("type").and_then(Json::as_str).unwrap_or("");
    match kind {
        "thinking" | "reasoning" => {
            for field in ["thinking", "summary", "text", "reasoning", "content"] {
                reply.reasoning(&joined_text(part.get(field)));
            }
        }
        "refusal" => reply.refusal(&joined_text(part.get("refusal"))),
        _ => match part {
            Json::Object(_) => match part.get("text") {
                Some(text) => reply.text(&joined_text(Some(text))),
                None => reply.unknown_part(part),
            },
            other => reply.text(&other.scalar_text().unwrap_or_default()),
        },
    }
}

/// The text of a string, or of a list of parts.
fn joined_text(value: Option<&Json>) -> Cow<'_, str> {
    match value {
        Some(Json::String(text)) => Cow::Borrowed(text),
        Some(Json::Array(parts)) => parts
            .iter()
            .map(|part| match part {
                Json::String(text) => Cow::Borrowed(text.as_str()),
                part => joined_text(part.get("text")),
            })
            .collect::<String>()
            .into(),
        _ => Cow::Borrowed(""),
    }
}

fn apply_call(call: &Json, reply: &mut Reply) -> Result<()> {
    if !call.is_object() {
        return Ok(());
    }
    let index = call.get("index").and_then(Json::as_count);
    let id = call
        .get("id")
        .and_then(Json::scalar_text)
        .unwrap_or_default();
    let extra = call.filled("extra_content").map(|extra| {
        let mut members = Map::new();
        members.insert("extra_content".to_owned(), extra.to_value());
        members
    });
    let nothing = Json::Null;
    // Some servers leave the wrapper out: name and arguments stand beside the id.
    let function = match call.present("function") {
        Some(function) => function,
        None if call.present("name").is_some() || call.present("arguments").is_some() => call,
        None => &nothing,
    };
    apply_function(index, &id, function, extra, reply)
}

fn apply_function(
    index: Option<u64>,
    id: &str,
    function: &Json,
    extra: Option<Map<String, serde_json::Value>>,
    reply: &mut Reply,
) -> Result<()> {
    let name = function.get("name").and_then(Json::as_str).unwrap_or("");
    let arguments = match function.present("arguments") {
        None => Cow::Borrowed(""),
        Some(Json::String(text)) => Cow::Borrowed(text.as_str()),
        Some(value) => Cow::Owned(value.to_text()),
    };
    if index == Some(LEGACY_CALL) && name.is_empty() && arguments.is_empty() {
        return Ok(());
    }
    reply.call(CallPiece {
        index,
        id,
        name,
        arguments,
        extra,
    })
}
