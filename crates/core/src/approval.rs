//! Requests for a person's yes, and the answers: data only. Who may answer what is decided by the
//! records that the loop holds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::ToolCall;
use crate::identity::{Occurrence, RunId};

/// A question to the outside whether one call may run.
///
/// The request id is random and not the call's id; an answer fits this request alone, once.
/// JSON form: the fields by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The random id by which an answer names this request.
    pub request_id: String,
    /// The run that waits.
    pub run_id: RunId,
    /// The call's place in it.
    pub occurrence: Occurrence,
    /// The call's label, as the model gave it.
    pub call_id: String,
    /// The tool that would run.
    pub tool: String,
    /// The arguments that would run: parsed, rewritten by hooks, validated.
    pub arguments: Value,
    /// Why it is asked, where a policy says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent that asks, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// The session in which it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When it was asked, in milliseconds since 1970 began (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at_ms: Option<u64>,
    /// Until when it may be answered, in milliseconds since 1970 began (UTC); without it, for as
    /// long as the store keeps the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl ApprovalRequest {
    /// A request with a fresh random id.
    pub fn new(
        run_id: RunId,
        occurrence: Occurrence,
        call: &ToolCall,
        tool: impl Into<String>,
        arguments: Value,
    ) -> Self {
        Self {
            request_id: crate::identity::random_hex(),
            run_id,
            occurrence,
            call_id: call.id().to_owned(),
            tool: tool.into(),
            arguments,
            reason: None,
            asked_by: None,
            session_id: None,
            asked_at_ms: None,
            expires_at_ms: None,
            unknown: Map::new(),
        }
    }

    /// Where in the run it is asked: `run/round/position/tool`. The id of a nested run is the address
    /// of the call that it is nested in, so that its addresses lie below.
    pub fn address(&self) -> String {
        format!("{}/{}/{}", self.run_id, self.occurrence, self.tool)
    }

    /// Says why it is asked.
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Says who asks: an agent, a session.
    pub fn with_asker(mut self, agent: Option<String>, session_id: Option<String>) -> Self {
        self.asked_by = agent;
        self.session_id = session_id;
        self
    }

    /// Says when it was asked and until when it may be answered, in milliseconds since 1970 began.
    pub fn with_times(mut self, asked_at_ms: u64, expires_at_ms: Option<u64>) -> Self {
        self.asked_at_ms = Some(asked_at_ms);
        self.expires_at_ms = expires_at_ms;
        self
    }

    /// Whether its time is over.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|until| until <= now_ms)
    }
}

/// An answer to a pending request, given in the options of the next leg.
///
/// JSON form: `{"request_id": …, "decision": "approve"}`,
/// `{…, "decision": {"deny": {"reason": …}}}`, `{…, "decision": {"approve_edited": {"arguments": …}}}`,
/// `{…, "decision": {"resume": {"data": …}}}`; a `decision` of `null` leaves the request pending, any
/// other value is kept as [`ApprovalDecision::Malformed`] and refused. With `arguments`, the answer
/// holds only if they are the ones that the request shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolApprovalResponse {
    /// Which request.
    pub request_id: String,
    /// What is decided; `None` decides nothing.
    #[serde(default)]
    pub decision: Option<ApprovalDecision>,
    /// The arguments that the person saw, to be compared with the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// Whether like calls are allowed from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<ApprovalScope>,
}

/// What is decided of a pending request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// The call may run as recorded.
    Approve,
    /// The call may not run.
    Deny {
        /// Told to the model; blank means none.
        reason: Option<String>,
    },
    /// The call may run with these arguments instead. They are validated.
    ApproveEdited {
        /// The arguments that run.
        arguments: Value,
    },
    /// The data that an interrupted tool waits for.
    Resume {
        /// Handed to the tool as it is.
        data: Value,
    },
    /// Something that is no decision: refused, nothing runs.
    Malformed(Value),
}

impl<'de> Deserialize<'de> for ApprovalDecision {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        enum Known {
            Approve,
            Deny {
                #[serde(default)]
                reason: Option<String>,
            },
            ApproveEdited {
                arguments: Value,
            },
            Resume {
                #[serde(default)]
                data: Value,
            },
        }
        let value = Value::deserialize(deserializer)?;
        Ok(match Known::deserialize(&value) {
            Ok(Known::Approve) => Self::Approve,
            Ok(Known::Deny { reason }) => Self::Deny { reason },
            Ok(Known::ApproveEdited { arguments }) => Self::ApproveEdited { arguments },
            Ok(Known::Resume { data }) => Self::Resume { data },
            Err(_) => Self::Malformed(value),
        })
    }
}

