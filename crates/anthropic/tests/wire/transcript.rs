//! From the body that a server refuses to the conversation that would naively have given it.

use raf_core::{
    ChatMessage, Content, MediaContent, MessageRole, ProviderData, ReasoningContent, TextContent,
    ToolCall, ToolErrorClass, ToolOutcome, ToolResult,
};
use raf_wire::{Json, provider_part};
use serde_json::{Map, Value, json};

use crate::checks::blocks;

/// The model of all cases.
pub(crate) const MODEL: &str = "m";

/// The conversation. What a past reply came with (thinking, whole input) is taken from the body that
/// works, where the refused one left it out or broke it; thinking that is in neither place of it was made
/// by another model.
pub(crate) fn read(asked: &Value, works: &Value, provider: &str) -> Vec<ChatMessage> {
    let mut messages = Vec::new();
    let system = match &asked["system"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        system => system.as_array().cloned().unwrap_or_default(),
    };
    for block in &system {
        messages.push(ChatMessage::new(MessageRole::System, [text(block)]));
    }
    let own: Vec<Value> = list(&works["messages"]).iter().flat_map(blocks).collect();
    for (place, message) in list(&asked["messages"]).iter().enumerate() {
        match message["role"].as_str().unwrap_or("") {
            "assistant" => {
                let past = &works["messages"][place];
                let given = blocks(message);
                let blocks = if past["role"] == "assistant" && is_broken(&given, &blocks(past)) {
                    blocks(past)
                } else {
                    given
                };
                let parts = blocks.iter().map(|block| assistant(block, &own, provider));
                messages.push(ChatMessage::new(MessageRole::Assistant, parts));
            }
            "system" | "developer" => {
                let parts = blocks(message);
                let parts = parts.iter().map(text);
                messages.push(ChatMessage::new(MessageRole::System, parts));
            }
            "tool" => {
                let id = word(&message["tool_call_id"]);
                let text = word(&message["content"]);
                messages.push(ChatMessage::tool(ToolResult::ok(id, text)));
            }
            _ => user(message, &mut messages),
        }
    }
    messages
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Whether the refused turn is not what the reply was.
fn is_broken(given: &[Value], past: &[Value]) -> bool {
    let is_thought = |block: &Value| word(&block["type"]).contains("thinking");
    past.iter().any(is_thought)
        || given
            .iter()
            .any(|block| word(&block["type"]).ends_with("_delta"))
}

fn text(block: &Value) -> Content {
    let mut text = TextContent::new(word(&block["text"]));
    if let Some(mark) = block.get("cache_control") {
        text.extra.insert("cache_control".to_owned(), mark.clone());
    }
    Content::Text(text)
}

fn assistant(block: &Value, own: &[Value], provider: &str) -> Content {
    match word(&block["type"]) {
        "text" => text(block),
        "thinking" | "redacted_thinking" => {
            let is_unsigned = block.get("data").is_none() && block.get("signature").is_none();
            let is_own = is_unsigned || own.contains(block);
            let mut data = Map::new();
            let model = if is_own { MODEL } else { "another-model" };
            data.insert("model".to_owned(), model.into());
            for name in ["data", "signature"] {
                if let Some(value) = block.get(name).filter(|value| *value != "") {
                    data.insert(name.to_owned(), value.clone());
                }
            }
            let data = ProviderData::new(provider, Value::Object(data));
            ReasoningContent::new(word(&block["thinking"]))
                .with_provider_data(data)
                .into()
        }
        "tool_use" => {
            let input = match &block["input"] {
                Value::String(text) => text.clone(),
                input => input.to_string(),
            };
            Content::ToolCall(ToolCall::new(
                word(&block["id"]),
                word(&block["name"]),
                input,
            ))
        }
        _ => provider_part(provider, &Json::from(block)),
    }
}

/// A message of the user: its results are tool messages, in their order among the rest.
fn user(message: &Value, messages: &mut Vec<ChatMessage>) {
    let mut parts = Vec::new();
    for block in blocks(message) {
        if block["type"] == "tool_result" {
            if !parts.is_empty() {
                messages.push(ChatMessage::new(
                    MessageRole::User,
                    std::mem::take(&mut parts),
                ));
            }
            messages.push(ChatMessage::tool(result(&block)));
        } else {
            parts.push(user_part(&block));
        }
    }
    if !parts.is_empty() || list(&message["content"]).is_empty() {
        messages.push(ChatMessage::new(MessageRole::User, parts));
    }
}

fn user_part(block: &Value) -> Content {
    match word(&block["type"]) {
        "text" => text(block),
        "image" => {
            let source = &block["source"];
            Content::Image(match word(&source["type"]) {
                "base64" => {
                    MediaContent::base64(word(&source["data"]), word(&source["media_type"]))
                }
                _ => MediaContent::url(word(&source["url"])),
            })
        }
        "document" => {
            let source = &block["source"];
            let data = word(&source["data"]);
            Content::File(MediaContent::base64(data, word(&source["media_type"])))
        }
        other => panic!("the runner does not know blocks of type '{other}'"),
    }
}

fn result(block: &Value) -> ToolResult {
    let outcome = if block["is_error"] == true {
        ToolOutcome::Error(ToolErrorClass::Failed)
    } else {
        ToolOutcome::Ok
    };
    let parts = match &block["content"] {
        Value::String(text) => vec![Content::text(text)],
        content => list(content).iter().map(user_part).collect(),
    };
    ToolResult::builder(word(&block["tool_use_id"]), outcome)
        .content(parts)
        .build()
}
