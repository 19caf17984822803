//! What a caller says of one run.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::approval::ToolApprovalResponse;
use crate::cancellation::Cancellation;
use crate::declaration::ToolDeclaration;
use crate::error::{Error, Result};
use crate::extensions::Extensions;
use crate::record::PausedRun;

/// Options of one leg. Everything is unset by default: the provider's own defaults hold.
///
/// Steps of the loop never change the caller's copy. On resume they are given again.
///
/// `Debug` shows no contents: of the extra body the names only, of the tools theirs, how many answers
/// there are, and which run is given back.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ChatClientRunOptions {
    /// The model, as the provider names it.
    pub model: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// The most tokens that one reply may have.
    pub max_output_tokens: Option<u32>,
    /// Texts at which the model stops.
    pub stop: Vec<String>,
    /// A seed, for providers that sample repeatably.
    pub seed: Option<i64>,
    /// Penalty on what was used often.
    pub frequency_penalty: Option<f64>,
    /// Penalty on what was used at all.
    pub presence_penalty: Option<f64>,
    /// Tools that the model may call. Those without a body in a registry or source are
    /// declared-only: the caller gives their results.
    pub tools: Vec<ToolDeclaration>,
    /// Whether the model may, must or must not call tools.
    pub tool_choice: Option<ToolChoice>,
    /// Whether one reply may ask for several calls.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat>,
    /// How much the model reasons.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Fields laid over the request's JSON body as they are.
    pub extra_body: Map<String, Value>,
    /// Answers to pending requests of an earlier leg.
    pub tool_approval_responses: Vec<ToolApprovalResponse>,
    /// A run that waits, as a value, where no shared store holds its record.
    pub paused_run: Option<PausedRun>,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// How the run is told to stop.
    pub cancellation: Cancellation,
    /// How long the whole leg may take from its first poll.
    pub deadline: Option<Duration>,
    /// Per-run things that only some layers know.
    pub extensions: Extensions,
}

impl fmt::Debug for ChatClientRunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<&str> = self.tools.iter().map(ToolDeclaration::name).collect();
        let extra_body: Vec<&String> = self.extra_body.keys().collect();
        f.debug_struct("ChatClientRunOptions")
            .field("model", &self.model)
            .field("temperature", &self.temperature)
            .field("top_p", &self.top_p)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("stop", &self.stop)
            .field("seed", &self.seed)
            .field("frequency_penalty", &self.frequency_penalty)
            .field("presence_penalty", &self.presence_penalty)
            .field("tools", &tools)
            .field("tool_choice", &self.tool_choice)
            .field("parallel_tool_calls", &self.parallel_tool_calls)
            .field("response_format", &self.response_format)
            .field("reasoning_effort", &self.reasoning_effort)
            .field("extra_body", &extra_body)
            .field(
                "tool_approval_responses",
                &self.tool_approval_responses.len(),
            )
            .field(
                "paused_run",
                &self.paused_run.as_ref().map(PausedRun::run_id),
            )
            .field("session_id", &self.session_id)
            .field("cancellation", &self.cancellation)
            .field("deadline", &self.deadline)
            .field("extensions", &self.extensions)
            .finish()
    }
}

impl ChatClientRunOptions {
    /// Options with everything unset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the temperature.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets nucleus sampling.
    pub fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets the most tokens that one reply may have.
    pub fn with_max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the texts at which the model stops.
    pub fn with_stop(mut self, stop: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stop = stop.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the seed.
    pub fn with_seed(mut self, seed: i64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the penalty on what was used often.
    pub fn with_frequency_penalty(mut self, penalty: f64) -> Self {
        self.frequency_penalty = Some(penalty);
        self
    }

    /// Sets the penalty on what was used at all.
    pub fn with_presence_penalty(mut self, penalty: f64) -> Self {
        self.presence_penalty = Some(penalty);
        self
    }

    /// Sets the tools that the model may call beside those of registries and sources.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolDeclaration>) -> Self {
        self.tools = tools.into_iter().collect();
        self
    }

    /// Sets whether the model may, must or must not call tools.
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = Some(choice);
        self
    }

