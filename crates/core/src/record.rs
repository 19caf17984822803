//! What is kept of a run that waits for the outside: the authority for its pending calls.

mod answering;
mod facts;
mod form;
mod settlement;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::approval::{ApprovalRequest, ClosedReason, PendingCall, WaitsFor};
use crate::content::{ToolCall, ToolOutcome, ToolResult};
use crate::identity::{Occurrence, RunId};
use crate::usage::{RoundUsage, Usage};

pub use self::facts::{CallAnswer, CallFacts};
pub(crate) use self::form::read_form;
pub use self::settlement::{SettledRequest, Settlement};

/// The version of the JSON form that this version writes.
pub(crate) const FORMAT: u32 = 1;

/// A run that waits, or waited, for the outside.
///
/// It holds what decides (pending calls with their recorded arguments, requests and how they were
/// settled, counters), and no history. JSON form: the fields by name, with `format`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    /// The version of this form.
    pub format: u32,
    /// The run.
    pub run_id: RunId,
    /// Counts the writes: a write names the revision that it is based on.
    pub revision: u64,
    /// The leg that wrote it, where a host replays the steps of the run: a leg that is taken up may write
    /// over what it wrote itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The session that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Whether the run is at its end. A closed record is kept for a while, so that a late answer
    /// gets a true reply.
    pub closed: bool,
    /// Whether a leg is in flight: if nobody holds the run, its owner died, and another may go on.
    #[serde(default, skip_serializing_if = "is_false")]
    pub working: bool,
    /// The round of the open batch.
    pub round: u32,
    /// The calls of the open batch, in call order.
    pub calls: Vec<CallRecord>,
    /// The requests of the run that are settled, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settled_requests: Vec<SettledRequest>,
    /// The calls that were denied in this turn: tool and canonical arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<(String, String)>,
    /// Usage of the run so far.
    #[serde(default)]
    pub usage: Usage,
    /// Usage of each model request so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<RoundUsage>,
    /// How long the run has worked, in milliseconds; pauses are not counted.
    #[serde(default)]
    pub worked_ms: u64,
    /// The counters of the loop, in a form of its own.
    #[serde(default)]
    pub counters: Value,
    /// A digest of the conversation up to the open batch, for stores and people to tell conversations
    /// apart. The loop decides nothing by it: a caller may trim what came before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix_digest: String,
    /// Members that this version does not know: they are written back as they were read.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl RunRecord {
    /// An open record of a run without calls.
    pub fn new(run_id: RunId) -> Self {
        Self {
            format: FORMAT,
            run_id,
            revision: 0,
            writer: None,
            session_id: None,
            closed: false,
            working: false,
            round: 0,
            calls: Vec::new(),
            settled_requests: Vec::new(),
            denied: Vec::new(),
            usage: Usage::default(),
            rounds: Vec::new(),
            worked_ms: 0,
            counters: Value::Null,
            prefix_digest: String::new(),
            unknown: Map::new(),
        }
    }

    /// The calls that wait for the outside.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.calls
            .iter()
            .flat_map(|call| call.pending(self.round))
            .collect()
    }

    /// The open call that a request belongs to, by the request's id or its address.
    pub fn open_request(&self, request: &str) -> Option<&CallRecord> {
        self.calls
            .iter()
            .find(|call| {
                call.status.request_ids().any(|id| id == request)
                    || matches!(&call.status, CallStatus::AwaitingData { address, .. }
                        if address == request)
            })
            .filter(|_| !self.closed)
    }

    /// How a request was settled, if it was.
    pub fn settlement(&self, request_id: &str) -> Option<Settlement> {
        self.settled_requests
            .iter()
            .find(|settled| settled.request_id == request_id)
            .map(|settled| settled.settlement)
    }

    /// The ids of all requests, open and settled.
    pub fn request_ids(&self) -> impl Iterator<Item = &str> {
        let open = self.calls.iter().flat_map(|call| call.status.request_ids());
        let settled = self.settled_requests.iter();
        open.chain(settled.map(|settled| settled.request_id.as_str()))
    }

    /// Marks a request as settled.
    pub fn settle(&mut self, request_id: &str, settlement: Settlement) {
        if self.settlement(request_id).is_none() {
            self.settled_requests.push(SettledRequest {
                request_id: request_id.to_owned(),
                settlement,
            });
        }
    }

    /// Takes back that requests were settled which wait again: a nested run refused their answers.
    pub fn reopen_pending(&mut self) {
        let calls = &self.calls;
        self.settled_requests.retain(|settled| {
            let mut open = calls.iter().flat_map(|call| call.status.request_ids());
            !open.any(|id| id == settled.request_id)
        });
    }

    /// Marks every open request as closed without an answer, and the run as ended.
    pub fn close(&mut self, reason: ClosedReason) {
        let open: Vec<String> = self
            .calls
            .iter()
            .flat_map(|call| call.status.request_ids().map(str::to_owned))
            .collect();
        for request_id in open {
            self.settle(&request_id, Settlement::Closed(reason));
        }
        self.calls.clear();
        self.closed = true;
        self.working = false;
    }
}

