//! What a tool is and what its body does.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::agent::Agent;
use super::located::{Located, Ordered, Short, Shorthand, short_or_long};

/// A tool of a scenario.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a tool, as a file names them"
)]
pub struct Tool {
    /// Whether each call waits for a person's yes.
    #[serde(default)]
    pub gate: Gate,
    /// What the model reads of it.
    #[serde(default)]
    pub description: Option<String>,
    /// Its parameters: name to type, a `?` behind the type where it may be left out, or name to a
    /// whole schema.
    #[serde(default)]
    pub params: Option<Ordered<Param>>,
    /// Its parameters as one JSON Schema.
    #[serde(default)]
    pub schema: Option<Value>,
    /// What its body does each time it is entered.
    #[serde(default)]
    pub does: Option<Located<Shorthand<Does>>>,
    /// What its body does at the first entries, one after the other, before `does` holds.
    #[serde(default)]
    pub first: Vec<Located<Shorthand<Does>>>,
    /// Whether the model is told of it: offered (default), hidden (callable, not told of), declared
    /// (told of, no body: the caller gives the result); or per run (given with the options of the run).
    #[serde(default)]
    pub visible: Visibility,
    /// Whether running a call twice does no harm.
    #[serde(default)]
    pub idempotent: bool,
    /// Whether each call is a barrier in call order.
    #[serde(default)]
    pub exclusive: bool,
    /// Whether equal calls are its way to wait.
    #[serde(default)]
    pub polling: bool,
    /// How many bodies of it may run at once.
    #[serde(default)]
    pub concurrency: Option<usize>,
    /// How long one body may take.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// The most bytes of a result's text that the model reads.
    #[serde(default)]
    pub max_result_bytes: Option<usize>,
    /// Whether the body is the caller's own, given to the runner under this name.
    #[serde(default)]
    pub given: bool,
}

/// Whether each call of a tool waits for a person's yes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// No call waits.
    #[default]
    Never,
    /// Every call waits.
    Always,
}

/// Who knows of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// The model is told of it.
    #[default]
    Offered,
    /// It can be called, and the model is not told of it.
    Hidden,
    /// The model is told of it, and it has no body.
    Declared,
    /// It is given with the options of each run.
    PerRun,
}

/// One parameter: a type word or a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Param(pub Value);

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Param {
    fn schema_name() -> Cow<'static, str> {
        "Param".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A type word (`?` behind it where the parameter may be left out), or a JSON Schema.",
            "anyOf": [{"type": "string"}, {"type": "object"}],
        })
    }
}

/// What one entry of a body does. What stands here happens in this order: count, progress, opens,
/// waits, meets, sleeps, waits for the cancellation, and then the end, one of `returns`, `json`,
/// `parts`, `pieces`, `fails`, `panics`, `hangs`, `asks`, `echoes`, `agent`; without one it returns nothing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Does {
    /// Adds one to this counter outside.
    #[serde(default)]
    pub counts: Option<String>,
    /// Says these texts to the consumer of the stream.
    #[serde(default)]
    pub progress: Vec<String>,
    /// Opens this latch.
    #[serde(default)]
    pub opens: Option<String>,
    /// Waits until this latch is open.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Waits until so many bodies have come here.
    #[serde(default)]
    pub meets: Option<usize>,
    /// Sleeps on the paused clock: milliseconds, or the name of an argument in braces.
    #[serde(default)]
    pub sleeps_ms: Option<Amount>,
    /// Waits until it is told to stop; without an end it then gives up.
    #[serde(default)]
    pub until_cancelled: bool,
    /// Returns this text; `{name}` stands for an argument.
    #[serde(default)]
    pub returns: Option<String>,
    /// Returns this JSON.
    #[serde(default, deserialize_with = "present")]
    pub json: Option<Value>,
    /// Returns this argument as JSON.
    #[serde(default)]
    pub argument: Option<String>,
    /// Returns these typed parts.
    #[serde(default)]
    pub parts: Option<Vec<Shorthand<Part>>>,
    /// Returns a stream of these pieces; with `fails` or `asks`, that is how the stream ends.
    #[serde(default)]
    pub pieces: Option<Vec<Shorthand<Part>>>,
    /// Fails.
    #[serde(default)]
    pub fails: Option<Failure>,
    /// Panics with this text.
    #[serde(default)]
    pub panics: Option<String>,
    /// Never ends.
    #[serde(default)]
    pub hangs: bool,
    /// Waits for the outside.
    #[serde(default)]
    pub asks: Option<Asks>,
    /// Returns its arguments.
    #[serde(default)]
    pub echoes: bool,
    /// Runs an agent, and returns its answer; nothing else stands beside it.
    #[serde(default)]
    pub agent: Option<Box<Agent>>,
}

