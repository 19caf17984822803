//! What happens, step by step.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::config::Config;
use super::expectation::ExpectLeg;
use super::located::{Located, Ordered, Short, Shorthand, short_or_long};
use super::reply::Reply;
use super::request::{Message, Messages, RunOptions};
use super::tool::Tool;

/// One step. A step that holds `user`, `decide`, `results`, `proceed` or `batch` is a leg; the
/// `model`, `cancel`, `drop`, `open` and `expect` steps behind it belong to it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The user says this; a leg.
    #[serde(default)]
    pub user: Option<String>,
    /// The person decides: call id to answer; a leg.
    #[serde(default)]
    pub decide: Option<Ordered<Answer>>,
    /// The caller gives the results of calls: call id to text; a leg.
    #[serde(default)]
    pub results: Option<Ordered<String>>,
    /// The caller goes on with the conversation as it stands; a leg.
    #[serde(default)]
    pub proceed: Option<bool>,
    /// The calls of an assistant message for the executor alone; a leg.
    #[serde(default)]
    pub batch: Option<Vec<super::reply::Call>>,
    /// The tools of this batch instead of the registered ones.
    #[serde(default)]
    pub batch_tools: Option<Vec<String>>,
    /// With these options, instead of the file's.
    #[serde(default)]
    pub options: Option<RunOptions>,
    /// Over these messages in the place of the conversation: somebody tampered with them. The
    /// caller's own conversation stays as it is.
    #[serde(default)]
    pub posted: Option<Messages>,
    /// Over the conversation and these messages behind it; the caller's own stays as it is.
    #[serde(default)]
    pub posted_behind: Option<Messages>,
    /// Over the conversation with other arguments of these calls; the caller's own stays as it is.
    #[serde(default)]
    pub posted_arguments: Option<Ordered<String>>,
    /// The paused run that the caller gives: `none`, or one that it kept by `keep_paused_run`.
    #[serde(default)]
    pub with_paused_run: Option<String>,

    /// What the model replies to the next request of this leg.
    #[serde(default)]
    pub model: Option<Reply>,
    /// Cancels the run at an event.
    #[serde(default)]
    pub cancel: Option<Shorthand<At>>,
    /// Drops the leg at an event.
    #[serde(default)]
    pub drop: Option<Shorthand<At>>,
    /// Opens a latch at an event.
    #[serde(default)]
    pub open: Option<OpenLatch>,
    /// What must hold of the leg before.
    #[serde(default)]
    pub expect: Option<Box<ExpectLeg>>,

    /// Takes the state to JSON and back, to a fresh client.
    #[serde(default)]
    pub reload: Option<bool>,
    /// Adds a message to the conversation.
    #[serde(default)]
    pub append: Option<Message>,
    /// Lets time pass.
    #[serde(default)]
    pub advance_ms: Option<u64>,
    /// Lets the store fail.
    #[serde(default)]
    pub store: Option<StoreFault>,
    /// Changes the options of the loop from here on.
    #[serde(default)]
    pub config: Option<Box<Config>>,
    /// Puts other tools in the place of those with the same name, or takes them away (`null`).
    #[serde(default)]
    pub tools: Option<Ordered<Option<Tool>>>,
    /// Keeps the paused run under this name.
    #[serde(default)]
    pub keep_paused_run: Option<String>,
}

/// An event, and how long behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The event, as in `events`.
    pub at: String,
    /// So many milliseconds behind it, on the paused clock.
    #[serde(default)]
    pub after_ms: Option<u64>,
}

impl Short for At {
    const EXPECTED: &'static str = "an event, or a map with `at` and `after_ms`";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self {
            at: text.to_owned(),
            after_ms: None,
        })
    }

    fn short_schema() -> Value {
        serde_json::json!({"type": "string"})
    }
}

/// A latch that is opened at an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenLatch {
    /// The latch.
    pub latch: String,
    /// The event.
    pub at: String,
}

/// How the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoreFault {
    /// So many of the next creations of records fail.
    #[serde(default)]
    pub fail_creates: u64,
    /// So many of the next saves of records fail.
    #[serde(default)]
    pub fail_saves: u64,
}

/// What a person says of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing: `null`.
    Null,
    /// Yes.
    Approve,
    /// No.
    Deny(String),
    /// Yes, with other arguments.
    Edit(Value),
    /// Yes to these arguments, as the person saw them.
    ApproveSeen(Value),
    /// Data for a tool that asks.
    Resume(Value),
    /// Anything that is no decision.
    Malformed(Value),
    /// The same yes so many times.
    Times(usize),
    /// Yes, and so from now on: `tool` or `arguments`.
    Always(Always),
    /// The result of the call as a tool message, which is no answer to a gated call.
    Result(String),
}

/// For what a yes holds from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Always {
    /// This tool in this session.
    Tool,
    /// This tool with these arguments in this session.
    Arguments,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LongAnswer {
    /// No, for this reason.
    Deny(String),
    /// Yes, with these arguments instead.
    Edit(Value),
    /// Yes to these arguments, as the person saw them.
    ApproveSeen(Value),
    /// Data for a tool that asks.
    Resume(Value),
    /// Anything that is no decision.
    Malformed(Value),
    /// The same yes so many times.
    ApproveTimes(usize),
    /// Yes, and so from now on.
    Always(Always),
    /// The result of the call as a tool message.
    Result(String),
}

impl From<LongAnswer> for Answer {
    fn from(long: LongAnswer) -> Self {
        match long {
            LongAnswer::Deny(reason) => Self::Deny(reason),
            LongAnswer::Edit(arguments) => Self::Edit(arguments),
            LongAnswer::ApproveSeen(arguments) => Self::ApproveSeen(arguments),
            LongAnswer::Resume(data) => Self::Resume(data),
            LongAnswer::Malformed(value) => Self::Malformed(value),
            LongAnswer::ApproveTimes(times) => Self::Times(times),
            LongAnswer::Always(scope) => Self::Always(scope),
            LongAnswer::Result(text) => Self::Result(text),
        }
    }
}

impl Short for Answer {
    const EXPECTED: &'static str = "`approve`, `deny`, `null`, or a map with one of `deny`, `edit`, \
        `approve_seen`, `approve_times`, `always`, `resume`, `malformed`, `result`";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "approve" => Some(Self::Approve),
            "deny" => Some(Self::Deny(String::new())),
            _ => None,
        }
    }

    fn from_null() -> Option<Self> {
        Some(Self::Null)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<Self, LongAnswer, D>(deserializer)
    }
}

impl JsonSchema for Answer {
    fn schema_name() -> Cow<'static, str> {
        "Answer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let long = generator.subschema_for::<LongAnswer>();
        schemars::json_schema!({"anyOf": [{"enum": ["approve", "deny", null]}, long]})
    }
}

/// Steps, each with its line.
pub type Steps = Vec<Located<Step>>;
