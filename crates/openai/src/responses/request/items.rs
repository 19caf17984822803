//! Messages as items of a request's input.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::sync::Arc;

use raf_core::{ChatMessage, Content, MessageRole, ToolResult};
use raf_wire::{CallIds, call_id, part_owner, push_member, push_string};

use super::assistant::{assistant, item_ids};
use super::parts::{prompt, push_part};
use super::{KnownCall, Writer};
use crate::request::is_media;
use crate::responses::dialect::ToolOutputForm;

/// What a tool result says that says nothing.
const NO_OUTPUT: &str = "(no output)";

/// The longest call id that OpenAI takes (NousResearch/hermes-agent#73538).
const LONGEST_CALL_ID: usize = 64;

/// A call id as it goes over the wire.
pub(super) fn wire_id(id: &str) -> String {
    call_id(id, CallIds::UpTo(LONGEST_CALL_ID)).into_owned()
}

/// Stands in a message's items for where the message is: they are rendered once and kept, wherever it
/// comes to stand. JSON text has no such character.
pub(super) const PLACE: u8 = 1;

/// Appends the items of the message at a place.
pub(super) fn push_items(text: &mut Vec<u8>, items: &str, at: usize) {
    let items = items.as_bytes();
    let mut from = 0;
    for mark in memchr::memchr_iter(PLACE, items) {
        text.extend_from_slice(&items[from..mark]);
        write!(text, "{at}").expect("memory takes it");
        from = mark + 1;
    }
    text.extend_from_slice(&items[from..]);
}

/// The messages' items, each message's as one text with commas between them; see [`push_items`].
pub(super) fn render(
    messages: &[ChatMessage],
    writer: &Writer<'_>,
    calls: &HashMap<&str, KnownCall>,
) -> Vec<Arc<str>> {
    let mut seen: HashSet<Cow<'_, str>> = HashSet::new();
    let mut pieces = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let piece = match message.role() {
            MessageRole::Tool => {
                let results = message.tool_results();
                let special = |result: &ToolResult| calls.contains_key(result.call_id());
                if message.tool_results().any(special) {
                    results
                        .map(|result| output(result, writer, calls.get(result.call_id())))
                        .collect::<Vec<_>>()
                        .join(",")
                        .into()
                } else {
                    kept(message, writer, |message| {
                        let results = message.tool_results();
                        let outputs = results.map(|result| output(result, writer, None));
                        outputs.collect::<Vec<_>>().join(",").into()
                    })
                }
            }
            MessageRole::Assistant => {
                let ids = item_ids(message, writer);
                let mut own = HashSet::new();
                let repeats = ids.iter().any(|id| seen.contains(id) || !own.insert(&**id));
                let shell_calls = shell_calls(message, writer);
                if repeats || !shell_calls.is_empty() {
                    let piece = assistant(message, writer, &mut seen);
                    let following = &messages[at + 1..];
                    with_shell_outputs(piece, &shell_calls, following).into()
                } else {
                    seen.extend(ids);
                    kept(message, writer, |message| {
                        assistant(message, writer, &mut HashSet::new()).into()
                    })
                }
            }
            _ => kept(message, writer, |message| prompt(message).into()),
        };
        pieces.push(piece);
    }
    pieces
}

fn kept(
    message: &ChatMessage,
    writer: &Writer<'_>,
    render: impl FnOnce(&ChatMessage) -> Arc<str>,
) -> Arc<str> {
    match writer.render_key {
        Some(key) => message.rendered(key, render),
        None => render(message),
    }
}

fn output(result: &ToolResult, writer: &Writer<'_>, known: Option<&KnownCall>) -> String {
    let is_custom = known.is_some_and(|known| known.is_custom);
    let mut json = String::from(if is_custom {
        r#"{"type":"custom_tool_call_output","call_id":"#
    } else {
        r#"{"type":"function_call_output","call_id":"#
    });
    match known {
        Some(known) => push_string(&mut json, &known.wire_id),
        None => push_string(&mut json, &wire_id(result.call_id())),
    }
    json.push_str(r#","output":"#);
    let has_media = result.content().iter().any(is_media);
    if has_media && writer.rules.tool_output == ToolOutputForm::Parts {
        let mut list = String::from("[");
        for content in result.content() {
            push_part(&mut list, content);
        }
        list.push_str("]}");
        json.push_str(&list);
        return json;
    }
    let texts: Vec<&str> = result
        .content()
        .iter()
        .filter_map(Content::as_text)
        .filter(|text| !text.is_empty())
        .collect();
    let text = match texts[..] {
        [] if has_media => Cow::Borrowed("(see the message that follows the tool results)"),
        [] if result.outcome().is_ok() => Cow::Borrowed(NO_OUTPUT),
        [] => Cow::Borrowed(result.outcome().default_text()),
        _ => Cow::Owned(texts.join("\n")),
    };
    push_string(&mut json, &text);
    json.push('}');
    json
}

/// The calls that go back and that the caller answers with an item of its own, each once.
fn shell_calls<'a>(message: &'a ChatMessage, writer: &Writer<'_>) -> Vec<&'a str> {
    let contents = message.contents().iter();
    let calls = contents.filter_map(|content| match content {
        Content::Unknown(part) if part.kind() == "local_shell_call" => {
            let is_ours = part_owner(part).is_none_or(|owner| owner == writer.rules.name);
            let id = part.value.get("call_id")?.as_str()?;
            (writer.rules.hosted && is_ours).then_some(id)
        }
        _ => None,
    });
    let mut seen = HashSet::new();
    calls.filter(|id| seen.insert(*id)).collect()
}

/// Each call gets one output: those that nobody answered are answered as cancelled.
fn with_shell_outputs(mut piece: String, open: &[&str], following: &[ChatMessage]) -> String {
    for id in open {
        let answers = |content: &Content| match content {
            Content::Unknown(part) => {
                part.kind() == "local_shell_call_output" && part.value["call_id"] == *id
            }
            _ => false,
        };
        let mut contents = following.iter().flat_map(ChatMessage::contents);
        // One that stood there before is not asked for again.
        let is_asked = piece.contains(&format!("\"call_id\":\"{id}\""));
        if is_asked && !contents.any(answers) {
            piece.push_str(r#",{"type":"local_shell_call_output","call_id":"#);
            push_string(&mut piece, id);
            push_member(&mut piece, "output", "error: cancelled");
            piece.push('}');
        }
    }
    piece
}
