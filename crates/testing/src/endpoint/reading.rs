//! What the protocols' requests have in common, read back.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, ToolChoice, ToolDeclaration,
    ToolOutcome, ToolResult, UnknownContent,
};
use serde_json::{Map, Value};

/// A text, or nothing.
pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Content that is a text or a list of parts.
pub(super) fn contents(wire: &Value, part: impl Fn(&Value) -> Content) -> Vec<Content> {
    match wire {
        Value::String(text) => vec![Content::text(text)],
        Value::Array(parts) => parts.iter().map(part).collect(),
        _ => Vec::new(),
    }
}

/// A part of a message: a text, an image whose address stands there, or one of which no more is known.
pub(super) fn part(wire: &Value, image_url: &str) -> Content {
    if let Some(text) = wire["text"].as_str() {
        return Content::text(text);
    }
    match wire.pointer(image_url).and_then(Value::as_str) {
        Some(url) => Content::Image(MediaContent::url(url)),
        None => Content::Unknown(UnknownContent::new(wire.clone())),
    }
}

/// A result. The outcome is not on the wire: it reads as `ok`.
pub(super) fn result(call_id: &str, contents: Vec<Content>) -> ChatMessage {
    let result = ToolResult::builder(call_id, ToolOutcome::Ok).content(contents);
    ChatMessage::tool(result.build())
}

/// The members of a body that are no messages. Those that are read are taken out; the rest is kept.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// All but those that hold messages.
    pub(super) fn of(body: &Value, messages: &[&str]) -> Self {
        let mut fields = body.as_object().cloned().unwrap_or_default();
        for name in messages {
            fields.remove(*name);
        }
        Self(fields)
    }

    /// Takes a member out; `null` if there is none.
    pub(super) fn take(&mut self, name: &str) -> Value {
        self.0.remove(name).unwrap_or_default()
    }

    /// The options that all protocols have, with the limit of tokens under the first of these names that
    /// is there. `tool` reads a tool, `choice` the tool choice. What is left goes along as it is.
    pub(super) fn options(
        mut self,
        token_limits: &[&str],
        tool: impl Fn(&Value) -> ToolDeclaration,
        choice: impl FnOnce(&Value) -> Option<ToolChoice>,
    ) -> ChatClientRunOptions {
        let mut options = ChatClientRunOptions::new();
        options.model = self.take("model").as_str().map(str::to_owned);
        options.temperature = self.take("temperature").as_f64();
        options.top_p = self.take("top_p").as_f64();
        options.seed = self.take("seed").as_i64();
        options.parallel_tool_calls = self.take("parallel_tool_calls").as_bool();
        let limits = token_limits.iter().filter_map(|name| self.0.remove(*name));
        let limits: Vec<u64> = limits.filter_map(|limit| limit.as_u64()).collect();
        options.max_output_tokens = limits.first().and_then(|limit| (*limit).try_into().ok());
        options.tool_choice = choice(&self.take("tool_choice"));
        let tools = self.take("tools");
        options.tools = tools.as_array().into_iter().flatten().map(tool).collect();
        options.extra_body = self.0;
        options
    }
}

/// A tool whose schema stands under this name.
pub(super) fn declaration(wire: &Value, schema: &str) -> ToolDeclaration {
    let declaration = ToolDeclaration::new(word(&wire["name"]), word(&wire["description"]));
    match wire.get(schema) {
        Some(schema) => declaration.with_parameters(schema),
        None => declaration,
    }
}

/// A tool choice in the words of OpenAI; the name of a named one stands there.
pub(super) fn choice(wire: &Value, name: &str) -> Option<ToolChoice> {
    match wire.as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("none") => Some(ToolChoice::None),
        Some("required") => Some(ToolChoice::Required),
        _ => {
            let name = wire.pointer(name)?.as_str()?;
            Some(ToolChoice::Named(name.to_owned()))
        }
    }
}