    /// Sets whether one reply may ask for several calls.
    pub fn with_parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the form of the answer.
    pub fn with_response_format(mut self, format: ResponseFormat) -> Self {
        self.response_format = Some(format);
        self
    }

    /// Sets how much the model reasons.
    pub fn with_reasoning_effort(mut self, effort: ReasoningEffort) -> Self {
        self.reasoning_effort = Some(effort);
        self
    }

    /// Lays a field over the request's JSON body.
    pub fn with_extra_body(mut self, name: impl Into<String>, value: Value) -> Self {
        self.extra_body.insert(name.into(), value);
        self
    }

    /// Gives answers to pending requests of an earlier leg.
    pub fn with_tool_approval_responses(
        mut self,
        responses: impl IntoIterator<Item = ToolApprovalResponse>,
    ) -> Self {
        self.tool_approval_responses = responses.into_iter().collect();
        self
    }

    /// Gives back a run that waits, where no shared store holds its record.
    pub fn with_paused_run(mut self, paused: PausedRun) -> Self {
        self.paused_run = Some(paused);
        self
    }

    /// Names the session.
    pub fn with_session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets how the run is told to stop: a token, or an `Arc<AtomicBool>`.
    pub fn with_cancellation(mut self, cancellation: impl Into<Cancellation>) -> Self {
        self.cancellation = cancellation.into();
        self
    }

    /// Sets how long the whole leg may take from its first poll.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets a per-run extension by its type.
    pub fn with_extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Refuses data that only a function-invoking layer can use: a provider calls this first, so
    /// that an answer is never dropped in silence (contract I5).
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if there are approval responses or a paused
    /// run.
    pub fn refuse_resume_data(&self) -> Result<()> {
        if self.tool_approval_responses.is_empty() && self.paused_run.is_none() {
            return Ok(());
        }
        Err(Error::misuse(
            "approval responses or a paused run reached the provider unused: there is no \
             function-invoking layer below the caller. Add one to the stack, or give them to the \
             client that asked for them",
        ))
    }
}

/// Whether the model may, must or must not call tools. JSON form: snake case, `{"named": "tool"}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// It may.
    Auto,
    /// It must not; the declarations still go along.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Named(String),
}

impl ToolChoice {
    /// Whether a call is forced.
    pub const fn is_forced(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

/// The form of the answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Free text.
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema(JsonSchemaFormat),
}

/// A schema that the answer must fit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JsonSchemaFormat {
    /// The schema's name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the answer is for.
    pub description: Option<String>,
    /// The schema, as text that reaches the wire as it is.
    pub schema: Box<RawValue>,
    /// Whether the provider holds the model to it.
    pub strict: Option<bool>,
}

impl JsonSchemaFormat {
    /// A named schema.
    pub fn new(name: impl Into<String>, schema: &Value) -> Self {
        Self {
            name: name.into(),
            description: None,
            schema: RawValue::from_string(schema.to_string()).expect("a value prints as JSON"),
            strict: None,
        }
    }

    /// Says whether the provider holds the model to it.
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    /// Says what the answer is for.
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

/// How much the model reasons. JSON form: a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// In a provider's own word.
    Other(String),
}

impl ReasoningEffort {
    /// The word that goes over the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Other(word) => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ChatClientRunOptions;
    use crate::{PausedRun, RunId, RunRecord, ToolApprovalResponse};

    #[test]
    fn debug_shows_no_contents() {
        let mut record = RunRecord::new(RunId::from("run-1"));
        record.counters = json!("secret counters");
        let options = ChatClientRunOptions::new()
            .with_extra_body("api_key", json!("secret key"))
            .with_paused_run(PausedRun::new(record))
            .with_tool_approval_responses([ToolApprovalResponse::deny("r", "secret reason")]);
        let shown = format!("{options:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("api_key") && shown.contains("run-1"));
        assert!(shown.contains("tool_approval_responses: 1"), "{shown}");
    }
}
