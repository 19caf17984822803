//! A reply as one chat completion object.

use raf_core::Content;
use serde_json::{Map, Value, json};

use super::{envelope, error, finish_word, usage_object};
use crate::reply::{Reply, Step};
use crate::server::HttpResponse;

/// The whole response: gates hold it back as one.
pub(super) fn response(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let mut body = envelope(reply, request, number, "chat.completion");
    let mut said = Message::default();
    let mut gates = Vec::new();
    let mut cut = false;
    for step in &reply.steps {
        match step {
            Step::Gate(latch) => gates.push(latch),
            Step::Error(error) => return error::of(error),
            Step::Hang | Step::HangUntilCancelled => {
                return HttpResponse::new(200).hang_before_headers();
            }
            Step::Cut { .. } => {
                cut = true;
                break;
            }
            Step::Usage(usage) => body["usage"] = usage_object(usage),
            step => said.add(step),
        }
    }
    body["choices"] = json!([{
        "index": 0,
        "message": said.to_json(),
        "logprobs": null,
        "finish_reason": finish_word(reply),
    }]);
    let response = gates
        .into_iter()
        .fold(HttpResponse::json(200, &body), HttpResponse::gate_headers);
    if cut { response.abort() } else { response }
}

#[derive(Default)]
struct Message {
    text: String,
    fields: Map<String, Value>,
    calls: Vec<Value>,
}

impl Message {
    fn add(&mut self, step: &Step) {
        match step {
            Step::Text(text) => self.text.push_str(text),
            Step::Content(Content::Text(text)) => self.text.push_str(&text.text),
            Step::Reasoning(text) => self.append("reasoning_content", text),
            Step::Content(Content::Refusal(refusal)) => self.append("refusal", &refusal.text),
            Step::ReasoningData(data) => {
                let details = self.fields.entry("reasoning_details").or_insert(json!([]));
                details
                    .as_array_mut()
                    .expect("it starts as an array")
                    .push(data.data.clone());
            }
            Step::CallEnd { call, .. } => self.calls.push(json!({
                "id": call.id(),
                "type": "function",
                "function": {"name": call.name(), "arguments": call.arguments()},
            })),
            _ => {}
        }
    }

    fn append(&mut self, field: &str, text: &str) {
        let before = self.fields.get(field).and_then(Value::as_str).unwrap_or("");
        let joined = format!("{before}{text}");
        self.fields.insert(field.to_owned(), joined.into());
    }

    fn to_json(&self) -> Value {
        let mut message = self.fields.clone();
        message.insert("role".to_owned(), "assistant".into());
        let content = if self.text.is_empty() && !self.calls.is_empty() {
            Value::Null
        } else {
            self.text.as_str().into()
        };
        message.insert("content".to_owned(), content);
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls.clone().into());
        }
        Value::Object(message)
    }
}
