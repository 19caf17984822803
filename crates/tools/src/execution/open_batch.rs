//! The calls of one reply and where each stands: what may run now, what waits, what an answer does.
//! Pure; also the bridge to and from the record.

use std::collections::BTreeMap;

use raf_core::{
    ApprovalDecision, ApprovalRequest, CallRecord, CallStatus, Error, Occurrence, PendingCall,
    RefusalReason, Result, RunId, ToolApprovalResponse, ToolCall, ToolErrorClass, ToolOutcome,
    ToolResult, canonical_json,
};
use serde_json::Value;

use super::batch::{BatchEvent, FinishedCall, QueuedCall};
use super::digest::ResultDigest;
use super::options::ExecutionMode;
use super::prepare::{ReadyCall, SettledCall};
use crate::context::Resumption;
use crate::error::Interrupt;
use crate::toolset::{ToolEntry, ToolSet};

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
    /// Where it stands.
    pub state: CallState,
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

    /// Takes out what may run or be reported now (contract D8, E1): ungated calls and approved ones;
    /// calls behind an undecided one wait where order counts.
    pub fn take_runnable(&mut self, hold: HoldPolicy) -> Vec<QueuedCall> {
        let held = hold.whole_batch && self.calls.iter().any(|call| call.state.is_undecided());
        let mut undecided_before = false;
        let mut blocked = held;
        let mut runnable = Vec::new();
        for call in &mut self.calls {
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
            BatchEvent::Started { .. } | BatchEvent::Progress { .. } => {}
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
    pub fn interrupted(
        &mut self,
        mut ready: Box<ReadyCall>,
        interrupt: Interrupt,
        request_id: String,
    ) {
        let occurrence = ready.occurrence;
        ready.resumption = None;
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
    pub fn make_requests(&mut self) -> Vec<ApprovalRequest> {
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
    pub fn outcomes(&self) -> impl Iterator<Item = (&ToolCall, &DoneCall)> {
        self.calls.iter().filter_map(|call| match &call.state {
            CallState::Done(done) => Some((&call.call, done)),
            _ => None,
        })
    }

    /// Acts on an answer.
    ///
    /// # Errors
    /// Why it does not fit; the call stays as it was (contract E3).
    pub fn apply(
        &mut self,
        answer: &ToolApprovalResponse,
    ) -> std::result::Result<Applied, RefusalReason> {
        let address = answer.request_id.as_str();
        let found = self.calls.iter_mut().find(|call| match &call.state {
            CallState::Gated {
                request: Some(request),
                ..
            } => request.request_id == address,
            CallState::Interrupted {
                request_id, ready, ..
            } => request_id == address || address_of(&self.run_id, ready) == address,
            _ => false,
        });
        let Some(call) = found else {
            return Err(RefusalReason::UnknownRequest);
        };
        let Some(decision) = &answer.decision else {
            return Ok(Applied::Nothing);
        };
        let occurrence = call.occurrence;
        let (request_id, state) = match (&call.state, decision) {
            (_, ApprovalDecision::Malformed(_)) => return Err(RefusalReason::Malformed),
            (CallState::Gated { ready, request, .. }, decision) => {
                let request_id = request.as_ref().map(|request| request.request_id.clone());
                if let Some(shown) = &answer.arguments {
                    let recorded = Value::Object(ready.arguments.clone());
                    if canonical_json(shown) != canonical_json(&recorded) {
                        return Err(RefusalReason::ArgsMismatch);
                    }
                }
                (request_id, decide(ready, decision)?)
            }
            (
                CallState::Interrupted {
                    ready,
                    request_id,
                    interrupt,
                },
                decision,
            ) => {
                let state = resume(ready, interrupt, decision)?;
                (Some(request_id.clone()), state)
            }
            _ => return Err(RefusalReason::UnknownRequest),
        };
        let started = match state {
            CallState::Ready(_) => true,
            CallState::Settled(_) => false,
            _ => return Ok(Applied::Nothing),
        };
        call.state = state;
        Ok(Applied::Settled {
            request_id: request_id.unwrap_or_default(),
            occurrence,
            approved: started,
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
        self.to_records(false)
            .into_iter()
            .filter_map(|record| {
                let occurrence = Occurrence::new(self.round, record.position);
                let waits_for = record.status.waits_for()?;
                Some(PendingCall::new(occurrence, record.call, waits_for))
            })
            .collect()
    }

    /// The calls as they are recorded. `running`: calls that may run now are about to be entered.
    pub fn to_records(&self, running: bool) -> Vec<CallRecord> {
        self.calls
            .iter()
            .map(|call| {
                let (arguments, attempts, status) = match &call.state {
                    CallState::Ready(ready) => {
                        let status = if running {
                            CallStatus::Started
                        } else {
                            CallStatus::AwaitingEarlier
                        };
                        (object(ready), ready.attempt - 1, status)
                    }
                    CallState::Gated { ready, request, .. } => {
                        let status = match request {
                            Some(request) => CallStatus::AwaitingApproval {
                                request: request.clone(),
                            },
                            None => CallStatus::AwaitingEarlier,
                        };
                        (object(ready), ready.attempt - 1, status)
                    }
                    CallState::Interrupted {
                        ready,
                        request_id,
                        interrupt,
                    } => {
                        let status = CallStatus::AwaitingData {
                            request_id: request_id.clone(),
                            address: address_of(&self.run_id, ready),
                            information: interrupt.information.clone(),
                            state: interrupt.state.clone(),
                        };
                        (object(ready), ready.attempt, status)
                    }
                    CallState::DeclaredOnly => (Value::Null, 0, CallStatus::AwaitingResult),
                    CallState::Settled(settled) => {
                        let status = CallStatus::Settled {
                            outcome: settled.result.outcome(),
                            digest: 0,
                            result: Some(settled.result.clone()),
                        };
                        (Value::Null, 0, status)
                    }
                    CallState::Done(done) => {
                        let status = CallStatus::Settled {
                            outcome: done.outcome,
                            digest: done.digest.value(),
                            result: done.result.clone(),
                        };
                        (Value::Null, 0, status)
                    }
                };
                CallRecord::new(
                    call.occurrence.position,
                    call.call.clone(),
                    arguments,
                    status,
                )
                .with_attempts(attempts)
                .with_tool(call.state.tool_name())
            })
            .collect()
    }

    /// The batch of a record, its tools resolved afresh.
    ///
    /// A call whose body may have been entered without an outcome is settled as cancelled: it is not
    /// entered again.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if a recorded tool cannot be
    /// resolved: nothing is changed, and the calls stay pending (contract E8).
    pub fn from_record(
        run_id: &RunId,
        round: u32,
        records: &[CallRecord],
        tools: &ToolSet,
    ) -> Result<Self> {
        let calls = records
            .iter()
            .map(|record| {
                let occurrence = Occurrence::new(round, record.position);
                let state = match &record.status {
                    CallStatus::Settled {
                        outcome,
                        digest,
                        result,
                    } => CallState::Done(DoneCall {
                        outcome: *outcome,
                        digest: ResultDigest::from_value(*digest),
                        polling: is_polling(record, tools),
                        result: result.clone(),
                    }),
                    CallStatus::Started => CallState::Settled(SettledCall::new(
                        occurrence,
                        &record.call,
                        ToolOutcome::Cancelled { started: true },
                        None,
                    )),
                    CallStatus::AwaitingApproval { request } => CallState::Gated {
                        ready: Box::new(ready(record, occurrence, tools)?),
                        reason: request.reason.clone(),
                        request: Some(request.clone()),
                    },
                    CallStatus::AwaitingData {
                        request_id,
                        information,
                        state,
                        ..
                    } => CallState::Interrupted {
                        ready: Box::new(ReadyCall {
                            attempt: record.attempts,
                            ..ready(record, occurrence, tools)?
                        }),
                        request_id: request_id.clone(),
                        interrupt: Interrupt {
                            information: information.clone(),
                            state: state.clone(),
                        },
                    },
                    CallStatus::AwaitingEarlier => {
                        CallState::Ready(Box::new(ready(record, occurrence, tools)?))
                    }
                    _ => CallState::DeclaredOnly,
                };
                Ok(BatchCall {
                    occurrence,
                    call: record.call.clone(),
                    state,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self::new(run_id.clone(), round, calls))
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

/// What an answer did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// It decides nothing.
    Nothing,
    /// It settled the request.
    Settled {
        /// The request's own id.
        request_id: String,
        /// The call.
        occurrence: Occurrence,
        /// Whether the body is to be entered.
        approved: bool,
    },
}

impl CallState {
    /// Whether the call was settled because its tool is unknown.
    pub fn is_unknown_tool(&self) -> bool {
        matches!(self, Self::Settled(settled)
            if settled.result.outcome() == ToolOutcome::Error(ToolErrorClass::UnknownTool))
    }

    /// The canonical name of the call's tool, where it is known.
    fn tool_name(&self) -> Option<&str> {
        match self {
            Self::Ready(ready) | Self::Gated { ready, .. } | Self::Interrupted { ready, .. } => {
                Some(ready.tool.name())
            }
            _ => None,
        }
    }

    /// Whether the call waits for a decision of the outside.
    pub fn is_undecided(&self) -> bool {
        matches!(self, Self::Gated { .. } | Self::Interrupted { .. })
    }
}

/// Where an interrupt happened: `run/round/position/tool`.
pub fn address_of(run_id: &RunId, ready: &ReadyCall) -> String {
    format!("{run_id}/{}/{}", ready.occurrence, ready.tool.name())
}

fn object(ready: &ReadyCall) -> Value {
    Value::Object(ready.arguments.clone())
}

/// Whether the recorded arguments are others than those that the model wrote.
fn is_rewritten(record: &CallRecord) -> bool {
    match (record.call.parsed_arguments(), &record.arguments) {
        (Ok(written), Value::Object(recorded)) => written != recorded,
        _ => false,
    }
}

fn is_polling(record: &CallRecord, tools: &ToolSet) -> bool {
    let tool = tools.get(record.tool_name()).and_then(ToolEntry::body);
    tool.is_some_and(|tool| tool.tool().limits().polling)
}

fn ready(record: &CallRecord, occurrence: Occurrence, tools: &ToolSet) -> Result<ReadyCall> {
    let name = record.tool_name();
    let Some(tool) = tools.get(name).and_then(ToolEntry::body) else {
        return Err(Error::configuration(format!(
            "the tool '{name}' of a pending call cannot be found: give the tools of the paused run \
             again when it is resumed. The call stays pending"
        ))
        .with_context("call", occurrence.to_string()));
    };
    Ok(ReadyCall {
        occurrence,
        call: record.call.clone(),
        tool: tool.clone(),
        arguments: record.arguments.as_object().cloned().unwrap_or_default(),
        attempt: record.attempts + 1,
        resumption: None,
        approved: false,
        edited: false,
        rewritten: is_rewritten(record),
        unknown: None,
    })
}

/// What a decision makes of a gated call. The schema is looked at again, and can only tighten.
fn decide(
    ready: &ReadyCall,
    decision: &ApprovalDecision,
) -> std::result::Result<CallState, RefusalReason> {
    match decision {
        ApprovalDecision::Approve => {
            let recorded = Value::Object(ready.arguments.clone());
            if ready.tool.schema().faults(&recorded).is_empty() {
                let mut ready = ready.clone();
                ready.approved = true;
                return Ok(CallState::Ready(Box::new(ready)));
            }
            Ok(denied(
                ready,
                "Rejected: the approved arguments no longer fit the tool.".to_owned(),
            ))
        }
        ApprovalDecision::ApproveEdited { arguments } => {
            let Value::Object(edited) = arguments else {
                return Err(RefusalReason::Malformed);
            };
            if !ready.tool.schema().faults(arguments).is_empty() {
                return Err(RefusalReason::Malformed);
            }
            let mut ready = ready.clone();
            ready.approved = true;
            ready.edited = *edited != ready.arguments;
            ready.arguments.clone_from(edited);
            Ok(CallState::Ready(Box::new(ready)))
        }
        ApprovalDecision::Deny { reason } => Ok(denied(ready, rejection(reason.as_deref()))),
        _ => Err(RefusalReason::WrongCategory),
    }
}

/// What a decision makes of a call that asked for data.
fn resume(
    ready: &ReadyCall,
    interrupt: &Interrupt,
    decision: &ApprovalDecision,
) -> std::result::Result<CallState, RefusalReason> {
    match decision {
        ApprovalDecision::Resume { data } => {
            let mut ready = ready.clone();
            ready.attempt += 1;
            ready.resumption = Some(Resumption::new(interrupt.state.clone(), data.clone()));
            Ok(CallState::Ready(Box::new(ready)))
        }
        ApprovalDecision::Deny { reason } => Ok(denied(ready, rejection(reason.as_deref()))),
        _ => Err(RefusalReason::WrongCategory),
    }
}

/// What the model reads of a denial.
pub fn rejection(reason: Option<&str>) -> String {
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("Rejected: {reason}"),
        None => ToolOutcome::Denied.default_text().to_owned(),
    }
}

fn denied(ready: &ReadyCall, text: String) -> CallState {
    let outcome = ToolOutcome::Denied;
    CallState::Settled(SettledCall::new(
        ready.occurrence,
        &ready.call,
        outcome,
        Some(text),
    ))
}

/// The note behind a result of edited arguments: the transcript keeps the model's call, the result
/// says what ran (contract E6).
pub(super) fn edited_note(ready: &ReadyCall) -> String {
    let arguments = canonical_json(&Value::Object(ready.arguments.clone()));
    let shown: String = arguments.chars().take(1_000).collect();
    format!("\n[A person edited the arguments; these ran: {shown}]")
}
