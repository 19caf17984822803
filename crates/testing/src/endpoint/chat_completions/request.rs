//! A chat completion request, read back into messages and options.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, ToolCall, ToolChoice,
    ToolDeclaration, ToolResult, UnknownContent,
};
use serde_json::{Map, Value};

use crate::request::ScriptedRequest;

/// The request; nothing if there are no messages. Its index is set when it is answered.
pub(super) fn decode(body: &Value) -> Option<ScriptedRequest> {
    let messages: Vec<ChatMessage> = body
        .get("messages")?
        .as_array()?
        .iter()
        .map(message)
        .collect();
    Some(ScriptedRequest::new(0, &messages, options(body)))
}

fn message(wire: &Value) -> ChatMessage {
    let text = |name: &str| wire.get(name).and_then(Value::as_str).unwrap_or("");
    let contents = contents(wire.get("content"));
    let role = match text("role") {
        "system" => MessageRole::System,
        "developer" => MessageRole::Developer,
        "assistant" => MessageRole::Assistant,
        "tool" => {
            let outcome = raf_core::ToolOutcome::Ok;
            let result = ToolResult::builder(text("tool_call_id"), outcome).content(contents);
            return ChatMessage::tool(result.build());
        }
        _ => MessageRole::User,
    };
    let mut builder = ChatMessage::builder(role).contents(contents);
    let calls = wire.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        builder = builder.content(tool_call(call));
    }
    if !text("name").is_empty() {
        builder = builder.name(text("name"));
    }
    builder.build()
}

fn tool_call(wire: &Value) -> ToolCall {
    let text = |pointer: &str| wire.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    ToolCall::new(
        text("/id"),
        text("/function/name"),
        text("/function/arguments"),
    )
}

fn contents(wire: Option<&Value>) -> Vec<Content> {
    match wire {
        Some(Value::String(text)) => vec![Content::text(text)],
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(wire: &Value) -> Content {
    if let Some(text) = wire.get("text").and_then(Value::as_str) {
        return Content::text(text);
    }
    match wire.pointer("/image_url/url").and_then(Value::as_str) {
        Some(url) => Content::Image(MediaContent::url(url)),
        None => Content::Unknown(UnknownContent::new(wire.clone())),
    }
}

fn options(body: &Value) -> ChatClientRunOptions {
    let mut rest: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    rest.remove("messages");
    let mut options = ChatClientRunOptions::new();
    let number = |value: Option<Value>| value.as_ref().and_then(Value::as_f64);
    options.model = rest
        .remove("model")
        .and_then(|model| model.as_str().map(str::to_owned));
    options.temperature = number(rest.remove("temperature"));
    options.top_p = number(rest.remove("top_p"));
    options.seed = rest.remove("seed").as_ref().and_then(Value::as_i64);
    options.parallel_tool_calls = rest
        .remove("parallel_tool_calls")
        .as_ref()
        .and_then(Value::as_bool);
    options.max_output_tokens = rest
        .remove("max_completion_tokens")
        .or_else(|| rest.remove("max_tokens"))
        .and_then(|most| most.as_u64())
        .and_then(|most| most.try_into().ok());
    options.tool_choice = rest.remove("tool_choice").as_ref().and_then(tool_choice);
    let tools = rest.remove("tools").unwrap_or_default();
    options.tools = tools
        .as_array()
        .into_iter()
        .flatten()
        .map(declaration)
        .collect();
    options.extra_body = rest;
    options
}

fn tool_choice(wire: &Value) -> Option<ToolChoice> {
    match wire.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        _ => wire
            .pointer("/function/name")?
            .as_str()
            .map(|name| ToolChoice::Named(name.to_owned())),
    }
}

fn declaration(wire: &Value) -> ToolDeclaration {
    let text = |pointer: &str| wire.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let declaration = ToolDeclaration::new(text("/function/name"), text("/function/description"));
    match wire.pointer("/function/parameters") {
        Some(schema) => declaration.with_parameters(schema),
        None => declaration,
    }
}
