//! A request of the Messages API, read back into messages and options.
//!
//! The wire joins neighbours of one role; they are parted again as far as it shows: a result is a message,
//! and so is each text of the user.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, ProviderData,
    ReasoningContent, ToolCall, ToolChoice, ToolDeclaration, ToolOutcome, ToolResult,
    UnknownContent,
};
use serde_json::{Map, Value};

use crate::request::ScriptedRequest;

/// The request; nothing if there are no messages. Its index is set when it is answered.
pub(super) fn decode(body: &Value) -> Option<ScriptedRequest> {
    let mut messages = Vec::new();
    for block in blocks(body.get("system")) {
        messages.push(ChatMessage::system(word(&block["text"])));
    }
    for turn in body.get("messages")?.as_array()? {
        let blocks = blocks(turn.get("content"));
        if turn["role"] == "assistant" {
            let parts = blocks.iter().map(part);
            messages.push(ChatMessage::new(MessageRole::Assistant, parts));
        } else {
            user(&blocks, &mut messages);
        }
    }
    Some(ScriptedRequest::new(0, &messages, options(body)))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn blocks(wire: Option<&Value>) -> Vec<Value> {
    match wire {
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn user(blocks: &[Value], messages: &mut Vec<ChatMessage>) {
    let mut open: Vec<Content> = Vec::new();
    let close = |open: &mut Vec<Content>, messages: &mut Vec<ChatMessage>| {
        if !open.is_empty() {
            messages.push(ChatMessage::new(MessageRole::User, std::mem::take(open)));
        }
    };
    for block in blocks {
        let kind = word(&block["type"]);
        if matches!(kind, "tool_result" | "text") {
            close(&mut open, messages);
        }
        if kind == "tool_result" {
            messages.push(ChatMessage::tool(result(block)));
        } else {
            open.push(part(block));
        }
    }
    close(&mut open, messages);
}

/// The outcome is on the wire as an error at most: it reads as `ok`.
fn result(block: &Value) -> ToolResult {
    let parts = blocks(block.get("content"));
    ToolResult::builder(word(&block["tool_use_id"]), ToolOutcome::Ok)
        .content(parts.iter().map(part).collect())
        .build()
}

fn part(block: &Value) -> Content {
    match word(&block["type"]) {
        "text" => Content::text(word(&block["text"])),
        "thinking" | "redacted_thinking" => {
            let mut data = block.as_object().cloned().unwrap_or_default();
            data.remove("type");
            data.remove("thinking");
            let data = ProviderData::new("messages", Value::Object(data));
            ReasoningContent::new(word(&block["thinking"]))
                .with_provider_data(data)
                .into()
        }
        "tool_use" => {
            let input = block["input"].to_string();
            Content::ToolCall(ToolCall::new(
                word(&block["id"]),
                word(&block["name"]),
                input,
            ))
        }
        "image" => {
            let source = &block["source"];
            Content::Image(match word(&source["type"]) {
                "base64" => {
                    MediaContent::base64(word(&source["data"]), word(&source["media_type"]))
                }
                _ => MediaContent::url(word(&source["url"])),
            })
        }
        _ => Content::Unknown(UnknownContent::new(block.clone())),
    }
}

fn options(body: &Value) -> ChatClientRunOptions {
    let mut rest: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    rest.remove("messages");
    rest.remove("system");
    let mut options = ChatClientRunOptions::new();
    let number = |value: Option<Value>| value.as_ref().and_then(Value::as_f64);
    options.model = rest.remove("model").map(|model| word(&model).to_owned());
    options.temperature = number(rest.remove("temperature"));
    options.top_p = number(rest.remove("top_p"));
    options.max_output_tokens = rest
        .remove("max_tokens")
        .and_then(|most| most.as_u64())
        .and_then(|most| most.try_into().ok());
    let stop = rest.remove("stop_sequences").unwrap_or_default();
    let stop = stop.as_array().into_iter().flatten();
    options.stop = stop.map(|stop| word(stop).to_owned()).collect();
    if let Some(choice) = rest.remove("tool_choice") {
        options.tool_choice = tool_choice(&choice);
        let one_by_one = choice["disable_parallel_tool_use"].as_bool();
        options.parallel_tool_calls = one_by_one.map(|one_by_one| !one_by_one);
    }
    let tools = rest.remove("tools").unwrap_or_default();
    let tools = tools.as_array().into_iter().flatten();
    options.tools = tools.map(declaration).collect();
    options.extra_body = rest;
    options
}

fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    match word(&choice["type"]) {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "any" => Some(ToolChoice::Required),
        "tool" => Some(ToolChoice::Named(word(&choice["name"]).to_owned())),
        _ => None,
    }
}

fn declaration(wire: &Value) -> ToolDeclaration {
    let declaration = ToolDeclaration::new(word(&wire["name"]), word(&wire["description"]));
    match wire.get("input_schema") {
        Some(schema) => declaration.with_parameters(schema),
        None => declaration,
    }
}
