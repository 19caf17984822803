//! A request to `/responses`, read back into messages and options.

use raf_core::{ChatMessage, Content, MessageRole, ToolCall, UnknownContent};
use serde_json::Value;

use crate::endpoint::reading::{self, Fields, word};
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
    let options = Fields::of(body, &["input", "instructions"]).options(
        &["max_output_tokens"],
        |tool| reading::declaration(tool, "parameters"),
        |choice| reading::choice(choice, "/name"),
    );
    Some(ScriptedRequest::new(0, &messages, options))
}

fn take(item: &Value, messages: &mut Vec<ChatMessage>) {
    let text = |name: &str| word(&item[name]);
    match text("type") {
        "message" | "" => {
            let contents = reading::contents(&item["content"], part);
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
            let contents = reading::contents(&item["output"], part);
            messages.push(reading::result(text("call_id"), contents));
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

fn part(wire: &Value) -> Content {
    reading::part(wire, "/image_url")
}
