//! A small fingerprint of a result before it is rendered: equal results have equal ones.

use raf_core::{Content, ToolOutcome};
use serde::{Deserialize, Serialize};

/// The fingerprint of an outcome and its value, the same in every process. Correlation ids, cuts and
/// notices are not part of it. JSON form: a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultDigest(u64);

impl ResultDigest {
    /// The fingerprint of an outcome with a text.
    pub fn of(outcome: ToolOutcome, text: &str) -> Self {
        Self(text_hash(text_hash(OFFSET, &format!("{outcome:?}")), text))
    }

    /// The fingerprint as a number, for a record.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// A fingerprint from a record.
    pub const fn from_value(value: u64) -> Self {
        Self(value)
    }

    /// The fingerprint of an outcome with typed parts.
    pub fn of_parts(outcome: ToolOutcome, parts: &[Content]) -> Self {
        let mut hash = text_hash(OFFSET, &format!("{outcome:?}"));
        for part in parts {
            hash = match part.as_text() {
                Some(text) => text_hash(hash, text),
                None => text_hash(hash, &serde_json::to_string(part).unwrap_or_default()),
            };
        }
        Self(hash)
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, with the length mixed in so that joined texts differ.
fn text_hash(mut hash: u64, text: &str) -> u64 {
    let length = (text.len() as u64).to_le_bytes();
    for byte in text.bytes().chain(length) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}