/// A value that is there, `null` too.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Does {
    /// Whether it says nothing but that it runs an agent.
    pub(crate) fn is_agent_alone(&self) -> bool {
        self.agent.is_some()
            && self.ends() == ["agent"]
            && self.counts.is_none()
            && self.progress.is_empty()
            && self.opens.is_none()
            && self.waits_for.is_none()
            && self.meets.is_none()
            && self.sleeps_ms.is_none()
            && !self.until_cancelled
    }

    /// How many ends it names: one at most is possible.
    pub(crate) fn ends(&self) -> Vec<&'static str> {
        let ends = [
            ("returns", self.returns.is_some()),
            ("json", self.json.is_some()),
            ("argument", self.argument.is_some()),
            ("parts", self.parts.is_some()),
            ("pieces", self.pieces.is_some()),
            ("fails", self.fails.is_some()),
            ("panics", self.panics.is_some()),
            ("hangs", self.hangs),
            ("asks", self.asks.is_some()),
            ("echoes", self.echoes),
            ("agent", self.agent.is_some()),
        ];
        let mut named: Vec<&str> = ends
            .into_iter()
            .filter(|(_, named)| *named)
            .map(|(name, _)| name)
            .collect();
        if named == ["pieces", "fails"] || named == ["pieces", "asks"] {
            named.truncate(1);
        }
        named
    }
}

impl Tool {
    /// The agent that it runs.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        self.does.as_ref()?.value.agent.as_deref()
    }
}

impl Short for Does {
    const EXPECTED: &'static str =
        "`nothing`, `echoes`, `hangs`, `panics`, `until_cancelled`, or a map of what the body does";

    fn from_text(text: &str) -> Option<Self> {
        let mut does = Self::default();
        match text {
            "nothing" => {}
            "echoes" => does.echoes = true,
            "hangs" => does.hangs = true,
            "panics" => does.panics = Some("a scripted panic".to_owned()),
            "until_cancelled" => does.until_cancelled = true,
            _ => return None,
        }
        Some(does)
    }

    fn short_schema() -> Value {
        serde_json::json!({"enum": ["nothing", "echoes", "hangs", "panics", "until_cancelled"]})
    }
}

/// A number, or `{argument}` whose value it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This.
    Fixed(u64),
    /// What this argument says.
    Argument(String),
}

impl Short for Amount {
    const EXPECTED: &'static str = "a number, or the name of an argument in braces, as '{ms}'";

    fn from_number(number: u64) -> Option<Self> {
        Some(Self::Fixed(number))
    }

    fn from_text(text: &str) -> Option<Self> {
        let name = text.strip_prefix('{')?.strip_suffix('}')?;
        Some(Self::Argument(name.to_owned()))
    }
}

/// A form that does not exist.
#[derive(Deserialize)]
pub(crate) enum Never {}

impl From<Never> for Amount {
    fn from(never: Never) -> Self {
        match never {}
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        short_or_long::<Self, Never, D>(deserializer)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": r"^\{.+\}$"},
        ]})
    }
}

/// One typed part.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image by its address.
    Image(String),
    /// Audio by its address.
    Audio(String),
    /// A file by its address.
    File(String),
}

impl Short for Part {
    const EXPECTED: &'static str = "a text, or one of `text`, `image`, `audio`, `file`";

    fn from_text(text: &str) -> Option<Self> {
        Some(Self::Text(text.to_owned()))
    }

    fn short_schema() -> Value {
        serde_json::json!({"type": "string"})
    }
}

/// How a body fails, and with which text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The work failed; the text is for the log only.
    Hidden(String),
    /// The work failed; the model reads the text.
    TellModel(String),
    /// The arguments make no sense.
    InvalidParameters(String),
    /// A right is missing.
    PermissionDenied(String),
    /// Something took too long.
    Timeout(String),
    /// The run must not go on.
    Fatal(String),
    /// The run is to end.
    Terminate(String),
}

/// What a body says when it waits for the outside.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Asks {
    /// For the outside.
    #[serde(default)]
    pub information: Value,
    /// For itself, when it is entered again.
    #[serde(default)]
    pub state: Value,
}
