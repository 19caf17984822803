//! One message as blocks of JSON text, joined by commas: nothing but what it says itself and what
//! the dialect wants. Empty where it says nothing that goes over the wire.
//!
//! What is left out: blank text, reasoning of another model or dialect, parts that another provider
//! made, media of an assistant message.

use raf_core::{
    ChatMessage, Content, MessageRole, ReasoningContent, ToolCall, ToolOutcome, ToolResult,
};
use raf_wire::{CallIds, call_id, own_part, part_owner, push_member, push_string, tool_name};
use serde_json::Value;

use super::cache::{ONE_HOUR, mark_last};
use super::media;
use crate::dialect::{Rules, ThinkingBack};
use crate::parts::{CITATIONS, goes_back};

/// What a tool result says that says nothing.
const NO_OUTPUT: &str = "(no output)";

/// Writes blocks, and hands each out as soon as it is whole.
pub(super) struct Blocks<'a> {
    rules: &'a Rules,
    model: &'a str,
    json: String,
    /// Thinking takes no breakpoint.
    ends_in_thinking: bool,
    marks: Marks,
}

/// What becomes of breakpoints that stand with the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// They are left out.
    Off,
    /// They are written as they were given.
    AsGiven,
    /// They are written, and live for an hour.
    OneHour,
}

/// The message's blocks.
pub(super) fn render(message: &ChatMessage, rules: &Rules, model: &str, marks: Marks) -> String {
    let mut blocks = Blocks {
        rules,
        model,
        json: String::new(),
        ends_in_thinking: false,
        marks,
    };
    match message.role() {
        MessageRole::Assistant => blocks.assistant(message),
        MessageRole::Tool => {
            for result in message.tool_results() {
                blocks.tool_result(result);
            }
        }
        MessageRole::System | MessageRole::Developer => {
            for content in message.contents() {
                if let Content::Text(text) = content {
                    blocks.text(&text.text, text.extra.get("cache_control"), None);
                }
            }
        }
        _ => blocks.user(message),
    }
    blocks.json
}

