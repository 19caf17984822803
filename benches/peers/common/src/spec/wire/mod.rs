//! The APIs that the server speaks: the same content, each in its own words.

pub(super) mod chat;
mod messages;
mod responses;

use super::Answer;

/// One API of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's Chat Completions.
    #[default]
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
}

impl Wire {
    pub const ALL: [Wire; 3] = [Self::Chat, Self::Messages, Self::Responses];

    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// Where requests go, behind a base URL that ends in `/v1`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
            Self::Responses => "/responses",
        }
    }

    /// The events of an answer that is streamed, each a whole frame.
    pub fn frames(self, answer: &Answer) -> Vec<String> {
        match self {
            Self::Chat => chat::frames(answer),
            Self::Messages => messages::frames(answer),
            Self::Responses => responses::frames(answer),
        }
    }

    /// The answer to a client that does not ask for a stream, where one does.
    pub fn document(self, answer: &Answer) -> Option<String> {
        (self == Self::Chat).then(|| chat::document(answer))
    }

    /// What each tool result in a request holds, as compact JSON, and nothing else does.
    pub fn result_mark(self) -> &'static str {
        match self {
            Self::Chat => r#""role":"tool""#,
            Self::Messages => r#""type":"tool_result""#,
            Self::Responses => r#""type":"function_call_output""#,
        }
    }

    /// A lookup tool as it stands in a request.
    pub fn tool_definition(self, name: &str) -> serde_json::Value {
        let (description, schema) = (super::TOOL_DESCRIPTION, crate::tools::lookup_schema());
        match self {
            Self::Chat => serde_json::json!({"type": "function", "function": {
                "name": name, "description": description, "parameters": schema
            }}),
            Self::Messages => serde_json::json!({
                "name": name, "description": description, "input_schema": schema
            }),
            Self::Responses => serde_json::json!({
                "type": "function", "name": name, "description": description,
                "parameters": schema, "strict": false
            }),
        }
    }
}

/// A frame that names its event, as both younger APIs write it: the name stands
/// in the data again, as its first field.
fn named_frame(kind: &str, fields: &str) -> String {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{fields}}}\n\n")
}

/// Text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
