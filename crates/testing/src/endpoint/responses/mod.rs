//! The Responses API, streamed and whole.

mod output;
mod request;

use raf_core::FinishReason;
use serde_json::{Value, json};

use super::chat_completions::{self, error};
use super::wire::Protocol;
use crate::reply::{Reply, Step};
use crate::server::HttpResponse;
use output::Output;

/// How Responses are read and written.
pub(super) const PROTOCOL: Protocol = Protocol {
    path: "/responses",
    decode: request::decode,
    refuse: error::response,
    fail: error::of,
    stream,
    whole,
};

/// The streamed response.
fn stream(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let steps = reply.streamed_steps();
    let mut output = Output::new(envelope(reply, request, number));
    let mut response = HttpResponse::events();
    if !steps.first().is_some_and(Step::is_fault) {
        response = sent(response, [output.created()]);
    }
    for step in &steps {
        response = match step {
            Step::Gate(latch) => response.gate(latch),
            Step::Error(failure) => {
                let mut event = error::object(failure);
                event["type"] = "error".into();
                return sent(response, [event]);
            }
            Step::Hang | Step::HangUntilCancelled => return response.hang(),
            Step::Cut { clean: true } => return response,
            Step::Cut { clean: false } => return response.abort(),
            said => sent(response, output.take(said)),
        };
    }
    sent(response, output.end(&ending(reply)))
}

/// The whole response: gates hold it back as one.
fn whole(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let mut output = Output::new(envelope(reply, request, number));
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
            said => drop(output.take(said)),
        }
    }
    let events = output.end(&ending(reply));
    let body = events.last().map(|event| event["response"].clone());
    let response = gates.into_iter().fold(
        HttpResponse::json(200, &body.unwrap_or_default()),
        HttpResponse::gate_headers,
    );
    if cut { response.abort() } else { response }
}

fn sent(response: HttpResponse, events: impl IntoIterator<Item = Value>) -> HttpResponse {
    events.into_iter().fold(response, |response, event| {
        response.event(event.to_string())
    })
}

fn envelope(reply: &Reply, request: &Value, number: usize) -> Value {
    let mut envelope = chat_completions::envelope(reply, request, number, "response");
    if envelope["id"] == format!("chatcmpl-{number}") {
        envelope["id"] = format!("resp_{number}").into();
    }
    envelope
}

/// Status and reason of the end.
fn ending(reply: &Reply) -> (&'static str, Value) {
    let cut = |reason: &str| ("incomplete", json!({"reason": reason}));
    match reply.finish_reason() {
        FinishReason::Length => cut("max_output_tokens"),
        FinishReason::ContentFilter => cut("content_filter"),
        FinishReason::Other(word) => cut(&word),
        _ => ("completed", Value::Null),
    }
}
