//! The output of a response as it grows: its items, and the events that tell of them.

use raf_core::{Content, Usage};
use serde_json::{Value, json};

use crate::reply::Step;

/// A response that has begun.
pub(super) struct Output {
    envelope: Value,
    items: Vec<Item>,
    usage: Value,
}

struct Item {
    json: Value,
    position: Option<u32>,
    is_open: bool,
}

impl Output {
    pub(super) fn new(envelope: Value) -> Self {
        Self {
            envelope,
            items: Vec::new(),
            usage: Value::Null,
        }
    }

    /// The event that the response has begun.
    pub(super) fn created(&self) -> Value {
        let response = self.response("in_progress", &Value::Null);
        json!({"type": "response.created", "response": response})
    }

    /// What a step adds, as events.
    pub(super) fn take(&mut self, step: &Step) -> Vec<Value> {
        match step {
            Step::Text(text) => self.text(text),
            Step::Content(Content::Text(text)) => self.text(&text.text),
            Step::Content(Content::Refusal(refusal)) => {
                let (at, mut events) = self.open("message");
                let part = json!({"type": "refusal", "refusal": refusal.text});
                push(&mut self.items[at].json["content"], part);
                events.push(piece("response.refusal.delta", at, &refusal.text));
                events
            }
            Step::Reasoning(text) => {
                let (at, mut events) = self.open("reasoning");
                append(&mut self.items[at].json["summary"], "summary_text", text);
                events.push(piece("response.reasoning_summary_text.delta", at, text));
                events
            }
            Step::ReasoningData(data) => {
                let (at, mut events) = self.open("reasoning");
                let opaque = data.data.as_str().map(str::to_owned);
                let opaque = opaque.unwrap_or_else(|| data.data.to_string());
                self.items[at].json["encrypted_content"] = opaque.into();
                events.extend(self.close(at));
                events
            }
            Step::CallStart { position, head } => {
                let call = json!({
                    "type": "function_call",
                    "id": format!("fc_{}", self.items.len()),
                    "status": "in_progress",
                    "call_id": head.id,
                    "name": head.name,
                    "arguments": "",
                });
                let mut events = self.close_last();
                events.push(self.add(call, Some(*position)));
                events
            }
            Step::CallArguments { position, delta } => {
                let Some(at) = self.call(*position) else {
                    return Vec::new();
                };
                let before = self.items[at].json["arguments"].as_str().unwrap_or("");
                self.items[at].json["arguments"] = format!("{before}{delta}").into();
                vec![piece("response.function_call_arguments.delta", at, delta)]
            }
            Step::CallEnd { position, call } => {
                let Some(at) = self.call(*position) else {
                    return Vec::new();
                };
                let item = &mut self.items[at].json;
                item["call_id"] = call.id().into();
                item["name"] = call.name().into();
                item["arguments"] = call.arguments().into();
                if !call.is_complete() {
                    item["status"] = "incomplete".into();
                }
                self.close(at)
            }
            Step::Usage(usage) => {
                self.usage = usage_object(usage);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// The last events: items that are open are done, and the response is.
    pub(super) fn end(&mut self, (status, reason): &(&str, Value)) -> Vec<Value> {
        let mut events: Vec<Value> = (0..self.items.len())
            .flat_map(|at| self.close(at))
            .collect();
        events.push(json!({
            "type": format!("response.{status}"),
            "response": self.response(status, reason),
        }));
        events
    }

    fn response(&self, status: &str, reason: &Value) -> Value {
        let mut response = self.envelope.clone();
        response["status"] = status.into();
        response["error"] = Value::Null;
        response["incomplete_details"] = reason.clone();
        response["output"] = self.items.iter().map(|item| item.json.clone()).collect();
        response["usage"] = self.usage.clone();
        response
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        let (at, mut events) = self.open("message");
        append(&mut self.items[at].json["content"], "output_text", text);
        events.push(piece("response.output_text.delta", at, text));
        events
    }

    /// The open item of this kind, made if the last one is another.
    fn open(&mut self, kind: &str) -> (usize, Vec<Value>) {
        let last = self.items.len().checked_sub(1);
        let is_it = |item: &Item| item.is_open && item.json["type"] == kind;
        if let Some(last) = last.filter(|&last| is_it(&self.items[last])) {
            return (last, Vec::new());
        }
        let mut events = self.close_last();
        let number = self.items.len();
        let item = if kind == "message" {
            json!({
                "type": "message",
                "id": format!("msg_{number}"),
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            })
        } else {
            json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": []})
        };
        events.push(self.add(item, None));
        (number, events)
    }

    fn add(&mut self, item: Value, position: Option<u32>) -> Value {
        let event = json!({
            "type": "response.output_item.added",
            "output_index": self.items.len(),
            "item": item,
        });
        self.items.push(Item {
            json: item,
            position,
            is_open: true,
        });
        event
    }

    fn call(&self, position: u32) -> Option<usize> {
        let is_it = |item: &Item| item.position == Some(position);
        self.items.iter().position(is_it)
    }

    /// Closes the last item, unless it is a call, which may go on beside others.
    fn close_last(&mut self) -> Vec<Value> {
        match self.items.last() {
            Some(last) if last.position.is_none() => self.close(self.items.len() - 1),
            _ => Vec::new(),
        }
    }

    fn close(&mut self, at: usize) -> Vec<Value> {
        let item = &mut self.items[at];
        if !std::mem::take(&mut item.is_open) {
            return Vec::new();
        }
        if item.json["status"] == "in_progress" {
            item.json["status"] = "completed".into();
        }
        vec![json!({
            "type": "response.output_item.done",
            "output_index": at,
            "item": item.json,
        })]
    }
}

fn piece(kind: &str, at: usize, delta: &str) -> Value {
    json!({"type": kind, "output_index": at, "content_index": 0, "delta": delta})
}

fn push(list: &mut Value, part: Value) {
    if let Some(parts) = list.as_array_mut() {
        parts.push(part);
    }
}

fn append(list: &mut Value, kind: &str, text: &str) {
    let Some(parts) = list.as_array_mut() else {
        return;
    };
    match parts.last_mut().filter(|part| part["type"] == kind) {
        Some(part) => {
            let before = part["text"].as_str().unwrap_or("");
            part["text"] = format!("{before}{text}").into();
        }
        None => parts.push(json!({"type": kind, "text": text})),
    }
}

/// Tokens as this wire has them.
fn usage_object(usage: &Usage) -> Value {
    let mut object = json!({
        "input_tokens": usage.input_tokens.unwrap_or(0),
        "output_tokens": usage.output_tokens.unwrap_or(0),
        "total_tokens": usage.total_tokens.unwrap_or(0),
    });
    if let Some(cached) = usage.cached_tokens {
        object["input_tokens_details"] = json!({"cached_tokens": cached});
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        object["output_tokens_details"] = json!({"reasoning_tokens": reasoning});
    }
    for (name, count) in &usage.extra {
        object[name] = (*count).into();
    }
    object
}
