//! The loose reading of an event or a body: every form that a server has been seen to send.

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::{Json, in_band};

use super::call::member_text;
use super::came::{Came, arguments_member};
use super::item::{ItemKind, Key, ThoughtKind};
use super::reply::ResponsesReply;

/// Tells the reply what an event says, or a response as a whole.
///
/// # Errors
/// The error that it is.
pub(super) fn apply(name: &str, event: &Json, reply: &mut ResponsesReply) -> Result<()> {
    reply.failure_is_explained(event)?;
    let kind = event.get("type").and_then(Json::as_str).unwrap_or(name);
    reply.sequence(event.get("sequence_number").and_then(Json::as_count));
    let key = Key {
        index: event.get("output_index").and_then(Json::as_count),
        id: text(event, "item_id"),
    };
    let part = ["content_index", "summary_index"]
        .iter()
        .find_map(|name| event.get(name)?.as_count())
        .unwrap_or(0);
    let delta = || scalar(event.get("delta"));
    match kind.strip_prefix("response.").unwrap_or(kind) {
        "created" | "in_progress" | "queued" => {
            let response = event.present("response").unwrap_or(event);
            reply.identify_by(response);
            return reply.error_of(response);
        }
        "output_item.added" => {
            if let Some(item) = event.present("item") {
                reply.item_announced(&Came::Value(item), key.index)?;
            }
        }
        "output_item.done" => {
            if let Some(item) = event.present("item") {
                reply.item_done(&Came::Value(item), key.index)?;
            }
        }
        "output_text.delta" => reply.text_piece(key, part, &delta()),
        "output_text.done" => reply.text_whole(key, part, &scalar(event.get("text"))),
        "refusal.delta" => reply.refusal_piece(key, part, &delta()),
        "refusal.done" => reply.refusal_whole(key, part, &scalar(event.get("refusal"))),
        "content_part.done" => {
            if let Some(inner) = event.present("part") {
                let (words, refusal) = (scalar(inner.get("text")), scalar(inner.get("refusal")));
                apply_part(text(inner, "type"), &words, &refusal, key, part, reply);
            }
        }
        "output_text.annotation.added" => {
            if let Some(annotation) = event.present("annotation") {
                reply.annotation(key, annotation);
            }
        }
        "reasoning_summary_text.delta" => {
            reply.thought_piece(key, ThoughtKind::Summary, part, &delta());
        }
        "reasoning_summary_text.done" => {
            reply.thought_whole(key, ThoughtKind::Summary, part, &scalar(event.get("text")));
        }
        "reasoning_summary_part.done" => {
            let text = event.get("part").and_then(|part| part.get("text"));
            reply.thought_whole(key, ThoughtKind::Summary, part, &scalar(text));
        }
        "reasoning_text.delta" => reply.thought_piece(key, ThoughtKind::Text, part, &delta()),
        "reasoning_text.done" => {
            reply.thought_whole(key, ThoughtKind::Text, part, &scalar(event.get("text")));
        }
        "function_call_arguments.delta" => {
            reply.argument_piece(ItemKind::Function, key, delta())?;
        }
        "function_call_arguments.done" => arguments_done(ItemKind::Function, key, event, reply),
        "custom_tool_call_input.delta" => reply.argument_piece(ItemKind::Custom, key, delta())?,
        "custom_tool_call_input.done" => arguments_done(ItemKind::Custom, key, event, reply),
        "completed" | "incomplete" | "failed" | "cancelled" | "done" => {
            let word = kind.strip_prefix("response.").unwrap_or(kind);
            let response = event.present("response").unwrap_or(event);
            return reply.ends(word, response);
        }
        "error" => return reply.error_event_of(event),
        _ => {
            let whole = event.present("response").unwrap_or(event);
            if is_response(event) || is_response(whole) && kind.is_empty() {
                return reply.ends("", whole);
            }
            if event.present("choices").is_some() {
                return Err(reply.wrong_protocol());
            }
            if let Some(found) = in_band(event) {
                return Err(reply.error(&found));
            }
        }
    }
    Ok(())
}

fn arguments_done(kind: ItemKind, key: Key<'_>, event: &Json, reply: &mut ResponsesReply) {
    let arguments = member_text(event, arguments_member(kind));
    reply.arguments_done(kind, key, arguments, text(event, "name"));
}

/// Whether it is a response as a whole.
pub(super) fn is_response(value: &Json) -> bool {
    let is_event = value.get("type").and_then(Json::as_str).is_some();
    !is_event
        && (text(value, "object") == "response"
            || value.get("output").and_then(Json::as_array).is_some())
}

/// A content part as a whole.
pub(super) fn apply_part(
    kind: &str,
    text: &str,
    refusal: &str,
    key: Key<'_>,
    part: u64,
    reply: &mut ResponsesReply,
) {
    match kind {
        "refusal" => reply.refusal_whole(key, part, refusal),
        "output_text" | "text" | "input_text" => reply.text_whole(key, part, text),
        "summary_text" => reply.thought_whole(key, ThoughtKind::Summary, part, text),
        "reasoning_text" => reply.thought_whole(key, ThoughtKind::Text, part, text),
        _ => {}
    }
}

/// The texts of a list of parts, or of a text in its stead: those of these types.
pub(super) fn part_texts(list: Option<&Json>, types: &[&str], member: &str) -> Vec<String> {
    match list {
        Some(Json::String(text)) if types.contains(&"text") => vec![text.clone()],
        Some(Json::Array(parts)) => parts
            .iter()
            .filter(|part| types.contains(&text(part, "type")))
            .map(|part| scalar(part.get(member)).into_owned())
            .collect(),
        _ => Vec::new(),
    }
}

pub(super) fn text<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::as_str).unwrap_or("")
}

fn scalar(value: Option<&Json>) -> Cow<'_, str> {
    match value {
        Some(Json::Object(members)) => {
            let inner = members.iter().find(|(name, _)| name == "text");
            inner.map_or(Cow::Borrowed(""), |(_, text)| scalar(Some(text)))
        }
        Some(value) => value.scalar_text().unwrap_or_default(),
        None => Cow::Borrowed(""),
    }
}
