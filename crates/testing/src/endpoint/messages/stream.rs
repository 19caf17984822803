//! A reply as the server-sent events of a streamed message.

use std::collections::BTreeMap;

use raf_core::Usage;
use serde_json::{Value, json};

use super::{envelope, error, opaque, server_block, stop_reason, text_of, usage_object};
use crate::reply::{Reply, Step};
use crate::server::HttpResponse;

/// The streamed response.
pub(super) fn response(reply: &Reply, request: &Value, number: usize) -> HttpResponse {
    let steps = reply.streamed_steps();
    let mut usage: Option<Usage> = None;
    let mut events = Events {
        response: HttpResponse::events(),
        next: 0,
        open: None,
        calls: BTreeMap::new(),
    };
    if !steps.first().is_some_and(Step::is_fault) {
        let message = envelope(reply, request, number);
        events.send(&json!({"type": "message_start", "message": message}));
    }
    for step in &steps {
        match step {
            Step::Gate(latch) => events.response = events.response.gate(latch),
            Step::Error(failure) => {
                events.send(&error::object(failure));
                return events.response;
            }
            Step::Hang | Step::HangUntilCancelled => return events.response.hang(),
            Step::Cut { clean: true } => return events.response,
            Step::Cut { clean: false } => return events.response.abort(),
            Step::Usage(report) => usage = Some(report.clone()),
            said => events.say(said),
        }
    }
    events.close();
    let mut end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
    });
    if let Some(usage) = &usage {
        end["usage"] = usage_object(usage);
    }
    events.send(&end);
    events.send(&json!({"type": "message_stop"}));
    events.response
}

/// A block that text or thinking goes on in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text(u64),
    Thinking(u64),
}

struct Events {
    response: HttpResponse,
    next: u64,
    open: Option<Open>,
    /// The index of each open call's block.
    calls: BTreeMap<u32, u64>,
}

impl Events {
    fn send(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or("message");
        let text = format!("event: {name}\ndata: {event}\n\n");
        let response = std::mem::replace(&mut self.response, HttpResponse::new(200));
        self.response = response.write(text);
    }

    fn start(&mut self, block: &Value) -> u64 {
        let index = self.next;
        self.next += 1;
        let kind = "content_block_start";
        self.send(&json!({"type": kind, "index": index, "content_block": block}));
        index
    }

    fn delta(&mut self, index: u64, delta: &Value) {
        let kind = "content_block_delta";
        self.send(&json!({"type": kind, "index": index, "delta": delta}));
    }

    fn stop(&mut self, index: u64) {
        self.send(&json!({"type": "content_block_stop", "index": index}));
    }

    /// Ends the block of text or thinking that is open.
    fn close(&mut self) {
        if let Some(Open::Text(index) | Open::Thinking(index)) = self.open.take() {
            self.stop(index);
        }
    }

    fn text(&mut self, text: &str) {
        let index = if let Some(Open::Text(index)) = self.open {
            index
        } else {
            self.close();
            self.start(&json!({"type": "text", "text": ""}))
        };
        self.open = Some(Open::Text(index));
        self.delta(index, &json!({"type": "text_delta", "text": text}));
    }

    fn thinking(&mut self) -> u64 {
        let index = if let Some(Open::Thinking(index)) = self.open {
            index
        } else {
            self.close();
            self.start(&json!({"type": "thinking", "thinking": "", "signature": ""}))
        };
        self.open = Some(Open::Thinking(index));
        index
    }

    fn say(&mut self, step: &Step) {
        match step {
            Step::Text(text) => self.text(text),
            Step::Reasoning(text) => {
                let index = self.thinking();
                self.delta(index, &json!({"type": "thinking_delta", "thinking": text}));
            }
            Step::ReasoningData(data) => match opaque(&data.data) {
                ("data", secret) => {
                    self.close();
                    let index = self.start(&json!({"type": "redacted_thinking", "data": secret}));
                    self.stop(index);
                }
                (_, signature) => {
                    let index = self.thinking();
                    let delta = json!({"type": "signature_delta", "signature": signature});
                    self.delta(index, &delta);
                    self.close();
                }
            },
            Step::CallStart { position, head } => {
                self.close();
                let kind = "tool_use";
                let block = json!({"type": kind, "id": head.id, "name": head.name, "input": {}});
                let index = self.start(&block);
                self.calls.insert(*position, index);
            }
            Step::CallArguments { position, delta } => {
                if let Some(index) = self.calls.get(position).copied() {
                    let delta = json!({"type": "input_json_delta", "partial_json": delta});
                    self.delta(index, &delta);
                }
            }
            Step::CallEnd { position, .. } => {
                if let Some(index) = self.calls.remove(position) {
                    self.stop(index);
                }
            }
            Step::Content(content) => {
                if let Some(text) = text_of(content) {
                    self.text(text);
                } else if let Some(block) = server_block(content) {
                    self.close();
                    let index = self.start(&block);
                    self.stop(index);
                }
            }
            _ => {}
        }
    }
}
