//! A request of the Messages API, read back into messages and options.
//!
//! The wire joins neighbours of one role; they are parted again as far as it shows: a result is a message,
//! and so is each text of the user.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, ProviderData,
    ReasoningContent, ToolCall, ToolChoice, UnknownContent,
};
use serde_json::Value;

use crate::endpoint::reading::{self, Fields, word};
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
            let contents = reading::contents(&block["content"], part);
            messages.push(reading::result(word(&block["tool_use_id"]), contents));
        } else {
            open.push(part(block));
        }
    }
    close(&mut open, messages);
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

/// What is allowed of calls at once stands with the tool choice.
fn options(body: &Value) -> ChatClientRunOptions {
    let mut fields = Fields::of(body, &["messages", "system"]);
    let stop = fields.take("stop_sequences");
    let mut options = fields.options(
        &["max_tokens"],
        |tool| reading::declaration(tool, "input_schema"),
        tool_choice,
    );
    let stop = stop.as_array().into_iter().flatten();
    options.stop = stop.map(|stop| word(stop).to_owned()).collect();
    let one_by_one = body["tool_choice"]["disable_parallel_tool_use"].as_bool();
    options.parallel_tool_calls = one_by_one.map(|one_by_one| !one_by_one);
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
