//! Options of a run, and messages that a caller writes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use super::located::{Located, Short, short_or_long};
use super::reply::Call;

/// A tool choice, given or expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing is said of it.
    Unset,
    /// The model chooses; unset counts too.
    Auto,
    /// No tool.
    None,
    /// Any tool.
    Required,
    /// This tool.
    Tool(String),
    /// Required or a named tool.
    Forced,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedTool {
    tool: String,
}

impl From<NamedTool> for Choice {
    fn from(named: NamedTool) -> Self {
        Self::Tool(named.tool)
    }
}

impl Short for Choice {
    const EXPECTED: &'static str =
        "`unset`, `auto`, `none`, `required`, `forced`, or `{tool: name}`";

    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "unset" => Self::Unset,
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => Self::Required,
            "forced" => Self::Forced,
            _ => return None,
        })
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<Self, NamedTool, D>(deserializer)
    }
}

impl JsonSchema for Choice {
    fn schema_name() -> Cow<'static, str> {
        "Choice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<NamedTool>();
        let words = ["unset", "auto", "none", "required", "forced"];
        schemars::json_schema!({"anyOf": [{"enum": words}, named]})
    }
}

/// What a caller says of a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOptions {
    /// The tool choice: auto, none, required, or a tool.
    #[serde(default)]
    pub tool_choice: Option<Choice>,
    /// The most tokens of a reply.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// The model.
    #[serde(default)]
    pub model: Option<String>,
    /// The session.
    #[serde(default)]
    pub session: Option<String>,
    /// How long the run may take.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
}

/// A message as a caller writes it: `U:text` (or `S:`, `D:`, `A:`), or a map.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
    /// The calls of an assistant.
    pub calls: Vec<Call>,
    /// The call that a result is of.
    pub result_of: Option<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The system.
    System,
    /// The developer.
    Developer,
    /// The user.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongMessage {
    /// What the assistant says.
    #[serde(default)]
    assistant: Option<String>,
    /// The calls of the assistant.
    #[serde(default)]
    calls: Vec<Call>,
    /// The call that this is the result of.
    #[serde(default)]
    result_of: Option<String>,
    /// The text of the result.
    #[serde(default)]
    text: Option<String>,
}

impl From<LongMessage> for Message {
    fn from(long: LongMessage) -> Self {
        let role = match long.result_of {
            Some(_) => Role::Tool,
            None => Role::Assistant,
        };
        Self {
            role,
            text: long.assistant.or(long.text).unwrap_or_default(),
            calls: long.calls,
            result_of: long.result_of,
        }
    }
}

impl Short for Message {
    const EXPECTED: &'static str = "`U:text`, `S:text`, `D:text` or `A:text`, or a map with \
        `assistant` and `calls`, or with `result_of` and `text`";

    fn from_text(text: &str) -> Option<Self> {
        let (letter, text) = text.split_once(':')?;
        let role = match letter {
            "S" => Role::System,
            "D" => Role::Developer,
            "U" => Role::User,
            "A" => Role::Assistant,
            _ => return None,
        };
        Some(Self {
            role,
            text: text.trim_start().to_owned(),
            ..Self::default()
        })
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<Self, LongMessage, D>(deserializer)
    }
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let long = generator.subschema_for::<LongMessage>();
        schemars::json_schema!({"anyOf": [{"type": "string", "pattern": "^[SDUA]:"}, long]})
    }
}

/// Messages, each with its line.
pub type Messages = Vec<Located<Message>>;
