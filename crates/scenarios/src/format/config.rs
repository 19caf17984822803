//! Options of the loop and of the executor.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::located::{Ordered, Short, short_or_long};

/// Limits and policies of the loop and of the executor; what is not named has its default.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The most model requests of a run.
    #[serde(default)]
    pub max_rounds: Option<u32>,
    /// The most failed rounds in a row; `off` is no limit.
    #[serde(default)]
    pub max_failed_rounds: Option<Limit>,
    /// The most calls in a row of one tool with invalid arguments.
    #[serde(default)]
    pub max_invalid_calls_per_tool: Option<u32>,
    /// The most calls in a row of one unknown name.
    #[serde(default)]
    pub max_unknown_calls_per_tool: Option<u32>,
    /// The most calls in a row of one tool that fail.
    #[serde(default)]
    pub max_failed_calls_per_tool: Option<u32>,
    /// The most calls of a run.
    #[serde(default)]
    pub max_calls: Option<u32>,
    /// The most calls since the last message of the user.
    #[serde(default)]
    pub max_calls_per_turn: Option<u32>,
    /// The most calls of one tool in a run.
    #[serde(default)]
    pub max_calls_per_tool: Option<u32>,
    /// The longest time that a run may work.
    #[serde(default)]
    pub max_wall_time_ms: Option<u64>,
    /// How many identical rounds end the run; 0 is off.
    #[serde(default)]
    pub no_progress_rounds: Option<u32>,
    /// Whether the last round asks for an answer without tools.
    #[serde(default)]
    pub wrap_up: Option<bool>,
    /// Whether an empty reply is asked again once.
    #[serde(default)]
    pub nudge_empty: Option<bool>,
    /// Whether a forced tool choice holds for every request.
    #[serde(default)]
    pub keep_forcing: Option<bool>,
    /// Whether one gated call holds its ungated siblings too.
    #[serde(default)]
    pub hold_whole_batch: Option<bool>,
    /// What a new message means while calls are pending.
    #[serde(default)]
    pub new_message: Option<NewMessage>,
    /// What decides before people do; the first rule that fits counts.
    #[serde(default)]
    pub policy: Vec<PolicyRule>,
    /// Whether calls of a batch run at once.
    #[serde(default)]
    pub mode: Option<ExecutionMode>,
    /// The most bodies at once.
    #[serde(default)]
    pub max_concurrency: Option<usize>,
    /// How long a body may take.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// How long a body may take to end after a cancellation.
    #[serde(default)]
    pub grace_ms: Option<u64>,
    /// The most bytes of a result's text.
    #[serde(default)]
    pub max_result_bytes: Option<usize>,
    /// What a failed call means for its batch.
    #[serde(default)]
    pub errors: Option<Errors>,
    /// What a call of an unknown tool means.
    #[serde(default)]
    pub unknown_tools: Option<UnknownTools>,
    /// Whether the model reads every error's full text.
    #[serde(default)]
    pub detailed_errors: Option<bool>,
    /// Middleware around each call, the first is outermost.
    #[serde(default)]
    pub middleware: Vec<Middleware>,
    /// Whether an observer of bodies writes into the trace.
    #[serde(default)]
    pub callbacks: bool,
    /// Other names of tools: alias to tool.
    #[serde(default)]
    pub aliases: Ordered<String>,
    /// Other names of arguments: tool, then alias to key.
    #[serde(default)]
    pub argument_aliases: Ordered<Ordered<String>>,
    /// Arguments that the handler sets before validation: tool, then name to JSON; a text in which
    /// `{name}` stands for what the argument was.
    #[serde(default)]
    pub argument_handler: Ordered<Ordered<Value>>,
}

/// A limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<u32>);

impl From<super::tool::Never> for Limit {
    fn from(never: super::tool::Never) -> Self {
        match never {}
    }
}

impl Short for Limit {
    const EXPECTED: &'static str = "a number or `off`";

    fn from_number(number: u64) -> Option<Self> {
        Some(Self(Some(number.try_into().ok()?)))
    }

    fn from_text(text: &str) -> Option<Self> {
        (text == "off").then_some(Self(None))
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<Self, super::tool::Never, D>(deserializer)
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"anyOf": [{"type": "integer", "minimum": 0}, {"const": "off"}]})
    }
}

/// What a new message means while calls are pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NewMessage {
    /// The pending calls are settled as superseded.
    Supersede,
    /// The message is refused.
    Reject,
}

/// Whether calls of a batch run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// At once.
    Parallel,
    /// One after another.
    Sequential,
}

/// What a failed call means for its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Errors {
    /// The model reads them.
    ToModel,
    /// Siblings are cancelled and the batch ends.
    FailFast,
}

/// What a call of an unknown tool means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownTools {
    /// The model reads which tools there are.
    ToModel,
    /// Nothing of the batch runs.
    Stop,
}

/// A rule that decides before people do.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// Of which tool; of all without it.
    #[serde(default)]
    pub tool: Option<String>,
    /// With which arguments: each name is one of these values.
    #[serde(default)]
    pub arguments: Ordered<Vec<Value>>,
    /// What it decides.
    pub decides: PolicyWord,
}

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyWord {
    /// The call runs unasked.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not run.
    Deny,
}

/// A middleware around calls. Each writes `name>` and `<name` into the trace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Middleware {
    /// Its name in the trace.
    pub name: String,
    /// The tools that it is around; all without it.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Arguments that it sets in the around step.
    #[serde(default)]
    pub sets: Ordered<Value>,
    /// Arguments that it sets in the prepare step.
    #[serde(default)]
    pub prepares: Ordered<Value>,
    /// Returns this text and does not call on.
    #[serde(default)]
    pub returns: Option<String>,
    /// Fails in this way and does not call on.
    #[serde(default)]
    pub fails: Option<super::tool::Failure>,
    /// Whether it writes the call's id into the trace too.
    #[serde(default)]
    pub traces_call: bool,
}
