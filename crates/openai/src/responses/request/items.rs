//! Messages as items of a request's input.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use raf_core::{ChatMessage, Content, MessageRole, ToolResult, all_differ};
use raf_wire::{CallIds, call_id, part_owner, push_member, push_string};

use super::assistant::{Ids, assistant, item_ids};
use super::parts::{prompt, push_part};
use super::{KnownCall, Writer};
use crate::request::is_media;
use crate::responses::dialect::ToolOutputForm;

/// What a tool result says that says nothing.
const NO_OUTPUT: &str = "(no output)";

/// The longest call id that OpenAI takes (NousResearch/hermes-agent#73538).
const LONGEST_CALL_ID: usize = 64;

/// A call id as it goes over the wire.
pub(super) fn wire_id(id: &str) -> Cow<'_, str> {
    call_id(id, CallIds::UpTo(LONGEST_CALL_ID))
}

/// Stands in a message's items for where the message is: they are rendered once and kept, wherever it
/// comes to stand. JSON text has no such character.
pub(super) const PLACE: char = '\u{1}';

/// Items without the marks in them; where these stood follows behind the items, between two marks.
fn without_marks(items: String) -> Arc<str> {
    if !items.contains(PLACE) {
        return items.into();
    }
    let mut plain = String::with_capacity(items.len() + 8);
    let mut places = Vec::new();
    for stretch in items.split(PLACE) {
        plain.push_str(stretch);
        places.push(plain.len().to_string());
    }
    // Behind the last stretch there is none.
    places.pop();
    plain.push(PLACE);
    plain.push_str(&places.join(","));
    plain.push(PLACE);
    plain.into()
}

/// Appends the items of the message at a place.
pub(super) fn push_items(text: &mut Vec<u8>, items: &str, at: usize) {
    let marked = items.strip_suffix(PLACE);
    let Some((items, places)) = marked.and_then(|items| items.rsplit_once(PLACE)) else {
        text.extend_from_slice(items.as_bytes());
        return;
    };
    let mut digits = [0; 20];
    let digits = decimal(at, &mut digits);
    let mut from = 0;
    for place in places.split(',').filter_map(|place| place.parse().ok()) {
        text.extend_from_slice(&items.as_bytes()[from..place]);
        text.extend_from_slice(digits);
        from = place;
    }
    text.extend_from_slice(&items.as_bytes()[from..]);
}

/// A number's digits, written to the end of a buffer.
fn decimal(mut number: usize, buffer: &mut [u8; 20]) -> &[u8] {
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &buffer[start..];
        }
    }
}

/// The messages' items, each message's as one text with commas between them; see [`push_items`].
pub(super) fn render(
    messages: &[ChatMessage],
    writer: &Writer<'_>,
    calls: &HashMap<&str, KnownCall>,
) -> Vec<Arc<str>> {
    let is_plain = are_unique(messages, writer);
    let mut seen = Ids::Seen(HashSet::new());
    let mut pieces = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let piece = match message.role() {
            MessageRole::Tool if !calls.is_empty() => {
                special_outputs(message, writer, calls).unwrap_or_else(|| kept(message, writer))
            }
            MessageRole::Assistant if !is_plain => {
                let ids = item_ids(message, writer);
                let mut own = HashSet::new();
                let repeats = ids.iter().any(|id| seen.has(id) || !own.insert(*id));
                let shell_calls = shell_calls(message, writer);
                if repeats || !shell_calls.is_empty() {
                    let piece = assistant(message, writer, &mut seen);
                    let following = &messages[at + 1..];
                    without_marks(with_shell_outputs(piece, &shell_calls, following))
                } else {
                    for id in ids {
                        seen.is_new(id);
                    }
                    kept(message, writer)
                }
            }
            _ => kept(message, writer),
        };
        pieces.push(piece);
    }
    pieces
}

/// Whether no item id stands in two places, and nothing asks for an item of its own behind it: then each
/// message is what it is by itself.
fn are_unique(messages: &[ChatMessage], writer: &Writer<'_>) -> bool {
    let mut ids: Vec<&str> = Vec::new();
    for message in messages {
        if message.is_plain_text() || message.role() != MessageRole::Assistant {
            continue;
        }
        if !shell_calls(message, writer).is_empty() {
            return false;
        }
        ids.extend(item_ids(message, writer));
    }
    all_differ(&mut ids)
}

/// The results of a message that answers a call which is not a function's under its own id.
fn special_outputs(
    message: &ChatMessage,
    writer: &Writer<'_>,
    calls: &HashMap<&str, KnownCall>,
) -> Option<Arc<str>> {
    let mut results = message.tool_results();
    results
        .any(|result| calls.contains_key(result.call_id()))
        .then(|| outputs(message, writer, |id| calls.get(id)).into())
}

fn outputs<'a>(
    message: &ChatMessage,
    writer: &Writer<'_>,
    known: impl Fn(&str) -> Option<&'a KnownCall>,
) -> String {
    let results = message.tool_results();
    let mut json = String::new();
    for result in results {
        if !json.is_empty() {
            json.push(',');
        }
        push_output(&mut json, result, writer, known(result.call_id()));
    }
    json
}

/// The items of a message by itself, rendered once where that can be kept.
fn kept(message: &ChatMessage, writer: &Writer<'_>) -> Arc<str> {
    let render = |message: &ChatMessage| match message.role() {
        MessageRole::Tool => outputs(message, writer, |_| None).into(),
        MessageRole::Assistant => {
            without_marks(assistant(message, writer, &mut Ids::of_unique(message)))
        }
        _ => prompt(message).into(),
    };
    match writer.render_key {
        Some(key) => message.rendered(key, render),
        None => render(message),
    }
}

fn push_output(
    json: &mut String,
    result: &ToolResult,
    writer: &Writer<'_>,
    known: Option<&KnownCall>,
) {
    let is_custom = known.is_some_and(|known| known.is_custom);
    json.push_str(if is_custom {
        r#"{"type":"custom_tool_call_output","call_id":"#
    } else {
        r#"{"type":"function_call_output","call_id":"#
    });
    match known {
        Some(known) => push_string(json, &known.wire_id),
        None => push_string(json, &wire_id(result.call_id())),
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
        return;
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
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(texts.join("\n")),
    };
    push_string(json, &text);
    json.push('}');
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

#[cfg(test)]
mod tests {
    use super::{PLACE, push_items, without_marks};

    #[test]
    fn marks_become_the_place_of_the_message() {
        for items in ["", "{}", "\u{1}", "a\u{1}b", "ä\u{1}\u{1},b\u{1}"] {
            let piece = without_marks(items.to_owned());
            for at in [0, 7, 4096] {
                let mut text = b"[".to_vec();
                push_items(&mut text, &piece, at);
                let expected = items.replace(PLACE, &at.to_string());
                assert_eq!(String::from_utf8(text).unwrap(), format!("[{expected}"));
            }
        }
    }
}
