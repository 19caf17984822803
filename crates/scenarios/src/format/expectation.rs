//! What must come out, and what must not.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::located::{Located, Ordered, Short, Shorthand};
use super::request::Choice;

/// What must hold of a whole case.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// How often each body was entered.
    #[serde(default)]
    pub exec: Ordered<Located<Shorthand<Entries>>>,
    /// How many model requests were made.
    #[serde(default)]
    pub requests: Option<Located<usize>>,
    /// What request n, from 1 over the case, was.
    #[serde(default)]
    pub request: Ordered<Located<Shorthand<Request>>>,
    /// What happened, over all legs: `a < b < c`, `a == 2`, `no a`.
    #[serde(default)]
    pub events: Vec<Located<String>>,
    /// How each leg ended, in order; legs whose answers were all refused and legs that were dropped
    /// are not in it.
    #[serde(default)]
    pub stop: Option<Located<Vec<String>>>,
    /// The tokens of all legs: input and output.
    #[serde(default)]
    pub usage: Option<Located<(u64, u64)>>,
    /// The conversation as the caller keeps it at the end, line by line.
    #[serde(default)]
    pub conversation: Option<Located<Vec<String>>>,
    /// What the counters outside say.
    #[serde(default)]
    pub counters: Ordered<Located<u64>>,
    /// What middleware and callbacks wrote, in order.
    #[serde(default)]
    pub trace: Option<Located<Vec<String>>>,
    /// How often middleware and callbacks wrote a line: line to number.
    #[serde(default)]
    pub trace_counts: Option<Located<Ordered<usize>>>,
    /// The most milliseconds on the paused clock that the case took.
    #[serde(default)]
    pub elapsed_ms_at_most: Option<Located<u64>>,
    /// What must not be anywhere.
    #[serde(default)]
    pub never: Vec<Located<Never>>,
}

impl Expect {
    /// Whether it looks at the logs.
    pub(crate) fn reads_logs(&self) -> bool {
        let mut never = self.never.iter();
        never.any(|never| matches!(never.value, Never::Logged(_)))
    }
}

/// What must hold of the leg that was played last.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectLeg {
    /// How it ended.
    #[serde(default)]
    pub stop: Option<String>,
    /// The calls that wait, in order: `c1`, or with what for: `c1 approval`, `c1 result`, `c1 data`,
    /// `c1 earlier`.
    #[serde(default)]
    pub pending: Option<Vec<String>>,
    /// How many model requests it made.
    #[serde(default)]
    pub requests: Option<usize>,
    /// The ids of the calls whose bodies were entered, in any order.
    #[serde(default)]
    pub entered: Option<Vec<String>>,
    /// The new messages, line by line.
    #[serde(default)]
    pub messages: Option<Vec<String>>,
    /// The text of its last assistant message.
    #[serde(default)]
    pub text: Option<String>,
    /// What happened in it.
    #[serde(default)]
    pub events: Vec<Located<String>>,
    /// Its results by call id.
    #[serde(default)]
    pub results: Ordered<Located<ResultDetail>>,
    /// The argument text of its calls, as the model wrote it: call id to text.
    #[serde(default)]
    pub call_arguments: Ordered<String>,
    /// Its tokens.
    #[serde(default)]
    pub usage: Option<(u64, u64)>,
    /// Counters of the provider's own.
    #[serde(default)]
    pub counters: Ordered<u64>,
    /// The tokens of the run until now.
    #[serde(default)]
    pub run_usage: Option<(u64, u64)>,
    /// The tokens of each model request of the run, those of nested runs left out.
    #[serde(default)]
    pub rounds: Option<Vec<(u64, u64)>>,
    /// The tokens of each model request of the runs nested in it: where the run is nested, from the
    /// outer run's round and position (from 0) to the tool's name, as `1/0/sub`, to tokens.
    #[serde(default)]
    pub nested_rounds: Option<Ordered<Vec<(u64, u64)>>>,
    /// The calls whose bodies were given up.
    #[serde(default)]
    pub abandoned: Option<Vec<String>>,
    /// Whether the last assistant message is whole or was cut.
    #[serde(default)]
    pub incomplete: Option<bool>,
    /// The answers that were refused, in any order: label and reason, alternatives between `|`.
    #[serde(default)]
    pub refused: Option<Vec<String>>,
    /// What the calls say that wait for data: call id to information.
    #[serde(default)]
    pub information: Ordered<Value>,
    /// What each new assistant message is made of, part by part: text, reasoning, call, …
    #[serde(default)]
    pub parts: Option<Vec<Vec<String>>>,
    /// The addresses of the points that wait: patterns, in order.
    #[serde(default)]
    pub addresses: Option<Vec<String>>,
}

