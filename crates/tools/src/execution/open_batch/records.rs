//! A batch to its record and back (contract I2, E8).

use std::collections::BTreeSet;

use raf_core::{
    CallAnswer, CallFacts, CallRecord, CallStatus, Occurrence, Result, RunId, ToolOutcome,
};
use serde_json::Value;

use super::{BatchCall, CallState, DoneCall, HoldPolicy, OpenBatch};
use crate::error::Interrupt;
use crate::execution::batch::QueuedCall;
use crate::execution::digest::ResultDigest;
use crate::execution::prepare::{Preparation, ReadyCall, SettledCall};
use crate::toolset::{ToolEntry, ToolSet};

impl OpenBatch {
    /// The calls as they are recorded. With a policy, what may run now under it is about to be entered:
    /// it is recorded as started; what is held back is not.
    pub fn to_records(&self, about_to_run: Option<HoldPolicy>) -> Vec<CallRecord> {
        let starting: BTreeSet<Occurrence> = about_to_run
            .map(|hold| self.runnable(hold))
            .unwrap_or_default()
            .iter()
            .map(QueuedCall::occurrence)
            .collect();
        self.calls
            .iter()
            .map(|call| {
                let ready = call.state.ready();
                let status = match &call.state {
                    CallState::Ready(_) if starting.contains(&call.occurrence) => {
                        CallStatus::Started
                    }
                    CallState::Gated {
                        request: Some(request),
                        ..
                    } => CallStatus::AwaitingApproval {
                        request: request.clone(),
                    },
                    CallState::Ready(_) | CallState::Gated { .. } => CallStatus::AwaitingEarlier,
                    CallState::Interrupted { interrupt, .. } if !interrupt.nested.is_empty() => {
                        CallStatus::AwaitingNested {
                            pending: interrupt.nested.clone(),
                            state: interrupt.state.clone(),
                        }
                    }
                    CallState::Interrupted {
                        ready,
                        request_id,
                        interrupt,
                    } => CallStatus::AwaitingData {
                        request_id: request_id.clone(),
                        address: address_of(&self.run_id, ready, request_id),
                        information: interrupt.information.clone(),
                        state: interrupt.state.clone(),
                    },
                    CallState::DeclaredOnly => CallStatus::AwaitingResult,
                    CallState::Settled(settled) => CallStatus::Settled {
                        outcome: settled.result.outcome(),
                        digest: 0,
                        result: Some(settled.result.clone()),
                    },
                    CallState::Done(done) => CallStatus::Settled {
                        outcome: done.outcome,
                        digest: done.digest.value(),
                        result: done.result.clone(),
                    },
                };
                let arguments =
                    ready.map_or(Value::Null, |ready| Value::Object(ready.arguments.clone()));
                let position = call.occurrence.position;
                CallRecord::new(position, call.call.clone(), arguments, status)
                    .with_attempts(ready.map_or(0, |ready| ready.attempt - 1))
                    .with_facts(call.state.facts())
                    .with_tool(Some(call.tool_name()))
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
        preparation: Preparation<'_>,
        round: u32,
        records: &[CallRecord],
    ) -> Result<Self> {
        let calls = records
            .iter()
            .map(|record| {
                let occurrence = Occurrence::new(round, record.position);
                let ready = || preparation.recorded(record, occurrence).map(Box::new);
                let state = match &record.status {
                    CallStatus::Settled {
                        outcome,
                        digest,
                        result,
                    } => CallState::Done(DoneCall {
                        outcome: *outcome,
                        digest: ResultDigest::from_value(*digest),
                        polling: is_polling(record, preparation.tools),
                        result: result.clone(),
                    }),
                    CallStatus::Started => CallState::Settled(SettledCall::new(
                        occurrence,
                        &record.call,
                        ToolOutcome::Cancelled { started: true },
                        None,
                    )),
                    CallStatus::AwaitingApproval { request } => CallState::Gated {
                        ready: ready()?,
                        reason: request.reason.clone(),
                        request: Some(request.clone()),
                    },
                    CallStatus::AwaitingData {
                        request_id,
                        information,
                        state,
                        ..
                    } => CallState::Interrupted {
                        ready: ready()?,
                        request_id: request_id.clone(),
                        interrupt: Interrupt {
                            information: information.clone(),
                            state: state.clone(),
                            nested: Vec::new(),
                        },
                    },
                    CallStatus::AwaitingNested { pending, state } => CallState::Interrupted {
                        ready: ready()?,
                        request_id: String::new(),
                        interrupt: Interrupt {
                            information: Value::Null,
                            state: state.clone(),
                            nested: pending.clone(),
                        },
                    },
                    CallStatus::AwaitingEarlier if record.facts.gated => CallState::Gated {
                        ready: ready()?,
                        reason: record.facts.reason.clone(),
                        request: None,
                    },
                    CallStatus::AwaitingEarlier => CallState::Ready(ready()?),
                    _ => CallState::DeclaredOnly,
                };
                Ok(BatchCall::new(occurrence, record.call.clone(), state)
                    .with_tool(record.tool.as_deref()))
            })
            .collect::<Result<_>>()?;
        Ok(Self::new(preparation.run_id.clone(), round, calls))
    }
}

/// Where an interrupt happened, and which question it asked: `run/round/position/tool/question`. The
/// body may ask again from the same place, and an answer to the first question is none to the next.
pub fn address_of(run_id: &RunId, ready: &ReadyCall, request_id: &str) -> String {
    let question = request_id.get(..8).unwrap_or(request_id);
    format!(
        "{run_id}/{}/{}/{question}",
        ready.occurrence,
        ready.tool.name()
    )
}

fn is_polling(record: &CallRecord, tools: &ToolSet) -> bool {
    let tool = tools.get(record.tool_name()).and_then(ToolEntry::body);
    tool.is_some_and(|tool| tool.tool().limits().polling)
}

impl CallState {
    /// What runs, while it is not settled.
    fn ready(&self) -> Option<&ReadyCall> {
        match self {
            Self::Ready(ready) | Self::Gated { ready, .. } | Self::Interrupted { ready, .. } => {
                Some(ready)
            }
            _ => None,
        }
    }

    /// What the record says beyond arguments and status.
    fn facts(&self) -> CallFacts {
        let mut facts = CallFacts::default();
        let Some(ready) = self.ready() else {
            return facts;
        };
        facts.gated = matches!(self, Self::Gated { request: None, .. });
        if let Self::Gated {
            request: None,
            reason,
            ..
        } = self
        {
            facts.reason.clone_from(reason);
        }
        facts.approved = ready.approved;
        facts.decided = ready.decided && !ready.approved;
        facts.edited = ready.edited;
        facts.unknown = ready.unknown;
        facts.asked_around = ready.asked_around;
        facts.body_ended = ready.body_ended;
        facts.answer = ready.resumption.as_ref().map(|resumption| CallAnswer {
            state: resumption.state.clone(),
            data: resumption.data.clone(),
        });
        facts
    }
}
