//! A reply as one message object.

use serde_json::{Value, json};

use super::{envelope, error, opaque, server_block, stop_reason, text_of, usage_object};
use crate::reply::{Reply, Step};
use crate::server::HttpResponse;

/// The whole response: gates hold it back as one.
pub(super) fn response(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let mut body = envelope(reply, request, number);
    let mut blocks: Vec<Value> = Vec::new();
    let mut gates = Vec::new();
    let mut cut = false;
    for step in &reply.steps {
        match step {
            Step::Gate(latch) => gates.push(latch),
            Step::Error(failure) => return error::of(failure),
            Step::Hang | Step::HangUntilCancelled => {
                return HttpResponse::new(200).hang_before_headers();
            }
            Step::Cut { .. } => {
                cut = true;
                break;
            }
            Step::Usage(usage) => body["usage"] = usage_object(usage),
            step => add(&mut blocks, step),
        }
    }
    body["content"] = blocks.into();
    body["stop_reason"] = stop_reason(reply).into();
    let response = gates
        .into_iter()
        .fold(HttpResponse::json(200, &body), HttpResponse::gate_headers);
    if cut { response.abort() } else { response }
}

fn add(blocks: &mut Vec<Value>, step: &Step) {
    match step {
        Step::Text(text) => append(blocks, "text", "text", text),
        Step::Reasoning(text) => append(blocks, "thinking", "thinking", text),
        Step::ReasoningData(data) => match opaque(&data.data) {
            ("data", secret) => blocks.push(json!({"type": "redacted_thinking", "data": secret})),
            (_, signature) => {
                append(blocks, "thinking", "thinking", "");
                if let Some(last) = blocks.last_mut() {
                    last["signature"] = signature.into();
                }
            }
        },
        Step::CallEnd { call, .. } => {
            let arguments = call.arguments();
            let input = match serde_json::from_str::<Value>(arguments) {
                Ok(input) => input,
                Err(_) if arguments.trim().is_empty() => json!({}),
                Err(_) => arguments.into(),
            };
            let kind = "tool_use";
            blocks
                .push(json!({"type": kind, "id": call.id(), "name": call.name(), "input": input}));
        }
        Step::Content(content) => match text_of(content) {
            Some(text) => append(blocks, "text", "text", text),
            None => blocks.extend(server_block(content)),
        },
        _ => {}
    }
}

/// Text goes on in the last block of its kind, unless that is signed.
fn append(blocks: &mut Vec<Value>, kind: &str, member: &str, text: &str) {
    let last = blocks
        .last_mut()
        .filter(|last| last["type"] == kind && last.get("signature").is_none());
    match last {
        Some(last) => {
            let before = last[member].as_str().unwrap_or("");
            last[member] = format!("{before}{text}").into();
        }
        None => blocks.push(json!({"type": kind, member: text})),
    }
}
