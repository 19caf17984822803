//! Parts of a kind that this version does not know.

use serde_json::Value;

/// A part that is kept and passed on as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownContent {
    /// The whole part, its `type` included.
    pub value: Value,
}

impl UnknownContent {
    /// A part of this JSON.
    pub fn new(value: Value) -> Self {
        Self { value }
    }

    /// Its `type`, or an empty text.
    pub fn kind(&self) -> &str {
        self.value.get("type").and_then(Value::as_str).unwrap_or("")
    }
}
