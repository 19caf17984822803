//! A chat completion request, read back into messages and options.

use raf_core::{ChatMessage, Content, MessageRole, ToolCall};
use serde_json::Value;

use crate::endpoint::reading::{self, Fields, word};
use crate::request::ScriptedRequest;

/// The request; nothing if there are no messages. Its index is set when it is answered.
pub(super) fn decode(body: &Value) -> Option<ScriptedRequest> {
    let messages = body.get("messages")?.as_array()?;
    let messages: Vec<ChatMessage> = messages.iter().map(message).collect();
    let options = Fields::of(body, &["messages"]).options(
        &["max_completion_tokens", "max_tokens"],
        |tool| reading::declaration(&tool["function"], "parameters"),
        |choice| reading::choice(choice, "/function/name"),
    );
    Some(ScriptedRequest::new(0, &messages, options))
}

fn message(wire: &Value) -> ChatMessage {
    let contents = reading::contents(&wire["content"], part);
    let role = match word(&wire["role"]) {
        "system" => MessageRole::System,
        "developer" => MessageRole::Developer,
        "assistant" => MessageRole::Assistant,
        "tool" => return reading::result(word(&wire["tool_call_id"]), contents),
        _ => MessageRole::User,
    };
    let mut builder = ChatMessage::builder(role).contents(contents);
    for call in wire["tool_calls"].as_array().into_iter().flatten() {
        builder = builder.content(tool_call(call));
    }
    if !word(&wire["name"]).is_empty() {
        builder = builder.name(word(&wire["name"]));
    }
    builder.build()
}

fn tool_call(wire: &Value) -> ToolCall {
    let function = &wire["function"];
    ToolCall::new(
        word(&wire["id"]),
        word(&function["name"]),
        word(&function["arguments"]),
    )
}

fn part(wire: &Value) -> Content {
    reading::part(wire, "/image_url/url")
}
