//! A reply as the server-sent events of a streamed chat completion.

use raf_core::{Content, Usage};
use serde_json::{Value, json};

use super::{envelope, error, finish_word, usage_object};
use crate::reply::{Reply, Step};
use crate::server::HttpResponse;

/// The streamed response.
pub(super) fn response(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let envelope = envelope(reply, request, number, "chat.completion.chunk");
    let wants_usage = request
        .pointer("/stream_options/include_usage")
        .and_then(Value::as_bool)
        == Some(true);
    let steps = reply.streamed_steps();
    let last_said = steps.iter().rposition(Step::is_in_message);
    let mut usage: Option<Usage> = None;
    let mut response = HttpResponse::events();
    let first = json!({"role": "assistant", "content": ""});
    if !steps.first().is_some_and(Step::is_fault) {
        response = response.event(choice(&envelope, &first, None));
    }
    for (index, step) in steps.iter().enumerate() {
        response = match step {
            Step::Gate(latch) => response.gate(latch),
            Step::Error(error) => return response.event(error::object(error).to_string()),
            Step::Hang | Step::HangUntilCancelled => return response.hang(),
            Step::Cut { clean: true } => return response,
            Step::Cut { clean: false } => return response.abort(),
            Step::Usage(report) => {
                usage = Some(report.clone());
                if wants_usage && last_said.is_some_and(|last| index < last) {
                    response.event(usage_chunk(&envelope, report))
                } else {
                    response
                }
            }
            said => match delta(said) {
                Some(delta) => response.event(choice(&envelope, &delta, None)),
                None => response,
            },
        };
    }
    response = response.event(choice(&envelope, &json!({}), Some(&finish_word(reply))));
    if let (true, Some(usage)) = (wants_usage, usage) {
        response = response.event(usage_chunk(&envelope, &usage));
    }
    response.event("[DONE]")
}

fn delta(step: &Step) -> Option<Value> {
    Some(match step {
        Step::Text(text) => json!({"content": text}),
        Step::Reasoning(text) => json!({"reasoning_content": text}),
        Step::ReasoningData(data) => json!({"reasoning_details": [data.data]}),
        Step::Content(Content::Text(text)) => json!({"content": text.text}),
        Step::Content(Content::Refusal(refusal)) => json!({"refusal": refusal.text}),
        Step::CallStart { position, head } => json!({"tool_calls": [{
            "index": position,
            "id": head.id,
            "type": "function",
            "function": {"name": head.name, "arguments": ""},
        }]}),
        Step::CallArguments { position, delta } => json!({"tool_calls": [{
            "index": position,
            "function": {"arguments": delta},
        }]}),
        _ => return None,
    })
}

fn choice(envelope: &Value, delta: &Value, finish_reason: Option<&str>) -> String {
    let mut chunk = envelope.clone();
    chunk["choices"] = json!([{
        "index": 0,
        "delta": delta,
        "logprobs": null,
        "finish_reason": finish_reason,
    }]);
    chunk.to_string()
}

fn usage_chunk(envelope: &Value, usage: &Usage) -> String {
    let mut chunk = envelope.clone();
    chunk["choices"] = json!([]);
    chunk["usage"] = usage_object(usage);
    chunk.to_string()
}
