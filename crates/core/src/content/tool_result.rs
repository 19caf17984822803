//! The result of a call: its closed outcome, and what the model reads.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Content, ExtraFields};
use crate::identity::Occurrence;

/// What became of a call: one of a closed set (contract C1).
///
/// JSON form: `{"status": "ok"}`, `{"status": "error", "class": "timed_out", "started": true}`,
/// `{"status": "denied"}`, `{"status": "cancelled", "started": false}`,
/// `{"status": "skipped", "reason": "limit"}`, `{"status": "unknown"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The body returned a value.
    Ok,
    /// The call failed.
    Error(ToolErrorClass),
    /// A person or a policy said no. Not an error.
    Denied,
    /// The run was cancelled.
    Cancelled {
        /// Whether the body had been entered, so that it may have taken effect.
        started: bool,
    },
    /// The call was not run.
    Skipped {
        /// Why.
        reason: SkipReason,
    },
    /// The body may or may not have run: a crash, and the tool is not idempotent.
    Unknown,
}

/// In which way a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorClass {
    /// The arguments are not a JSON object, or break the tool's schema.
    InvalidArguments,
    /// No tool of that name is visible in this request.
    UnknownTool,
    /// The tool refused for want of a right.
    PermissionDenied,
    /// The body returned an error.
    Failed,
    /// The body, or something around it, panicked.
    Panicked,
    /// The deadline of the call passed.
    TimedOut {
        /// Whether the body had been entered, so that it may have taken effect.
        started: bool,
    },
}

impl ToolErrorClass {
    /// Its word in snake case, without what there is more to say.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArguments => "invalid_arguments",
            Self::UnknownTool => "unknown_tool",
            Self::PermissionDenied => "permission_denied",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}

/// Why a call was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SkipReason {
    /// A limit of the run was reached.
    Limit,
    /// The run was ended before the call's turn came.
    Terminated,
    /// A new message of the user took the place of a pending call.
    Superseded,
    /// The reply was cut off or filtered: the model may not have finished its calls.
    Truncated,
}

impl ToolOutcome {
    /// Whether the body returned a value.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Whether the call failed. Denied, cancelled and skipped calls did not fail.
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Its word in snake case, without what there is more to say.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error(_) => "error",
            Self::Denied => "denied",
            Self::Cancelled { .. } => "cancelled",
            Self::Skipped { .. } => "skipped",
            Self::Unknown => "unknown",
        }
    }

    /// Shorthand for [`ToolOutcome::Skipped`].
    pub const fn skipped(reason: SkipReason) -> Self {
        Self::Skipped { reason }
    }
}

/// Whose text a result is (contract J2): policies can ask for approval once text that nobody
/// vouches for is in the context. JSON form: `framework`, `trusted`, `untrusted`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TrustLabel {
    /// Written by raf itself: fillers, validation faults.
    Framework,
    /// The tool vouches for it.
    Trusted,
    /// Text from outside: web pages, files, other people. The default.
    #[default]
    Untrusted,
}

/// The result of one call. A cheap handle: cloning copies one pointer.
///
/// JSON form: `{"type": "tool_result", "call_id": …, "name": …, "outcome": {…}, "content": [parts],
/// "trust": …}`, with `occurrence` where the loop made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolResult(Arc<Data>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Data {
    #[serde(default)]
    call_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occurrence: Option<Occurrence>,
    #[serde(default = "ok")]
    outcome: ToolOutcome,
    #[serde(default)]
    content: Vec<Content>,
    #[serde(default)]
    trust: TrustLabel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    executed_arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(flatten)]
    extra: ExtraFields,
    #[serde(skip)]
    full: Option<Arc<[Content]>>,
}

fn ok() -> ToolOutcome {
    ToolOutcome::Ok
}

/// Equality of what is stored: [`ToolResult::full_content`] is live only, and does not count.
impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.call_id == other.call_id
            && self.name == other.name
            && self.occurrence == other.occurrence
            && self.outcome == other.outcome
            && self.content == other.content
            && self.trust == other.trust
            && self.executed_arguments == other.executed_arguments
            && self.correlation_id == other.correlation_id
            && self.extra == other.extra
    }
}

impl ToolResult {
    /// A result of the call with this id.
    pub fn new(call_id: impl Into<String>, outcome: ToolOutcome, text: impl Into<String>) -> Self {
        Self::builder(call_id, outcome).text(text).build()
    }

    /// An `ok` result of one text, as a caller gives it for a declared-only tool.
    pub fn ok(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(call_id, ToolOutcome::Ok, text)
    }

    /// A result with more than the usual fields.
    pub fn builder(call_id: impl Into<String>, outcome: ToolOutcome) -> ToolResultBuilder {
        ToolResultBuilder(Data {
            call_id: call_id.into(),
            name: String::new(),
            occurrence: None,
            outcome,
            content: Vec::new(),
            trust: TrustLabel::default(),
            executed_arguments: None,
            correlation_id: None,
            extra: ExtraFields::new(),
            full: None,
        })
    }

    /// The same result with some fields changed.
    pub fn to_builder(&self) -> ToolResultBuilder {
        ToolResultBuilder((*self.0).clone())
    }

