//! The conversation behind a request case: what a client had, of which a naive one made the body that is
//! rejected.
//!
//! What earlier replies came with (reasoning, items of the server's own, members of calls) is taken from
//! the body that works, where the rejected one left it out; what the rejected one has too much, the
//! client has too.

use std::collections::HashMap;

use raf_core::{
    ChatMessage, Content, MediaContent, MessageRole, ProviderData, ReasoningContent, ToolCall,
    ToolOutcome, ToolResult, UnknownContent,
};
use raf_testing::wire::{WireCase, list};
use serde_json::{Map, Value, json};

use crate::checks::kind;

/// The messages of a case, their items made by this provider.
pub(crate) fn read_history(case: &WireCase, provider: &str) -> Vec<ChatMessage> {
    let input = &case.json["input"];
    let (rejected, must_send) = (&input["rejected_wire"], &input["must_send"]);
    let condition = input["condition"].as_str().unwrap_or("");
    let is_foreign = condition.contains("another provider");
    let made_by = if is_foreign { "another" } else { provider };
    let mut reader = Reader {
        provider: made_by.to_owned(),
        model: rejected["model"].as_str().unwrap_or("").to_owned(),
        messages: Vec::new(),
        open: Vec::new(),
        outputs: HashMap::new(),
    };
    let is_system = |item: &&Value| item["role"] == "system";
    let has_system = list(&rejected["input"]).iter().any(|item| is_system(&item));
    let instructions = [rejected, must_send]
        .iter()
        .find_map(|body| body["instructions"].as_str());
    if let Some(instructions) = instructions.filter(|_| !has_system) {
        reader.messages.push(ChatMessage::system(instructions));
    }
    for item in merged(list(&rejected["input"]), list(&must_send["input"])) {
        reader.item(&item);
    }
    reader.close();
    mark_held(&mut reader.messages, must_send, provider);
    reader.messages
}

/// Where the request that works goes on with a response, what it leaves out is that response and what
/// came before it.
fn mark_held(messages: &mut [ChatMessage], must_send: &Value, provider: &str) {
    let Some(id) = must_send["previous_response_id"].as_str() else {
        return;
    };
    let is_sent = |call: &ToolCall| {
        let sent = list(&must_send["input"]).iter();
        let mut calls = sent.filter(|item| kind(item).ends_with("_call"));
        calls.any(|item| item["call_id"] == call.id())
    };
    let replies = messages.iter_mut().rev();
    let mut replies = replies.filter(|message| message.role() == MessageRole::Assistant);
    if let Some(held) = replies.find(|message| !message.tool_calls().any(is_sent)) {
        let mark = json!({"type": "response", "id": id, "raf_provider": provider});
        let mark = Content::Unknown(UnknownContent::new(mark));
        *held = held.to_builder().content(mark).build();
    }
}

/// What makes two items the same one.
fn identity(item: &Value) -> Value {
    let id = match kind(item) {
        "message" => json!([item["role"], item["content"]]),
        kind if item.get("call_id").is_some() && kind != "local_shell_call" => {
            item["call_id"].clone()
        }
        _ => item["id"].clone(),
    };
    json!([kind(item), id])
}

/// The items that the client had.
fn merged(rejected: &[Value], must_send: &[Value]) -> Vec<Value> {
    let is_in =
        |list: &[Value], item: &Value| list.iter().any(|other| identity(other) == identity(item));
    let is_reordered = rejected.iter().all(|item| is_in(must_send, item))
        && must_send.iter().all(|item| is_in(rejected, item));
    let (base, other) = if is_reordered {
        (must_send, rejected)
    } else {
        (rejected, must_send)
    };
    let mut merged: Vec<Value> = Vec::new();
    let mut left = other.iter().peekable();
    for item in base {
        // Reasoning and items of the server's own that stand before this one in the other body.
        if is_in(other, item) {
            while let Some(before) = left.next_if(|of| identity(of) != identity(item)) {
                let is_opaque = !matches!(
                    kind(before),
                    "message" | "function_call" | "function_call_output"
                );
                if is_opaque && !is_in(base, before) && !is_reordered {
                    merged.push(before.clone());
                }
            }
            if let Some(same) = left.next() {
                merged.push(laid_over(same, item));
                continue;
            }
        }
        merged.push(item.clone());
    }
    merged
}

fn laid_over(under: &Value, over: &Value) -> Value {
    let mut members = under.as_object().cloned().unwrap_or_default();
    members.extend(over.as_object().cloned().unwrap_or_default());
    // The id that a server gave stands in both, or in none.
    if over.get("id").is_none() && kind(over) != "function_call" {
        members.remove("id");
    }
    Value::Object(members)
}

struct Reader {
    provider: String,
    model: String,
    messages: Vec<ChatMessage>,
    /// The parts of the assistant's open message.
    open: Vec<Content>,
    /// The outputs behind it.
    outputs: HashMap<String, ChatMessage>,
}

