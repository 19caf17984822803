//! How a leg ends.

use serde::{Deserialize, Serialize};

use crate::approval::PendingCall;
use crate::content::ToolCall;
use crate::identity::{Occurrence, RunId};
use crate::record::PausedRun;
use crate::usage::{RoundUsage, Usage};

/// Why a leg, or one reply of a model, ended (contract C2). Failures are errors instead.
///
/// JSON form: a string in snake case; `{"budget": "calls"}`, `{"terminated": "fatal_error"}`,
/// `{"other": "…"}` where there is more to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model answered.
    Stop,
    /// The reply asks for calls. Seen below the function-invoking layer only.
    ToolCalls,
    /// The reply was cut by the output limit; none of its calls ran.
    Length,
    /// A content filter stopped the reply; none of its calls ran.
    ContentFilter,
    /// Calls wait for a person.
    AwaitingApproval,
    /// Calls of declared-only tools wait for the caller's results.
    AwaitingToolResults,
    /// The limit on model requests was reached.
    MaxRounds,
    /// Tools failed more often in a row than is tolerated.
    ToolRetryLimit,
    /// Another limit was reached.
    Budget(BudgetLimit),
    /// The model repeated the same calls with the same results.
    NoProgress,
    /// The model replied with nothing.
    EmptyResponse,
    /// The run was stopped.
    Terminated(TerminationCause),
    /// A reason of a provider's own.
    Other(String),
}

impl FinishReason {
    /// Its word in snake case, without what there is more to say; a provider's own as it is.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::AwaitingApproval => "awaiting_approval",
            Self::AwaitingToolResults => "awaiting_tool_results",
            Self::MaxRounds => "max_rounds",
            Self::ToolRetryLimit => "tool_retry_limit",
            Self::Budget(_) => "budget",
            Self::NoProgress => "no_progress",
            Self::EmptyResponse => "empty_response",
            Self::Terminated(_) => "terminated",
            Self::Other(word) => word,
        }
    }

    /// Whether the leg ended because calls wait for the outside.
    pub const fn is_pause(&self) -> bool {
        matches!(self, Self::AwaitingApproval | Self::AwaitingToolResults)
    }
}

/// Which limit was reached. JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetLimit {
    /// Tool calls per run or turn.
    Calls,
    /// Time spent working, pauses not counted.
    WallTime,
    /// The deadline given with the run.
    Deadline,
    /// Tokens.
    Tokens,
    /// Money.
    Cost,
}

/// What stopped a run. JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TerminationCause {
    /// A tool declared its error fatal.
    FatalError,
    /// A call failed under the fail-fast policy.
    FailFast,
    /// An unknown tool was called under the stop policy.
    UnknownTool,
    /// A middleware ended the run.
    Middleware,
    /// A hook ended the run.
    Hook,
}

/// The terminal item of a leg that did not fail: reason, usage, and what waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// Why it ended.
    pub reason: FinishReason,
    /// The run; unset on a provider's own finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Usage of this leg (of the reply, on a provider's own finish).
    #[serde(default)]
    pub usage: Usage,
    /// Usage of the run so far, earlier legs included.
    #[serde(default)]
    pub run_usage: Usage,
    /// Usage of each model request of the run, nested ones tagged.
    #[serde(default)]
    pub rounds: Vec<RoundUsage>,
    /// The calls that wait for the outside.
    #[serde(default)]
    pub pending: Vec<PendingCall>,
    /// Bodies that did not end within the grace period after a cancel or deadline.
    #[serde(default)]
    pub abandoned: Vec<AbandonedCall>,
    /// The run as a value, where it waits and its record may be needed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_run: Option<PausedRun>,
}

impl Finish {
    /// An end with this reason, and nothing else to say.
    pub fn new(reason: FinishReason) -> Self {
        Self {
            reason,
            run_id: None,
            usage: Usage::default(),
            run_usage: Usage::default(),
            rounds: Vec::new(),
            pending: Vec::new(),
            abandoned: Vec::new(),
            paused_run: None,
        }
    }

    /// Sets the usage of the leg or reply.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// A body that was left to itself: it was signalled, and did not end in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AbandonedCall {
    /// The call's place in its run.
    pub occurrence: Occurrence,
    /// The call.
    pub call: ToolCall,
}
