//! Chat Completions, streamed and whole.

pub(super) mod error;
mod request;
mod stream;
mod whole;

use serde_json::Value;

use super::wire::Protocol;
use crate::reply::Reply;

/// How Chat Completions are read and written.
pub(super) const PROTOCOL: Protocol = Protocol {
    path: "/chat/completions",
    decode: request::decode,
    refuse: error::response,
    fail: error::of,
    stream: stream::response,
    whole: whole::response,
};

/// The fields that every chunk and every whole completion begins with.
pub(super) fn envelope(reply: &Reply, request: &Value, number: usize, object: &str) -> Value {
    let mut envelope = serde_json::json!({
        "id": format!("chatcmpl-{number}"),
        "object": object,
        "created": 1_700_000_000,
        "model": request.get("model").cloned().unwrap_or_else(|| "scripted-model".into()),
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
fn finish_word(reply: &Reply) -> String {
    match reply.finish_reason() {
        raf_core::FinishReason::ToolCalls => "tool_calls".to_owned(),
        raf_core::FinishReason::Length => "length".to_owned(),
        raf_core::FinishReason::ContentFilter => "content_filter".to_owned(),
        raf_core::FinishReason::Other(word) => word,
        _ => "stop".to_owned(),
    }
}

/// Tokens as the wire has them.
fn usage_object(usage: &raf_core::Usage) -> Value {
    let mut object = serde_json::json!({
        "prompt_tokens": usage.input_tokens.unwrap_or(0),
        "completion_tokens": usage.output_tokens.unwrap_or(0),
        "total_tokens": usage.total_tokens.unwrap_or(0),
    });
    if let Some(cached) = usage.cached_tokens {
        object["prompt_tokens_details"] = serde_json::json!({"cached_tokens": cached});
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        object["completion_tokens_details"] = serde_json::json!({"reasoning_tokens": reasoning});
    }
    for (name, count) in &usage.extra {
        object[name] = (*count).into();
    }
    object
}
