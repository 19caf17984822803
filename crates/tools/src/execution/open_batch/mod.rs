//! The calls of one reply and where each stands: what may run now, what waits, what an answer does.
//! Pure; also the bridge to and from the record.

mod answers;
mod nested;
mod records;

use std::collections::BTreeMap;

use raf_core::{
    ApprovalRequest, Occurrence, PendingCall, RunId, ToolCall, ToolErrorClass, ToolOutcome,
    ToolResult,
};
use serde_json::Value;

use super::batch::{BatchEvent, FinishedCall, QueuedCall};
use super::digest::ResultDigest;
use super::options::ExecutionMode;
use super::prepare::{ReadyCall, SettledCall};
use crate::error::Interrupt;

pub(super) use self::answers::edited_note;
pub use self::answers::{Applied, rejection};
pub use self::records::address_of;

/// The calls of one reply, in call order.
#[derive(Clone, Debug)]
pub struct OpenBatch {
    run_id: RunId,
    round: u32,
    calls: Vec<BatchCall>,
}

/// One call and where it stands.
#[derive(Clone, Debug)]
pub struct BatchCall {
    /// Its place in the run.
    pub occurrence: Occurrence,
    /// As the model made it.
    pub call: ToolCall,
    /// The tool, where its canonical name is not the one that the model used.
    tool: Option<String>,
    /// Where it stands.
    pub state: CallState,
}

impl BatchCall {
    /// A call and where it stands.
    pub fn new(occurrence: Occurrence, call: ToolCall, state: CallState) -> Self {
        Self {
            occurrence,
            call,
            tool: None,
            state,
        }
    }

    /// Sets the tool's canonical name, if it is not the one that the model used.
    pub fn with_tool(mut self, tool: Option<&str>) -> Self {
        let other = tool.filter(|tool| *tool != self.call.name());
        self.tool = other.map(str::to_owned);
        self
    }

    /// The tool's canonical name: what limits count by.
    pub fn tool_name(&self) -> &str {
        self.tool.as_deref().unwrap_or_else(|| self.call.name())
    }
}

/// Where a call stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallState {
    /// Its body may run, as far as it itself is concerned.
    Ready(Box<ReadyCall>),
    /// It has an outcome that is not reported yet.
    Settled(SettledCall),
    /// It waits for a person. The request is made when the batch pauses.
    Gated {
        /// What would run.
        ready: Box<ReadyCall>,
        /// The request, once it was announced.
        request: Option<Box<ApprovalRequest>>,
        /// Why it is asked, where a policy says so.
        reason: Option<String>,
    },
    /// Its body asked the outside for data.
    Interrupted {
        /// What is entered again with the answer.
        ready: Box<ReadyCall>,
        /// The id by which an answer names it.
        request_id: String,
        /// What it says, and what it wants to find again.
        interrupt: Interrupt,
    },
    /// The caller gives its result.
    DeclaredOnly,
    /// It has its outcome.
    Done(DoneCall),
}

/// What is kept of a call that has its outcome.
#[derive(Clone, Debug)]
pub struct DoneCall {
    /// What became of it.
    pub outcome: ToolOutcome,
    /// The fingerprint of its result.
    pub digest: ResultDigest,
    /// Whether equal calls of its tool are a way to wait.
    pub polling: bool,
    /// The result; unset where only the transcript holds it.
    pub result: Option<ToolResult>,
}

/// What is held back while a call of the batch is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldPolicy {
    /// Whether calls run one after another.
    pub mode: ExecutionMode,
    /// Whether the whole batch waits, instead of gated calls alone.
    pub whole_batch: bool,
}

impl OpenBatch {
    /// A batch of calls, in call order.
    pub fn new(run_id: RunId, round: u32, calls: Vec<BatchCall>) -> Self {
        Self {
            run_id,
            round,
            calls,
        }
    }

    /// The round that the batch belongs to.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The calls.
    pub fn calls(&self) -> &[BatchCall] {
        &self.calls
    }

    /// What may run or be reported now (contract D8, E1): ungated calls and approved ones;
    /// calls behind an undecided one wait where order counts.
    pub fn runnable(&self, hold: HoldPolicy) -> Vec<QueuedCall> {
        let held = hold.whole_batch && self.calls.iter().any(|call| call.state.is_undecided());
        let mut undecided_before = false;
        let mut blocked = held;
        let mut runnable = Vec::new();
        for call in &self.calls {
            match &call.state {
                CallState::Settled(settled) => {
                    runnable.push(QueuedCall::Settled(settled.clone()));
                }
                CallState::Ready(ready) => {
                    let exclusive = ready.tool.tool().limits().exclusive;
                    if blocked || (exclusive && undecided_before) {
                        blocked = true;
                    } else {
                        runnable.push(QueuedCall::Ready(ready.clone()));
                    }
                }
                CallState::Gated { ready, .. } | CallState::Interrupted { ready, .. } => {
                    undecided_before = true;
                    blocked |= hold.mode == ExecutionMode::Sequential
                        || ready.tool.tool().limits().exclusive;
                }
                CallState::DeclaredOnly | CallState::Done(_) => {}
            }
        }
        runnable
    }

