//! Responses by hand, stateless. Events are one struct with what any of them
//! may have: a tagged enum would be shorter, but serde buffers each event for it.

use std::process::ExitCode;

use bench_common::Result;
use bench_common::spec::{self, Wire};
use client_raw_json::{Api, RawJson, Reply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

struct Responses;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    instructions: &'a str,
    input: &'a [Item],
    store: bool,
    stream: bool,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    tools: &'a [Value],
}

#[derive(Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        role: &'static str,
        content: String,
    },
    FunctionCall {
        call_id: String,
        name: String,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: String,
    },
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    output_index: usize,
    item: Option<Added>,
    delta: Option<String>,
    response: Option<Whole>,
}

#[derive(Deserialize)]
enum Kind {
    #[serde(rename = "response.output_item.added")]
    ItemAdded,
    #[serde(rename = "response.output_text.delta")]
    Text,
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments,
    #[serde(rename = "response.completed")]
    Completed,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Added {
    call_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Whole {
    status: String,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: u64,
}

fn message(role: &'static str, text: &str) -> Item {
    let content = text.into();
    Item::Message { role, content }
}

impl Api for Responses {
    const NAME: &'static str = "raw_json-responses";
    const WIRE: Wire = Wire::Responses;
    type Message = Item;
    type Request<'a> = Request<'a>;
    type Event = Event;

    fn headers(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        request.bearer_auth(spec::API_KEY)
    }

    fn system(_: &str) -> Option<Item> {
        None
    }

    fn user(text: &str) -> Item {
        message("user", text)
    }

    fn assistant(text: &str) -> Item {
        message("assistant", text)
    }

    fn request<'a>(model: &'a str, input: &'a [Item], tools: &'a [Value]) -> Request<'a> {
        Request {
            model,
            instructions: spec::SYSTEM_PROMPT,
            input,
            store: false,
            stream: true,
            tools,
        }
    }

    fn add(reply: &mut Reply, event: Event) {
        match (event.kind, event.delta) {
            (Kind::Text, Some(text)) => reply.text.push_str(&text),
            (Kind::Arguments, Some(piece)) => {
                reply.call_at(event.output_index).arguments.push_str(&piece);
            }
            (Kind::ItemAdded, _) => {
                if let Some((id, name)) = event.item.and_then(|item| item.call_id.zip(item.name)) {
                    let call = reply.call_at(event.output_index);
                    (call.id, call.name) = (id, name);
                }
            }
            (Kind::Completed, _) => {
                let Some(whole) = event.response else { return };
                reply.finish_reason = Some(whole.status);
                reply.tokens = whole.usage.map_or(0, |usage| usage.total_tokens);
            }
            _ => {}
        }
    }

    fn append(input: &mut Vec<Item>, reply: Reply, results: Vec<String>) -> Result<()> {
        if !reply.text.is_empty() {
            input.push(message("assistant", &reply.text));
        }
        let mut outputs = Vec::with_capacity(results.len());
        for (call, output) in reply.calls.into_iter().zip(results) {
            outputs.push(Item::FunctionCallOutput {
                call_id: call.id.clone(),
                output,
            });
            input.push(Item::FunctionCall {
                call_id: call.id,
                name: call.name,
                arguments: call.arguments,
            });
        }
        input.extend(outputs);
        Ok(())
    }
}

fn main() -> ExitCode {
    bench_common::main::<RawJson<Responses>>()
}
