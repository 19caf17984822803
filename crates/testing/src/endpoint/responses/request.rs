//! A request to `/responses`, read back into messages and options.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, ToolCall, ToolChoice,
    ToolDeclaration, ToolOutcome, ToolResult, UnknownContent,
};
use serde_json::{Map, Value};

use crate::request::ScriptedRequest;

/// The request; nothing if there is no input. Its index is set when it is answered. Reasoning that
/// comes back is left out, as the other wires have no place for it.
pub(super) fn decode(body: &Value) -> Option<ScriptedRequest> {
    let mut messages: Vec<ChatMessage> = Vec::new();
    if let Some(instructions) = body.get("instructions").and_then(Value::as_str) {
        messages.push(ChatMessage::system(instructions));
    }
    match body.get("input")? {
        Value::String(text) => messages.push(ChatMessage::user(text)),
        Value::Array(items) => items.iter().for_each(|item| take(item, &mut messages)),
        _ => return None,
    }
    Some(ScriptedRequest::new(0, &messages, options(body)))
}

fn take(item: &Value, messages: &mut Vec<ChatMessage>) {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or("");
    match text("type") {
        "message" | "" => {
            let contents = contents(item.get("content"));
            match text("role") {
                "assistant" => said(contents, messages),
                "system" => messages.push(ChatMessage::new(MessageRole::System, contents)),
                "developer" => messages.push(ChatMessage::new(MessageRole::Developer, contents)),
                _ => messages.push(ChatMessage::new(MessageRole::User, contents)),
            }
        }
        "function_call" => {
            let call = ToolCall::new(text("call_id"), text("name"), text("arguments"));
            said(vec![Content::ToolCall(call)], messages);
        }
        "function_call_output" => {
            let result = ToolResult::builder(text("call_id"), ToolOutcome::Ok);
            let result = result.content(contents(item.get("output")));
            messages.push(ChatMessage::tool(result.build()));
        }
        "reasoning" => {}
        _ => said(
            vec![Content::Unknown(UnknownContent::new(item.clone()))],
            messages,
        ),
    }
}

/// Items of one reply are one message.
fn said(contents: Vec<Content>, messages: &mut Vec<ChatMessage>) {
    let is_reply = |message: &&mut ChatMessage| message.role() == MessageRole::Assistant;
    match messages.last_mut().filter(is_reply) {
        Some(last) => *last = last.to_builder().contents(contents).build(),
        None => messages.push(ChatMessage::new(MessageRole::Assistant, contents)),
    }
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
    match wire.get("image_url").and_then(Value::as_str) {
        Some(url) => Content::Image(MediaContent::url(url)),
        None => Content::Unknown(UnknownContent::new(wire.clone())),
    }
}

fn options(body: &Value) -> ChatClientRunOptions {
    let mut rest: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    rest.remove("input");
    rest.remove("instructions");
    let mut options = ChatClientRunOptions::new();
    let number = |value: Option<Value>| value.as_ref().and_then(Value::as_f64);
    options.model = rest
        .remove("model")
        .and_then(|model| model.as_str().map(str::to_owned));
    options.temperature = number(rest.remove("temperature"));
    options.top_p = number(rest.remove("top_p"));
    options.parallel_tool_calls = rest
        .remove("parallel_tool_calls")
        .as_ref()
        .and_then(Value::as_bool);
    options.max_output_tokens = rest
        .remove("max_output_tokens")
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
            .get("name")?
            .as_str()
            .map(|name| ToolChoice::Named(name.to_owned())),
    }
}

fn declaration(wire: &Value) -> ToolDeclaration {
    let text = |name: &str| wire.get(name).and_then(Value::as_str).unwrap_or("");
    let declaration = ToolDeclaration::new(text("name"), text("description"));
    match wire.get("parameters") {
        Some(schema) => declaration.with_parameters(schema),
        None => declaration,
    }
}