/// How far a yes reaches beyond its own call. JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalScope {
    /// Any call of this tool in this session.
    ToolInSession,
    /// Calls of this tool with the same canonical arguments in this session.
    ArgumentsInSession,
}

impl ToolApprovalResponse {
    /// The call may run as recorded.
    pub fn approve(request_id: impl Into<String>) -> Self {
        Self::new(request_id, ApprovalDecision::Approve)
    }

    /// The call may not run; a blank reason counts as none.
    pub fn deny(request_id: impl Into<String>, reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|reason| !reason.trim().is_empty());
        Self::new(request_id, ApprovalDecision::Deny { reason })
    }

    /// The call may run with these arguments instead.
    pub fn approve_edited(request_id: impl Into<String>, arguments: Value) -> Self {
        Self::new(request_id, ApprovalDecision::ApproveEdited { arguments })
    }

    /// The data that an interrupted tool waits for.
    pub fn resume(request_id: impl Into<String>, data: Value) -> Self {
        Self::new(request_id, ApprovalDecision::Resume { data })
    }

    /// An answer with a decision.
    pub fn new(request_id: impl Into<String>, decision: ApprovalDecision) -> Self {
        Self {
            request_id: request_id.into(),
            decision: Some(decision),
            arguments: None,
            remember: None,
        }
    }

    /// Says which arguments the person saw.
    pub fn with_arguments(mut self, arguments: Value) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// Allows like calls from now on.
    pub fn with_remember(mut self, scope: ApprovalScope) -> Self {
        self.remember = Some(scope);
        self
    }
}

/// Why an answer was refused (contract E3). JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// No open or closed record has this id.
    UnknownRequest,
    /// Another answer settled it.
    AlreadySettled,
    /// It was superseded by a new message, or expired.
    Stale,
    /// The arguments of the answer, or of the call as the messages show it, are not the record's.
    ArgsMismatch,
    /// The answer is of a kind that does not fit the request.
    WrongCategory,
    /// The answer is no decision, or its edited arguments do not fit the tool.
    Malformed,
}

impl RefusalReason {
    /// The reason as text: lower case, words joined by `_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownRequest => "unknown_request",
            Self::AlreadySettled => "already_settled",
            Self::Stale => "stale",
            Self::ArgsMismatch => "args_mismatch",
            Self::WrongCategory => "wrong_category",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a pending request was closed without an answer. JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClosedReason {
    /// A new message of the user took its place, or the conversation went on without an answer.
    Superseded,
    /// It was not answered in time.
    Expired,
    /// The run was cancelled.
    Cancelled,
}

/// A call that waits for the outside when a leg ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PendingCall {
    /// The call's place in its run. Of what waits in a nested run: the place of the call that it is
    /// nested in.
    pub occurrence: Occurrence,
    /// The call as the model made it; of what waits in a nested run, that of the nested run's model.
    pub call: ToolCall,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

impl PendingCall {
    /// A call that waits.
    pub fn new(occurrence: Occurrence, call: ToolCall, waits_for: WaitsFor) -> Self {
        Self {
            occurrence,
            call,
            waits_for,
        }
    }

    /// The request, if it waits for a person's yes.
    pub fn approval(&self) -> Option<&ApprovalRequest> {
        match &self.waits_for {
            WaitsFor::Approval(request) => Some(request),
            _ => None,
        }
    }

    /// Where it waits, if it waits for an answer: `run/round/position/tool/…`.
    pub fn address(&self) -> Option<String> {
        match &self.waits_for {
            WaitsFor::Approval(request) => Some(request.address()),
            WaitsFor::Data { address, .. } => Some(address.clone()),
            WaitsFor::ToolResult | WaitsFor::EarlierCall => None,
        }
    }

    /// The id by which an answer names it, if it waits for one.
    pub fn request_id(&self) -> Option<&str> {
        match &self.waits_for {
            WaitsFor::Approval(request) => Some(&request.request_id),
            WaitsFor::Data { request_id, .. } => Some(request_id),
            WaitsFor::ToolResult | WaitsFor::EarlierCall => None,
        }
    }
}

/// What a pending call waits for. JSON form: snake case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitsFor {
    /// A person's yes or no.
    Approval(Box<ApprovalRequest>),
    /// A result from the caller: the tool is declared, and has no body here.
    ToolResult,
    /// Data that an interrupted tool asked for.
    Data {
        /// The id by which an answer names the interrupt.
        request_id: String,
        /// Where in the run it happened: `run/round/position/tool/…`.
        address: String,
        /// What the tool says to the outside.
        information: Value,
    },
    /// An earlier call of the same reply, which is undecided (sequential and exclusive tools).
    EarlierCall,
}
