//! A message of the assistant as items: what it says, and what an earlier response must come back with.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use raf_core::{ChatMessage, Content, ToolCall};
use raf_wire::{own_part, part_owner, push_member, push_string, tool_name};
use serde_json::{Map, Value};

use super::Writer;
use super::items::{PLACE, wire_id};
use super::parts::{begin_message, push_text, separate};
use crate::responses::dialect::ReasoningReplay;
use crate::responses::parts::{ITEM, MODEL, PLACE as ANSWER_PLACE};

/// An item, and where it stood in its answer.
struct Placed {
    place: Option<u64>,
    is_reasoning: bool,
    json: String,
}

/// The ids that a request has so far: of two items with one id the second goes without.
#[derive(Debug)]
pub(super) enum Ids {
    /// All differ.
    Differ,
    /// These.
    Seen(HashSet<String>),
}

impl Ids {
    /// Those of a message of which none stands elsewhere. Parts of the server's own may name each other.
    pub(super) fn of_unique(message: &ChatMessage) -> Self {
        let is_own = |content: &Content| matches!(content, Content::Unknown(_));
        if message.contents().iter().any(is_own) {
            return Self::Seen(HashSet::new());
        }
        Self::Differ
    }

    pub(super) fn has(&self, id: &str) -> bool {
        matches!(self, Self::Seen(seen) if seen.contains(id))
    }

    /// Takes an id in; returns whether it was not there.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        match self {
            Self::Differ => true,
            Self::Seen(seen) => seen.insert(id.to_owned()),
        }
    }
}

/// The items of a message of the assistant, in the order of the answer that they came in.
pub(super) fn assistant(message: &ChatMessage, writer: &Writer<'_>, ids: &mut Ids) -> String {
    let mut items: Vec<Placed> = Vec::new();
    let mut text = String::from("[");
    // Before which item the text stands that no mark names.
    let mut text_from = 0;
    for content in message.contents() {
        let (own, place) = own_item(content, writer);
        if text.len() == 1 {
            text_from = items.len();
        } else if place.is_none()
            && !matches!(content, Content::Text(_) | Content::Refusal(_))
            && !is_type(own.as_deref(), "message")
        {
            let json = said(&mut text, None, writer, items.len(), ids);
            items.extend(json.map(|json| placed(None, json)));
        }
        match content {
            Content::Text(part) if !part.text.is_empty() => {
                push_text(&mut text, "output_text", &part.text);
            }
            Content::Refusal(part) if !part.text.is_empty() => {
                separate(&mut text);
                text.push_str(r#"{"type":"refusal""#);
                push_member(&mut text, "refusal", &part.text);
                text.push('}');
            }
            Content::Unknown(_) if is_type(own.as_deref(), "message") => {
                let mark = own.unwrap_or_default().into_owned();
                let json = said(&mut text, Some(mark), writer, items.len(), ids);
                items.extend(json.map(|json| placed(place, json)));
            }
            Content::Unknown(part) => {
                let is_owned = part_owner(part).is_some();
                let is_foreign = is_owned && (own.is_none() || is_block(part.kind()));
                let value = own.unwrap_or(Cow::Borrowed(&part.value));
                let mut is_new = |name: &str| {
                    let id = value[name].as_str();
                    id.is_none_or(|id| ids.is_new(id))
                };
                let is_news = is_new("id") && is_new("call_id");
                if writer.rules.hosted && !is_foreign && value["type"] != "response" && is_news {
                    items.push(placed(place, value.to_string()));
                }
            }
            Content::Reasoning(part) => {
                let json = reasoning(&part.text, own, content, writer, ids);
                if let Some(json) = json {
                    items.push(Placed {
                        is_reasoning: true,
                        ..placed(place, json)
                    });
                }
            }
            Content::ToolCall(call) => {
                items.push(placed(place, function_call(call, own.as_deref(), ids)));
            }
            _ => {}
        }
    }
    if let Some(json) = said(&mut text, None, writer, items.len(), ids) {
        items.insert(text_from.min(items.len()), placed(None, json));
    }
    if items.iter().all(|item| item.place.is_some()) {
        items.sort_by_key(|item| item.place);
    }
    while !writer.rules.reasoning_last && items.last().is_some_and(|item| item.is_reasoning) {
        items.pop();
    }
    let items: Vec<String> = items.into_iter().map(|item| item.json).collect();
    items.join(",")
}

fn placed(place: Option<u64>, json: String) -> Placed {
    Placed {
        place,
        is_reasoning: false,
        json,
    }
}

/// Whether a part is a block of the Messages API, which a dialect of the same name may speak too.
fn is_block(kind: &str) -> bool {
    kind.ends_with("_tool_use") || kind.ends_with("_tool_result") || kind == "citations"
}

fn is_type(item: Option<&Value>, kind: &str) -> bool {
    item.is_some_and(|item| item["type"] == kind)
}

/// What this provider keeps of a part: the item as it came, and its place.
fn own_item<'a>(
    content: &'a Content,
    writer: &Writer<'_>,
) -> (Option<Cow<'a, Value>>, Option<u64>) {
    if let Content::Unknown(part) = content {
        let Some(mut item) = own_part(part, &writer.rules.name) else {
            return (None, None);
        };
        let members = item.as_object_mut();
        let place = members.and_then(|members| members.remove(ANSWER_PLACE));
        let place = place.and_then(|place| place.as_u64());
        return (Some(Cow::Owned(item)), place);
    }
    let own = kept_data(content, writer);
    let item = own.and_then(|own| own.get(ITEM)).map(Cow::Borrowed);
    let place = own.and_then(|own| own.get(ANSWER_PLACE)?.as_u64());
    (item, place)
}