impl Blocks<'_> {
    fn user(&mut self, message: &ChatMessage) {
        for content in message.contents() {
            match content {
                Content::Text(text) => {
                    self.text(&text.text, text.extra.get("cache_control"), None);
                }
                Content::Refusal(refusal) => self.text(&refusal.text, None, None),
                Content::Image(part) | Content::File(part) => {
                    let mut json = String::new();
                    let is_image = matches!(content, Content::Image(_));
                    media::render(&mut json, part, is_image, self.rules);
                    self.block(&json, part.extra.get("cache_control"));
                }
                Content::Unknown(part) if part_owner(part).is_none() => {
                    self.block(&part.value.to_string(), None);
                }
                _ => {}
            }
        }
    }

    fn assistant(&mut self, message: &ChatMessage) {
        let contents = message.contents();
        for (place, content) in contents.iter().enumerate() {
            match content {
                Content::Text(text) => {
                    let citations = contents
                        .get(place + 1)
                        .and_then(|next| self.citations(next));
                    let mark = text.extra.get("cache_control");
                    self.text(&text.text, mark, citations.as_ref());
                }
                Content::Refusal(refusal) => self.text(&refusal.text, None, None),
                Content::Reasoning(part) => self.reasoning(part),
                Content::ToolCall(call) => self.tool_call(call),
                Content::Unknown(part) => {
                    let own = own_part(part, &self.rules.name);
                    if let Some(own) = own.filter(|own| goes_back(own["type"].as_str())) {
                        self.block(&own.to_string(), None);
                    }
                }
                _ => {}
            }
        }
    }

    /// The citations of a text, which stand in a part of their own behind it.
    fn citations(&self, next: &Content) -> Option<Value> {
        let Content::Unknown(part) = next else {
            return None;
        };
        if part.kind() != CITATIONS {
            return None;
        }
        own_part(part, &self.rules.name)?
            .get_mut("citations")
            .map(Value::take)
    }

    fn text(&mut self, text: &str, mark: Option<&Value>, citations: Option<&Value>) {
        if text.trim().is_empty() {
            self.move_mark(mark);
            return;
        }
        let json = self.begin(r#"{"type":"text","text":"#, text.len());
        push_string(json, text);
        if let Some(citations) = citations {
            json.push_str(r#","citations":"#);
            json.push_str(&citations.to_string());
        }
        json.push('}');
        self.end(mark);
    }

    fn reasoning(&mut self, part: &ReasoningContent) {
        let Some(data) = &part.provider_data else {
            return;
        };
        if data.provider != self.rules.name || data.data["model"].as_str() != Some(self.model) {
            return;
        }
        let member = |name: &str| data.data[name].as_str().filter(|text| !text.is_empty());
        let mut json = String::new();
        if let Some(secret) = member("data") {
            json.push_str(r#"{"type":"redacted_thinking","data":"#);
            push_string(&mut json, secret);
        } else {
            let signature = match (member("signature"), self.rules.thinking_back) {
                (Some(signature), _) => signature,
                (None, ThinkingBack::Unsigned) if !part.text.is_empty() => "",
                _ => return,
            };
            json.push_str(r#"{"type":"thinking","thinking":"#);
            push_string(&mut json, &part.text);
            push_member(&mut json, "signature", signature);
        }
        json.push('}');
        self.block(&json, None);
        self.ends_in_thinking = true;
    }

    fn tool_call(&mut self, call: &ToolCall) {
        let own = call
            .provider_data()
            .filter(|data| data.provider == self.rules.name);
        let length = call.id().len() + call.name().len() + call.arguments().len();
        let json = self.begin(r#"{"type":"tool_use","id":"#, length);
        push_string(json, &call_id(call.id(), CallIds::Word));
        push_member(json, "name", &tool_name(call.name()));
        json.push_str(r#","input":"#);
        json.push_str(call.arguments());
        if let Some(caller) = own.and_then(|own| own.data.get("caller")) {
            json.push_str(r#","caller":"#);
            json.push_str(&caller.to_string());
        }
        json.push('}');
        self.end(None);
    }

    fn tool_result(&mut self, result: &ToolResult) {
        let is_error = is_error(result.outcome());
        let parts = result_parts(result, is_error, self.rules);
        let length: usize = parts.iter().map(Part::length).sum();
        let start = r#"{"type":"tool_result","tool_use_id":"#;
        let json = self.begin(start, result.call_id().len() + length);
        push_string(json, &call_id(result.call_id(), CallIds::Word));
        json.push_str(r#","content":"#);
        match &parts[..] {
            [] if result.outcome().is_ok() => push_string(json, NO_OUTPUT),
            [] => push_string(json, result.outcome().default_text()),
            [Part::Text(text)] => push_string(json, text),
            _ => {
                json.push('[');
                for (place, part) in parts.iter().enumerate() {
                    if place > 0 {
                        json.push(',');
                    }
                    match part {
                        Part::Text(text) => {
                            json.push_str(r#"{"type":"text","text":"#);
                            push_string(json, text);
                            json.push('}');
                        }
                        Part::Block(block) => json.push_str(block),
                    }
                }
                json.push(']');
            }
        }
        if is_error {
            json.push_str(r#","is_error":true"#);
        }
        json.push('}');
        self.end(result.extra().get("cache_control"));
    }

    /// A block that is there already; perhaps nothing.
    fn block(&mut self, json: &str, mark: Option<&Value>) {
        if json.is_empty() {
            self.move_mark(mark);
            return;
        }
        self.begin(json, 0);
        self.end(mark);
    }

    /// Begins a block, which has about so many bytes behind its start.
    fn begin(&mut self, start: &str, length: usize) -> &mut String {
        // With the names of its members.
        self.json.reserve(start.len() + length + 64);
        if !self.json.is_empty() {
            self.json.push(',');
        }
        self.json.push_str(start);
        &mut self.json
    }

    /// Ends a block, and marks it.
    fn end(&mut self, mark: Option<&Value>) {
        self.ends_in_thinking = false;
        self.move_mark(mark);
    }

    /// Marks the last block, which is the one before where a part is left out.
    fn move_mark(&mut self, mark: Option<&Value>) {
        let Some(mark) = mark.filter(|_| !self.json.is_empty() && !self.ends_in_thinking) else {
            return;
        };
        match self.marks {
            Marks::Off => {}
            Marks::AsGiven => mark_last(&mut self.json, &mark.to_string()),
            Marks::OneHour => mark_last(&mut self.json, ONE_HOUR),
        }
    }
}

/// Whether the model is told that the call did not do what it asked. A denial is no error.
fn is_error(outcome: ToolOutcome) -> bool {
    !matches!(outcome, ToolOutcome::Ok | ToolOutcome::Denied)
}

enum Part<'a> {
    Text(&'a str),
    Block(String),
}

impl Part<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Block(block) => block.len(),
        }
    }
}

/// What a result says. Media that it cannot hold become a note: a failed result holds text alone.
fn result_parts<'a>(result: &'a ToolResult, is_error: bool, rules: &Rules) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for content in result.content() {
        match content {
            Content::Text(text) if !text.text.trim().is_empty() => {
                parts.push(Part::Text(&text.text));
            }
            Content::Image(_) if is_error => parts.push(Part::Text("(an image is left out)")),
            Content::File(_) if is_error => parts.push(Part::Text("(a file is left out)")),
            Content::Image(media) | Content::File(media) => {
                let is_image = matches!(content, Content::Image(_));
                let mut json = String::new();
                media::render(&mut json, media, is_image, rules);
                parts.push(if json.is_empty() {
                    Part::Text("(a file of a kind that cannot be shown is left out)")
                } else {
                    Part::Block(json)
                });
            }
            Content::Audio(_) => parts.push(Part::Text("(sound is left out)")),
            Content::Video(_) => parts.push(Part::Text("(a video is left out)")),
            _ => {}
        }
    }
    parts
}