/// How often a body was entered: a number, or a map.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entries {
    /// So often.
    #[serde(default)]
    pub count: Option<usize>,
    /// So often at most.
    #[serde(default)]
    pub at_most: Option<usize>,
    /// For these calls, in the order of their entry.
    #[serde(default)]
    pub calls: Option<Vec<String>>,
    /// With these arguments, in the order of entry.
    #[serde(default)]
    pub arguments: Option<Vec<Value>>,
    /// So many bodies ran at once at the most.
    #[serde(default)]
    pub at_once: Option<usize>,
    /// So many bodies came to their end by themselves.
    #[serde(default)]
    pub completed: Option<usize>,
    /// In these rounds, from 1, in the order of entry.
    #[serde(default)]
    pub rounds: Option<Vec<u32>>,
    /// At which attempt of the call each entry was, in order of entry.
    #[serde(default)]
    pub attempts: Option<Vec<u32>>,
}

impl Short for Entries {
    const EXPECTED: &'static str = "a number, or a map with `count`, `calls`, …";

    fn from_number(number: u64) -> Option<Self> {
        Some(Self {
            count: number.try_into().ok(),
            ..Self::default()
        })
    }

    fn short_schema() -> Value {
        serde_json::json!({"type": "integer", "minimum": 0})
    }
}

/// What a request was: a list of lines, or a map.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its messages, line by line; `...` at the beginning leaves out what stands before.
    #[serde(default)]
    pub messages: Option<Vec<Located<String>>>,
    /// Its tool choice.
    #[serde(default)]
    pub tool_choice: Option<Choice>,
    /// The names of the tools that it declares, in order.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Its most output tokens.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// It begins with all the messages of this request, byte for byte.
    #[serde(default)]
    pub begins_with_request: Option<usize>,
    /// It is the same as this request, byte for byte.
    #[serde(default)]
    pub same_as_request: Option<usize>,
    /// The provider's ids of its assistant messages.
    #[serde(default)]
    pub message_ids: Option<Vec<String>>,
    /// Its call ids are all different, and each result has its own.
    #[serde(default)]
    pub ids_are_unique: bool,
}

impl Short for Request {
    const EXPECTED: &'static str = "a list of lines, or a map with `messages`, `tool_choice`, …";

    fn from_list(list: Vec<Located<String>>) -> Option<Self> {
        Some(Self {
            messages: Some(list),
            ..Self::default()
        })
    }

    fn short_schema() -> Value {
        serde_json::json!({"type": "array", "items": {"type": "string"}})
    }
}

/// What a result is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultDetail {
    /// Its outcome: `ok`, `error failed`, `cancelled`, `skipped limit`, …; the first words are enough.
    #[serde(default)]
    pub outcome: Option<String>,
    /// Its text, a pattern.
    #[serde(default)]
    pub text: Option<String>,
    /// Texts that it holds.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Texts that it does not hold.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The most bytes of its text.
    #[serde(default)]
    pub bytes_at_most: Option<usize>,
    /// It has a correlation id, and its text names it.
    #[serde(default)]
    pub names_correlation_id: bool,
    /// Whether the body had started, where the outcome says it.
    #[serde(default)]
    pub started: Option<bool>,
    /// The arguments that ran instead of the model's.
    #[serde(default)]
    pub ran_with: Option<Value>,
    /// Its typed parts in words: `text 'x'`, `image 'address'`, …
    #[serde(default)]
    pub parts: Option<Vec<String>>,
    /// Its text is unlike that of these calls.
    #[serde(default)]
    pub unlike: Vec<String>,
}

/// What must not be.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Never {
    /// This text stands in no request and in no event.
    Text(String),
    /// This text is nowhere in the logs at the default level (info).
    Logged(String),
    /// No event is this.
    Event(String),
    /// No message of a request is this line.
    Line(String),
    /// The body is not entered for this call.
    Entered(String),
    /// This tool is not entered with these arguments.
    EnteredWith(String, Value),
    /// No more model requests than these.
    MoreRequestsThan(usize),
}
