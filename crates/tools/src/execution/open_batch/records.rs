//! A batch to its record and back (contract I2, E8).

use raf_core::{CallRecord, CallStatus, Error, Occurrence, Result, RunId, ToolOutcome};
use serde_json::Value;

use super::{BatchCall, CallState, DoneCall, OpenBatch};
use crate::error::Interrupt;
use crate::execution::digest::ResultDigest;
use crate::execution::prepare::{ReadyCall, SettledCall};
use crate::toolset::{ToolEntry, ToolSet};

impl OpenBatch {
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