    /// The id of the call, as the model gave it.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// The tool's name; empty where it is not known.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The place of the call within its run, where the loop made the result.
    pub fn occurrence(&self) -> Option<Occurrence> {
        self.0.occurrence
    }

    /// What became of the call.
    pub fn outcome(&self) -> ToolOutcome {
        self.0.outcome
    }

    /// What the model reads: never empty where the executor made it.
    pub fn content(&self) -> &[Content] {
        &self.0.content
    }

    /// The text parts of the content, joined.
    pub fn text(&self) -> String {
        self.0.content.iter().filter_map(Content::as_text).collect()
    }

    /// Whose text it is.
    pub fn trust(&self) -> TrustLabel {
        self.0.trust
    }

    /// The arguments that ran, where they differ from those that the model wrote.
    pub fn executed_arguments(&self) -> Option<&Value> {
        self.0.executed_arguments.as_ref()
    }

    /// The id under which the log holds the detail that the model was not told.
    pub fn correlation_id(&self) -> Option<&str> {
        self.0.correlation_id.as_deref()
    }

    /// Fields that this version does not know.
    pub fn extra(&self) -> &ExtraFields {
        &self.0.extra
    }

    /// The whole content, where [`ToolResult::content`] was cut to the size limit. Live only: it
    /// is not part of the JSON form, and gone after a reload.
    pub fn full_content(&self) -> &[Content] {
        self.0.full.as_deref().unwrap_or(&self.0.content)
    }

    /// Whether [`ToolResult::content`] was cut to the size limit.
    pub fn is_cut(&self) -> bool {
        self.0.full.is_some()
    }
}

/// Builds a [`ToolResult`].
#[derive(Clone, Debug)]
pub struct ToolResultBuilder(Data);

impl ToolResultBuilder {
    /// Sets the call's id.
    pub fn call_id(mut self, id: impl Into<String>) -> Self {
        self.0.call_id = id.into();
        self
    }

    /// Sets the tool's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Sets the place of the call.
    pub fn occurrence(mut self, occurrence: Occurrence) -> Self {
        self.0.occurrence = Some(occurrence);
        self
    }

    /// Sets the outcome.
    pub fn outcome(mut self, outcome: ToolOutcome) -> Self {
        self.0.outcome = outcome;
        self
    }

    /// Adds a text part.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.content.push(Content::text(text));
        self
    }

    /// Replaces the content.
    pub fn content(mut self, content: Vec<Content>) -> Self {
        self.0.content = content;
        self
    }

    /// Sets whose text it is.
    pub fn trust(mut self, trust: TrustLabel) -> Self {
        self.0.trust = trust;
        self
    }

    /// Records the arguments that ran, where they differ from the model's.
    pub fn executed_arguments(mut self, arguments: Value) -> Self {
        self.0.executed_arguments = Some(arguments);
        self
    }

    /// Sets the id under which the log holds the detail.
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.0.correlation_id = Some(id.into());
        self
    }

    /// Adds a field that raf does not know.
    pub fn extra(mut self, name: impl Into<String>, value: Value) -> Self {
        self.0.extra.insert(name.into(), value);
        self
    }

    /// Keeps the whole content beside the cut one, for the caller.
    pub fn full_content(mut self, content: Vec<Content>) -> Self {
        self.0.full = Some(content.into());
        self
    }

    /// The result.
    pub fn build(self) -> ToolResult {
        ToolResult(Arc::new(self.0))
    }
}

impl ToolOutcome {
    /// What the model reads of an outcome that has no words of its own.
    pub const fn default_text(self) -> &'static str {
        match self {
            Self::Ok => "Done. The tool returned nothing.",
            Self::Error(class) => match class {
                ToolErrorClass::InvalidArguments => {
                    "The arguments are invalid. The tool was not run."
                }
                ToolErrorClass::UnknownTool => "There is no tool of this name.",
                ToolErrorClass::PermissionDenied => "The tool lacks the permission for this.",
                ToolErrorClass::Failed => "The tool failed.",
                ToolErrorClass::Panicked => "The tool failed unexpectedly.",
                ToolErrorClass::TimedOut { started: false } => {
                    "The call timed out before it started. It had no effect."
                }
                ToolErrorClass::TimedOut { started: true } => {
                    "The call timed out while it was running. It may have taken effect."
                }
            },
            Self::Denied => "Rejected: the call was not approved.",
            Self::Cancelled { started: false } => {
                "The call was cancelled before it started. It had no effect."
            }
            Self::Cancelled { started: true } => {
                "The call was cancelled while it was running. It may have taken effect."
            }
            Self::Skipped { reason } => match reason {
                SkipReason::Limit => "Not run: a limit of this run was reached.",
                SkipReason::Terminated => "Not run: the run was ended.",
                SkipReason::Superseded => "Not run: superseded by a new message.",
                SkipReason::Truncated => {
                    "Not run: the reply was cut off before its calls were complete."
                }
            },
            Self::Unknown => "It is not known whether this call ran. It may have taken effect.",
        }
    }
}
