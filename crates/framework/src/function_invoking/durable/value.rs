//! The outcome of a call as the journal has it: versioned JSON that a person can read.

use raf_core::{CallRecord, Error, ErrorKind, Result, ToolResult};
use raf_tools::{FinishedCall, NestedReport};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::function_invoking::steps::FORMAT;

/// What one call of a batch in flight came to. Members that this version does not know are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::function_invoking) struct Outcome {
    pub(super) format: u32,
    /// Its position in the reply.
    pub(super) position: u32,
    /// What the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<ToolResult>,
    /// What identifies the result for the guard against repetition.
    #[serde(default)]
    pub(super) digest: u64,
    /// The call as it stands in the record, where it asks the outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<Box<CallRecord>>,
    /// What runs nested in it have used.
    #[serde(default, skip_serializing_if = "NestedReport::is_empty")]
    pub(super) used: NestedReport,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl Outcome {
    /// A call that has its result.
    pub(in crate::function_invoking) fn finished(
        finished: &FinishedCall,
        used: NestedReport,
    ) -> Self {
        Self {
            format: FORMAT,
            position: finished.occurrence.position,
            result: Some(finished.result.clone()),
            digest: finished.digest.value(),
            call: None,
            used,
            unknown: Map::new(),
        }
    }

    /// A call that asks the outside.
    pub(in crate::function_invoking) fn asks(call: CallRecord, used: NestedReport) -> Self {
        Self {
            format: FORMAT,
            position: call.position,
            result: None,
            digest: 0,
            call: Some(Box::new(call)),
            used,
            unknown: Map::new(),
        }
    }

    /// Its JSON form.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if it has none.
    pub(super) fn to_json(&self) -> Result<Value> {
        serde_json::to_value(self).map_err(|error| {
            Error::new(ErrorKind::Store, "the outcome of a call has no JSON form")
                .with_source(error)
        })
    }
}