/// What this provider keeps with a part.
fn kept_data<'a>(content: &'a Content, writer: &Writer<'_>) -> Option<&'a Value> {
    let data = match content {
        Content::Reasoning(part) => part.provider_data.as_ref(),
        Content::ToolCall(call) => call.provider_data(),
        _ => None,
    };
    let own = data.filter(|data| data.provider == *writer.rules.name);
    own.map(|own| &own.data)
}

/// The text so far as a message.
fn said(
    text: &mut String,
    mark: Option<Value>,
    writer: &Writer<'_>,
    number: usize,
    ids: &mut Ids,
) -> Option<String> {
    if text.len() == 1 {
        return None;
    }
    let mut content = std::mem::replace(text, String::from("["));
    content.push(']');
    let mut json = String::new();
    begin_message(&mut json, "assistant");
    json.push_str(&content);
    let mut members = match mark {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let id = members.remove("id");
    let id = id.as_ref().and_then(Value::as_str);
    let id = id.filter(|id| id.starts_with("msg") && ids.is_new(id));
    if let Some(id) = id {
        push_member(&mut json, "id", id);
    } else if writer.rules.strict_items {
        let _ = write!(json, r#","id":"msg_t{PLACE}_{number}""#);
    }
    if writer.rules.strict_items {
        members.insert("status".to_owned(), "completed".into());
    }
    for known in ["type", "role", "content", "annotations"] {
        members.remove(known);
    }
    push_members(&mut json, &members);
    json.push('}');
    Some(json)
}

fn reasoning(
    text: &str,
    own: Option<Cow<'_, Value>>,
    content: &Content,
    writer: &Writer<'_>,
    ids: &mut Ids,
) -> Option<String> {
    let Content::Reasoning(part) = content else {
        return None;
    };
    let id = |item: &Map<String, Value>| item.get("id").and_then(Value::as_str).map(str::to_owned);
    match writer.rules.reasoning_replay {
        ReasoningReplay::Encrypted => {
            let data = part.provider_data.as_ref()?;
            let Value::Object(mut item) = own?.into_owned() else {
                return None;
            };
            let of_model = data.data.get(MODEL).and_then(Value::as_str);
            let is_readable = of_model.is_none_or(|of| of == writer.model);
            let is_opaque = item.get("encrypted_content").and_then(Value::as_str);
            if !is_readable || is_opaque.is_none_or(str::is_empty) {
                return None;
            }
            item.retain(|_, value| !value.is_null());
            if !id(&item).is_some_and(|id| ids.is_new(&id)) {
                item.remove("id");
            }
            item.entry("summary")
                .or_insert_with(|| Value::Array(Vec::new()));
            item.insert("type".to_owned(), "reasoning".into());
            Some(Value::Object(item).to_string())
        }
        ReasoningReplay::Text => {
            let is_foreign = own.is_none() && part.provider_data.is_some();
            if text.is_empty() || is_foreign {
                return None;
            }
            let mut json = String::from(r#"{"type":"reasoning""#);
            let id = own.as_deref().and_then(Value::as_object).and_then(id);
            if let Some(id) = id.filter(|id| ids.is_new(id)) {
                push_member(&mut json, "id", &id);
            }
            json.push_str(r#","summary":[],"content":["#);
            push_text(&mut json, "reasoning_text", text);
            json.push_str("]}");
            Some(json)
        }
        ReasoningReplay::Never => None,
    }
}

fn function_call(call: &ToolCall, own: Option<&Value>, ids: &mut Ids) -> String {
    let members = own.and_then(Value::as_object);
    let member = |name: &str| members?.get(name)?.as_str();
    let is_custom = member("type") == Some("custom_tool_call");
    let prefix = if is_custom { "ct" } else { "fc" };
    let id = member("id").filter(|id| id.starts_with(prefix));
    let is_new = id.is_some_and(|id| ids.is_new(id));
    let mut json = String::with_capacity(192 + call.arguments().len());
    json.push_str(if is_custom {
        r#"{"type":"custom_tool_call","call_id":"#
    } else {
        r#"{"type":"function_call","call_id":"#
    });
    push_string(&mut json, &wire_id(call.id()));
    push_member(&mut json, "name", &tool_name(call.name()));
    if is_custom {
        push_member(
            &mut json,
            "input",
            member("input").unwrap_or(call.arguments()),
        );
    } else {
        push_member(&mut json, "arguments", call.arguments());
    }
    for (name, value) in members.into_iter().flatten() {
        match (name.as_str(), value) {
            ("id", Value::String(id)) if is_new => push_member(&mut json, "id", id),
            ("id" | "type" | "call_id" | "name" | "arguments" | "input", _) => {}
            _ => push_value(&mut json, name, value),
        }
    }
    json.push('}');
    json
}

fn push_members(json: &mut String, members: &Map<String, Value>) {
    for (name, value) in members {
        push_value(json, name, value);
    }
}

fn push_value(json: &mut String, name: &str, value: &Value) {
    json.push(',');
    push_string(json, name);
    json.push(':');
    json.push_str(&value.to_string());
}

/// The ids of the items that a message goes back as.
pub(super) fn item_ids<'a>(message: &'a ChatMessage, writer: &Writer<'_>) -> Vec<&'a str> {
    let contents = message.contents().iter();
    let ids = contents.filter_map(|content| {
        let item = match content {
            Content::Unknown(part) if part_owner(part)? == writer.rules.name => &part.value,
            Content::Unknown(_) => return None,
            content => kept_data(content, writer)?.get(ITEM)?,
        };
        item.get("id")?.as_str()
    });
    ids.collect()
}