impl Reader {
    fn item(&mut self, item: &Value) {
        let text = |name: &str| item[name].as_str().unwrap_or("");
        match kind(item) {
            "message" if text("role") == "assistant" => {
                self.begin_model();
                let parts = list(&item["content"]).iter();
                let texts: String = parts.filter_map(|part| part["text"].as_str()).collect();
                self.open.push(Content::text(texts));
                if item.get("id").is_some() || item.get("phase").is_some() {
                    let mut mark = item.clone();
                    if let Some(members) = mark.as_object_mut() {
                        members.remove("content");
                        members.insert("type".to_owned(), "message".into());
                    }
                    self.own_part(&mark);
                }
            }
            "message" => {
                self.close();
                let role = match text("role") {
                    "system" => MessageRole::System,
                    "developer" => MessageRole::Developer,
                    _ => MessageRole::User,
                };
                let parts = list(&item["content"]).iter().map(read_part);
                self.messages.push(ChatMessage::new(role, parts));
            }
            "function_call" | "custom_tool_call" => {
                self.begin_model();
                let call = self.call(item);
                self.open.push(Content::ToolCall(call));
            }
            "function_call_output" | "custom_tool_call_output" => self.output(item),
            "reasoning" => {
                self.begin_model();
                let parts = list(&item["content"]).iter();
                let mut words: String = parts.filter_map(|part| part["text"].as_str()).collect();
                if words.is_empty() {
                    let parts = list(&item["summary"]).iter();
                    words = parts.filter_map(|part| part["text"].as_str()).collect();
                }
                let mut part = ReasoningContent::new(words);
                if item.get("id").is_some() {
                    let data = json!({"item": item, "model": self.model});
                    part = part.with_provider_data(ProviderData::new(&self.provider, data));
                }
                self.open.push(Content::Reasoning(part));
            }
            kind if kind.ends_with("_response") || kind == "local_shell_call_output" => {
                self.close();
                let part = Content::Unknown(UnknownContent::new(item.clone()));
                self.messages
                    .push(ChatMessage::new(MessageRole::User, [part]));
            }
            // A reference is no part of a transcript: what it points to is.
            "item_reference" => {}
            _ => {
                self.begin_model();
                self.own_part(item);
            }
        }
    }

    /// A new reply begins where the last one has its results.
    fn begin_model(&mut self) {
        if !self.outputs.is_empty() && !self.has_open_calls() {
            self.close();
        }
    }

    fn has_open_calls(&self) -> bool {
        let mut calls = self.open.iter().filter_map(Content::as_tool_call);
        calls.any(|call| !self.outputs.contains_key(call.id()))
    }

    fn own_part(&mut self, item: &Value) {
        let mut value = item.clone();
        if let Some(members) = value.as_object_mut() {
            members.insert("raf_provider".to_owned(), self.provider.clone().into());
        }
        self.open.push(Content::Unknown(UnknownContent::new(value)));
    }

    fn call(&self, item: &Value) -> ToolCall {
        let text = |name: &str| item[name].as_str().unwrap_or("");
        let arguments = match item.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "{}".to_owned(),
        };
        let mut members: Map<String, Value> = item.as_object().cloned().unwrap_or_default();
        let input = members.get("input").and_then(Value::as_str);
        let arguments = input.map_or(arguments, str::to_owned);
        for known in ["name", "arguments"] {
            members.remove(known);
        }
        ToolCall::builder(text("call_id"), text("name"), arguments)
            .provider_data(ProviderData::new(&self.provider, json!({"item": members})))
            .build()
    }

    fn output(&mut self, item: &Value) {
        let id = item["call_id"].as_str().unwrap_or("");
        // A naive client answers by the item's id: ours has the call's.
        let of_call = self
            .open
            .iter()
            .filter_map(Content::as_tool_call)
            .find(|call| {
                let item = call.provider_data().map(|data| &data.data["item"]["id"]);
                call.id() == id || item.is_some_and(|item| *item == id)
            });
        let id = of_call.map_or(id, ToolCall::id).to_owned();
        let contents = match &item["output"] {
            Value::String(text) => vec![Content::text(text)],
            Value::Array(parts) => parts.iter().map(read_part).collect(),
            value => vec![Content::text(value.to_string())],
        };
        let result = ToolResult::builder(&id, ToolOutcome::Ok).content(contents);
        let message = ChatMessage::tool(result.build());
        if of_call.is_none() {
            self.messages.push(message);
            return;
        }
        self.outputs.insert(id, message);
    }

    fn close(&mut self) {
        let parts = std::mem::take(&mut self.open);
        if parts.is_empty() {
            return;
        }
        let calls: Vec<String> = parts
            .iter()
            .filter_map(Content::as_tool_call)
            .map(|call| call.id().to_owned())
            .collect();
        self.messages
            .push(ChatMessage::new(MessageRole::Assistant, parts));
        for id in calls {
            self.messages.extend(self.outputs.remove(&id));
        }
        self.outputs.clear();
    }
}

fn read_part(part: &Value) -> Content {
    let text = |name: &str| part[name].as_str().unwrap_or("");
    match text("type") {
        "input_text" | "output_text" | "text" => Content::text(text("text")),
        "input_image" | "image_url" => {
            let url = part["image_url"]["url"].as_str();
            Content::Image(MediaContent::url(url.unwrap_or(text("image_url"))))
        }
        "input_file" => {
            let data = text("file_data");
            let data = data.rsplit(',').next().unwrap_or(data);
            Content::File(MediaContent::base64(data, "application/pdf"))
        }
        other => panic!("the runner does not know parts of type '{other}'"),
    }
}