/// One call of an open batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// Its place among the calls of the reply, from 0.
    pub position: u32,
    /// The call as the model made it.
    pub call: ToolCall,
    /// The tool, where its name is not the one that the model used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments that run: parsed, rewritten, validated.
    #[serde(default)]
    pub arguments: Value,
    /// How often its body was entered.
    #[serde(default)]
    pub attempts: u32,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "CallFacts::is_empty")]
    pub facts: CallFacts,
    /// Where it stands.
    pub status: CallStatus,
    /// Members that this version does not know.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

impl CallRecord {
    /// A call of which nothing was run.
    pub fn new(position: u32, call: ToolCall, arguments: Value, status: CallStatus) -> Self {
        Self {
            position,
            call,
            tool: None,
            arguments,
            attempts: 0,
            facts: CallFacts::default(),
            status,
            unknown: Map::new(),
        }
    }

    /// The tool's canonical name.
    pub fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or_else(|| self.call.name())
    }

    /// Sets the tool, if its name is not the one that the model used.
    pub fn with_tool(mut self, tool: Option<&str>) -> Self {
        let other = tool.filter(|tool| *tool != self.call.name());
        self.tool = other.map(str::to_owned);
        self
    }

    /// Sets how often its body was entered.
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// What waits in this call: itself, or what a run nested in it waits for.
    pub fn pending(&self, round: u32) -> Vec<PendingCall> {
        let occurrence = Occurrence::new(round, self.position);
        if let CallStatus::AwaitingNested { pending, .. } = &self.status {
            return pending.clone();
        }
        let waits_for = self.status.waits_for().into_iter();
        waits_for
            .map(|waits_for| PendingCall::new(occurrence, self.call.clone(), waits_for))
            .collect()
    }

    /// Sets what else is known of it.
    pub fn with_facts(mut self, facts: CallFacts) -> Self {
        self.facts = facts;
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(fact: &bool) -> bool {
    !*fact
}

/// Where a call of an open batch stands. JSON form: tagged by `is`, in snake case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallStatus {
    /// It has its outcome.
    Settled {
        /// What became of it.
        outcome: ToolOutcome,
        /// The fingerprint of its result.
        #[serde(default)]
        digest: u64,
        /// Its result, where no transcript holds it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<ToolResult>,
    },
    /// Its body was, or may have been, entered and has no outcome.
    Started,
    /// It waits for a person.
    AwaitingApproval {
        /// The request.
        request: Box<ApprovalRequest>,
    },
    /// It waits for a result from the caller.
    AwaitingResult,
    /// Its body asked the outside for data.
    AwaitingData {
        /// The id by which an answer names it.
        request_id: String,
        /// Where in the run it happened.
        address: String,
        /// What the tool says to the outside.
        information: Value,
        /// What the tool wants to find again.
        state: Value,
    },
    /// A run nested in its body waits for the outside.
    AwaitingNested {
        /// What that run waits for, and runs nested in it.
        pending: Vec<PendingCall>,
        /// What the tool wants to find again.
        state: Value,
    },
    /// It waits for an earlier call that is undecided.
    AwaitingEarlier,
}

impl CallStatus {
    /// The id by which an answer names the call, if it waits for one itself.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::AwaitingApproval { request } => Some(&request.request_id),
            Self::AwaitingData { request_id, .. } => Some(request_id),
            _ => None,
        }
    }

    /// The ids by which answers name what waits in the call: its own, or those of a nested run.
    pub fn request_ids(&self) -> impl Iterator<Item = &str> {
        let nested: &[PendingCall] = match self {
            Self::AwaitingNested { pending, .. } => pending,
            _ => &[],
        };
        let own = self.request_id().into_iter();
        own.chain(nested.iter().filter_map(PendingCall::request_id))
    }

    /// What the call itself waits for, if it does.
    pub fn waits_for(&self) -> Option<WaitsFor> {
        match self {
            Self::Settled { .. } | Self::Started | Self::AwaitingNested { .. } => None,
            Self::AwaitingApproval { request } => Some(WaitsFor::Approval(request.clone())),
            Self::AwaitingResult => Some(WaitsFor::ToolResult),
            Self::AwaitingData {
                request_id,
                address,
                information,
                ..
            } => Some(WaitsFor::Data {
                request_id: request_id.clone(),
                address: address.clone(),
                information: information.clone(),
            }),
            Self::AwaitingEarlier => Some(WaitsFor::EarlierCall),
        }
    }
}

/// A run that waits, as a value: versioned, serialisable, small (contract I2).
///
/// Give it back with [`with_paused_run`](crate::ChatClientRunOptions::with_paused_run) where no
/// shared store holds the record. With both, the store's record wins. Whoever holds the bytes can
/// read them and, unless they are sealed, change what would run: seal them before they pass through
/// hands that you do not trust. Resuming the same bytes twice in processes that share no store
/// cannot be noticed; the idempotency keys are the same. JSON form: that of [`RunRecord`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PausedRun(Box<RunRecord>);

impl PausedRun {
    /// A record as a value.
    pub fn new(record: RunRecord) -> Self {
        Self(Box::new(record))
    }

    /// The record.
    pub fn record(&self) -> &RunRecord {
        &self.0
    }

    /// The record.
    pub fn into_record(self) -> RunRecord {
        *self.0
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.0.run_id
    }

    /// The calls that wait for the outside.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.0.pending()
    }

    /// Whether this version can read the form.
    pub fn is_supported(&self) -> bool {
        self.0.format == FORMAT
    }
}
