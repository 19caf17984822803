//! The Messages API, streamed and whole.

mod error;
mod request;
mod stream;
mod whole;

use raf_core::{Content, FinishReason, Usage};
use serde_json::{Map, Value, json};

use super::wire::Protocol;
use crate::reply::Reply;

/// How Messages are read and written.
pub(super) const PROTOCOL: Protocol = Protocol {
    path: "/messages",
    decode: request::decode,
    refuse: error::response,
    fail: error::of,
    stream: stream::response,
    whole: whole::response,
};

/// The message without its content and end.
fn envelope(reply: &Reply, request: &Value, number: usize) -> Value {
    let mut envelope = json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": request.get("model").cloned().unwrap_or_else(|| "scripted-model".into()),
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    });
    for metadata in reply.metadata_reports() {
        let given = [("id", &metadata.response_id), ("model", &metadata.model)];
        for (name, value) in given {
            if let Some(value) = value {
                envelope[name] = value.as_str().into();
            }
        }
        for (name, value) in &metadata.extra {
            envelope[name] = value.clone();
        }
    }
    envelope
}

/// The reply's end in the words of the wire.
fn stop_reason(reply: &Reply) -> String {
    match reply.finish_reason() {
        FinishReason::ToolCalls => "tool_use".to_owned(),
        FinishReason::Length => "max_tokens".to_owned(),
        FinishReason::ContentFilter => "refusal".to_owned(),
        FinishReason::Other(word) => word,
        _ => "end_turn".to_owned(),
    }
}

/// Tokens as the wire has them: what came from the cache or went there is not part of the input.
fn usage_object(usage: &Usage) -> Value {
    let written = usage.extra.get("cache_creation_input_tokens");
    let cached = usage.cached_tokens.unwrap_or(0) + written.copied().unwrap_or(0);
    let mut object = json!({
        "input_tokens": usage.input_tokens.unwrap_or(0).saturating_sub(cached),
        "output_tokens": usage.output_tokens.unwrap_or(0),
    });
    if let Some(cached) = usage.cached_tokens {
        object["cache_read_input_tokens"] = cached.into();
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        object["output_tokens_details"] = json!({"thinking_tokens": reasoning});
    }
    for (name, count) in &usage.extra {
        object[name] = (*count).into();
    }
    object
}

/// A block of the server's own: a part that no other protocol has, as it came.
fn server_block(content: &Content) -> Option<Value> {
    let Content::Unknown(part) = content else {
        return None;
    };
    let mut block: Map<String, Value> = part.value.as_object()?.clone();
    block.remove("raf_provider");
    Some(Value::Object(block))
}

/// The text that a part is on this wire.
fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::Text(text) => Some(&text.text),
        Content::Refusal(refusal) => Some(&refusal.text),
        _ => None,
    }
}

/// The signature of opaque data, or the data of a redacted thought.
fn opaque(data: &Value) -> (&'static str, String) {
    let member = |name: &str| data[name].as_str().map(str::to_owned);
    match member("data") {
        Some(secret) => ("data", secret),
        None => (
            "signature",
            member("signature").unwrap_or_else(|| data.to_string()),
        ),
    }
}