    /// Notes what happened to a call.
    pub fn note(&mut self, event: &BatchEvent, keep_results: bool) {
        match event {
            BatchEvent::Finished(finished) => self.finished(finished, keep_results),
            BatchEvent::Interrupted {
                ready,
                interrupt,
                request_id,
            } => self.interrupted(ready.clone(), interrupt.clone(), request_id.clone()),
            BatchEvent::Starting { .. }
            | BatchEvent::Started { .. }
            | BatchEvent::Progress { .. }
            | BatchEvent::Nested { .. }
            | BatchEvent::NestedUsed { .. }
            | BatchEvent::LeftOpen { .. } => {}
        }
    }

    /// Notes the outcome of a call.
    pub fn finished(&mut self, finished: &FinishedCall, keep_result: bool) {
        self.set(
            finished.occurrence,
            CallState::Done(DoneCall {
                outcome: finished.result.outcome(),
                digest: finished.digest,
                polling: finished.polling,
                result: keep_result.then(|| finished.result.clone()),
            }),
        );
    }

    /// Notes that a body asked the outside for data; says under which id and address.
    pub fn interrupted(&mut self, ready: Box<ReadyCall>, interrupt: Interrupt, request_id: String) {
        let occurrence = ready.occurrence;
        self.set(
            occurrence,
            CallState::Interrupted {
                ready,
                request_id,
                interrupt,
            },
        );
    }

    /// Settles a declared-only call by the caller's result.
    pub fn answered_by_caller(&mut self, occurrence: Occurrence, result: &ToolResult) {
        let done = DoneCall {
            outcome: result.outcome(),
            digest: ResultDigest::of_parts(result.outcome(), result.content()),
            polling: false,
            result: None,
        };
        self.set(occurrence, CallState::Done(done));
    }

    /// Gives every call that is not done an outcome, to be reported.
    pub fn settle_rest(&mut self, outcome: ToolOutcome) -> Vec<SettledCall> {
        let mut settled = Vec::new();
        for call in &mut self.calls {
            if let CallState::Done(_) = call.state {
                continue;
            }
            let rest = match &call.state {
                CallState::Settled(own) => own.clone(),
                // Its body was entered, and asked.
                CallState::Interrupted { ready, .. }
                    if ready.attempt > 1 && matches!(outcome, ToolOutcome::Cancelled { .. }) =>
                {
                    let outcome = ToolOutcome::Cancelled { started: true };
                    SettledCall::new(call.occurrence, &call.call, outcome, None)
                }
                _ => SettledCall::new(call.occurrence, &call.call, outcome, None),
            };
            call.state = CallState::Done(DoneCall {
                outcome: rest.result.outcome(),
                digest: ResultDigest::of(rest.result.outcome(), ""),
                polling: false,
                result: Some(rest.result.clone()),
            });
            settled.push(rest);
        }
        settled
    }

    /// Makes the requests of gated calls that have none, to be announced.
    pub fn make_requests(
        &mut self,
        complete: impl Fn(ApprovalRequest) -> ApprovalRequest,
    ) -> Vec<ApprovalRequest> {
        let mut made = Vec::new();
        for call in &mut self.calls {
            let CallState::Gated {
                ready,
                request: request @ None,
                reason,
            } = &mut call.state
            else {
                continue;
            };
            let mut new = ApprovalRequest::new(
                self.run_id.clone(),
                call.occurrence,
                &call.call,
                ready.tool.name(),
                Value::Object(ready.arguments.clone()),
            );
            new.reason.clone_from(reason);
            let new = complete(new);
            made.push(new.clone());
            *request = Some(Box::new(new));
        }
        made
    }

    /// Whether every call has its outcome.
    pub fn is_done(&self) -> bool {
        self.calls
            .iter()
            .all(|call| matches!(call.state, CallState::Done(_)))
    }

    /// The outcomes, in call order, of the calls that have one.
    pub fn outcomes(&self) -> impl Iterator<Item = (&BatchCall, &DoneCall)> {
        self.calls.iter().filter_map(|call| match &call.state {
            CallState::Done(done) => Some((call, done)),
            _ => None,
        })
    }

    /// Replaces the state of a call.
    pub fn set(&mut self, occurrence: Occurrence, state: CallState) {
        let call = self
            .calls
            .iter_mut()
            .find(|call| call.occurrence == occurrence);
        if let Some(call) = call {
            call.state = state;
        }
    }

    /// The calls that wait, as the caller is told.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.to_records(None)
            .into_iter()
            .flat_map(|record| record.pending(self.round))
            .collect()
    }

    /// The digests of the calls that are done, by position.
    pub fn digests(&self) -> BTreeMap<u32, ResultDigest> {
        self.calls
            .iter()
            .filter_map(|call| match &call.state {
                CallState::Done(done) => Some((call.occurrence.position, done.digest)),
                _ => None,
            })
            .collect()
    }
}

impl CallState {
    /// Whether the call was settled because its tool is unknown.
    pub fn is_unknown_tool(&self) -> bool {
        matches!(self, Self::Settled(settled)
            if settled.result.outcome() == ToolOutcome::Error(ToolErrorClass::UnknownTool))
    }

    /// Whether the call waits for a decision of the outside.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Gated { .. } | Self::Interrupted { .. })
    }
}
