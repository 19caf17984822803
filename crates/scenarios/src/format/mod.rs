//! The format of a scenario file, as types that read it and give its JSON Schema.

mod agent;
mod config;
mod expectation;
mod located;
mod reply;
mod request;
mod step;
mod tool;

use schemars::JsonSchema;
use serde::Deserialize;

pub use self::agent::Agent;
pub use self::config::{
    Config, Errors, ExecutionMode, Limit, Middleware, NewMessage, PolicyRule, PolicyWord,
    UnknownTools,
};
pub use self::expectation::{Entries, Expect, ExpectLeg, Never, Request, ResultDetail};
pub use self::located::{Located, Ordered, Short, Shorthand};
pub use self::reply::{Break, BreakKind, Call, Reply, ReplyPart, Stop, When};
pub use self::request::{Choice, Message, Messages, Role, RunOptions};
pub use self::step::{Always, Answer, At, OpenLatch, Step, Steps, StoreFault};
pub use self::tool::{Amount, Asks, Does, Failure, Gate, Param, Part, Tool, Visibility};

/// A scenario file: one case, and variants of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// The id of the case; the file's name begins with it.
    pub id: String,
    /// What the case is about.
    pub title: String,
    /// Where it comes from.
    #[serde(default)]
    pub source: Vec<String>,
    /// Anything that a reader should know.
    #[serde(default)]
    pub note: Option<String>,
    /// What is played: the loop, or the executor alone.
    #[serde(default)]
    pub mode: Mode,
    /// The tools, by name.
    #[serde(default)]
    pub tools: Ordered<Tool>,
    /// Options of the loop and of the executor.
    #[serde(default)]
    pub config: Config,
    /// What the caller says of each run.
    #[serde(default)]
    pub options: RunOptions,
    /// Why the case cannot be played over HTTP; without it, it is.
    #[serde(default)]
    pub not_over_http: Option<String>,
    /// Why the case is not played with a reload at each pause; without it, it is.
    #[serde(default)]
    pub no_reload: Option<String>,
    /// What happens. Without it there are only variants.
    #[serde(default)]
    pub script: Option<Steps>,
    /// What must come out.
    #[serde(default)]
    pub expect: Expect,
    /// The case in other forms: what a variant names takes the place of what stands above; of tools,
    /// that of the tools with the same name.
    #[serde(default)]
    pub variants: Vec<Located<Variant>>,
}

/// A case in another form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What is different.
    pub name: String,
    /// Anything that a reader should know.
    #[serde(default)]
    pub note: Option<String>,
    /// Other or further tools.
    #[serde(default)]
    pub tools: Ordered<Tool>,
    /// Other options of the loop.
    #[serde(default)]
    pub config: Option<Config>,
    /// Other options of each run.
    #[serde(default)]
    pub options: Option<RunOptions>,
    /// Why it cannot be played over HTTP.
    #[serde(default)]
    pub not_over_http: Option<String>,
    /// Why it is not played with a reload at each pause.
    #[serde(default)]
    pub no_reload: Option<String>,
    /// What happens.
    #[serde(default)]
    pub script: Option<Steps>,
    /// What must come out.
    #[serde(default)]
    pub expect: Option<Expect>,
}

/// What is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The loop.
    #[default]
    Loop,
    /// The executor alone.
    Executor,
}
