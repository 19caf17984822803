//! What stands in the journal: values of steps, in JSON that a person can read. Members that this
//! version does not know are kept.

use raf_core::{CallRecord, ChatMessage, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of these forms.
const FORMAT: u32 = 1;

/// What a step added to the conversation: never what stands in the journal already (K12).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recorded {
    format: u32,
    /// What the caller brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) input: Vec<ChatMessage>,
    /// What the run added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<ChatMessage>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl Recorded {
    pub(super) fn new(input: Vec<ChatMessage>, messages: Vec<ChatMessage>) -> Self {
        Self {
            format: FORMAT,
            input,
            messages,
            unknown: Map::new(),
        }
    }

    /// Whether this version can read it.
    pub(super) fn is_supported(&self) -> bool {
        self.format <= FORMAT
    }
}

/// The outcome of one call of a batch in flight.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    format: u32,
    /// The call, as it stands in the record from now on.
    pub(super) call: CallRecord,
    /// What the model reads.
    pub(super) result: ToolResult,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

impl Outcome {
    pub(super) fn new(call: CallRecord, result: ToolResult) -> Self {
        Self {
            format: FORMAT,
            call,
            result,
            unknown: Map::new(),
        }
    }

    /// Whether this version can read it.
    pub(super) fn is_supported(&self) -> bool {
        self.format <= FORMAT
    }
}
