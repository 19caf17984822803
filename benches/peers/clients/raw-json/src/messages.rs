//! Messages by hand. Events are one struct with what any of them may have: a
//! tagged enum would be shorter, but serde buffers each event for it.

use std::process::ExitCode;

use bench_common::Result;
use bench_common::spec::{self, Wire};
use client_raw_json::{Api, RawJson, Reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

struct Messages;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    system: &'a str,
    messages: &'a [Message],
    stream: bool,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    tools: &'a [Value],
}

#[derive(Clone, Serialize)]
struct Message {
    role: &'static str,
    content: Vec<Block>,
}

#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
    },
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    index: usize,
    content_block: Option<Started>,
    delta: Option<Delta>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    ContentBlockStart,
    ContentBlockDelta,
    MessageDelta,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    output_tokens: u64,
}

fn message(role: &'static str, text: &str) -> Message {
    let text = text.into();
    let content = vec![Block::Text { text }];
    Message { role, content }
}

impl Api for Messages {
    const NAME: &'static str = "raw_json-messages";
    const WIRE: Wire = Wire::Messages;
    type Message = Message;
    type Request<'a> = Request<'a>;
    type Event = Event;

    fn headers(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request
            .header("x-api-key", spec::API_KEY)
            .header("anthropic-version", "2023-06-01")
    }

    fn system(_: &str) -> Option<Message> {
        None
    }

    fn user(text: &str) -> Message {
        message("user", text)
    }

    fn assistant(text: &str) -> Message {
        message("assistant", text)
    }

    fn request<'a>(model: &'a str, messages: &'a [Message], tools: &'a [Value]) -> Request<'a> {
        Request {
            model,
            max_tokens: 4096,
            system: spec::SYSTEM_PROMPT,
            messages,
            stream: true,
            tools,
        }
    }

    fn add(reply: &mut Reply, event: Event) {
        match event.kind {
            Kind::ContentBlockStart => {
                let started = event.content_block;
                if let Some((id, name)) = started.and_then(|block| block.id.zip(block.name)) {
                    let call = reply.call_at(event.index);
                    (call.id, call.name) = (id, name);
                }
            }
            Kind::ContentBlockDelta => {
                let Some(delta) = event.delta else { return };
                if let Some(text) = delta.text {
                    reply.text.push_str(&text);
                }
                if let Some(piece) = delta.partial_json {
                    reply.call_at(event.index).arguments.push_str(&piece);
                }
            }
            Kind::MessageDelta => {
                reply.finish_reason = event.delta.and_then(|delta| delta.stop_reason);
                reply.tokens = event.usage.map_or(0, |usage| usage.output_tokens);
            }
            Kind::Other => {}
        }
    }

    fn append(messages: &mut Vec<Message>, reply: Reply, results: Vec<String>) -> Result<()> {
        let mut content = Vec::with_capacity(reply.calls.len() + 1);
        if !reply.text.is_empty() {
            content.push(Block::Text { text: reply.text });
        }
        let mut answers = Vec::with_capacity(results.len());
        for (call, result) in reply.calls.into_iter().zip(results) {
            answers.push(Block::ToolResult {
                tool_use_id: call.id.clone(),
                content: result,
            });
            content.push(Block::ToolUse {
                id: call.id,
                name: call.name,
                input: serde_json::from_str(&call.arguments)?,
            });
        }
        messages.push(Message {
            role: "assistant",
            content,
        });
        messages.push(Message {
            role: "user",
            content: answers,
        });
        Ok(())
    }
}

fn main() -> ExitCode {
    bench_common::main::<RawJson<Messages>>()
}
