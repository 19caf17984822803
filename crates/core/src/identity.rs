//! Who is who: runs, rounds and call occurrences. Nothing here comes from a model or a clock.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The identity of a run: the legs from a user's turn to its end.
///
/// It lives in the run's record, so it is the same after a pause, a restart or on another machine
/// (steps.md K1). JSON form: a string.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

impl RunId {
    /// A new random id: 128 bits from the operating system, as 32 hexadecimal digits.
    pub fn random() -> Self {
        Self(random_hex().into())
    }

    /// An id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RunId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for RunId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({})", self.0)
    }
}

/// The place of one tool call within its run: the round (one model request and the calls of its
/// reply, counted from 0 over the whole run) and the position among the calls of that reply
/// (counted from 0).
///
/// A call's identity is its run and its occurrence; the id that the model gave is a label which
/// providers repeat, reuse or leave empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Occurrence {
    /// Which model request of the run, from 0.
    pub round: u32,
    /// Which call of that reply, from 0.
    pub position: u32,
}

impl Occurrence {
    /// The occurrence of call `position` in round `round`.
    pub const fn new(round: u32, position: u32) -> Self {
        Self { round, position }
    }

    /// The idempotency key of this occurrence within `run`: stable across retry, pause, resume and
    /// restart, and another one for each new occurrence (contract D2). Shape: `run/round/position`.
    pub fn idempotency_key(self, run: &RunId) -> String {
        format!("{run}/{}/{}", self.round, self.position)
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.round, self.position)
    }
}

/// 128 random bits from the operating system, as 32 hexadecimal digits.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the operating system has a source of randomness");
    let mut text = String::with_capacity(32);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}

/// A short random id by which an entry of a log can be found from what a model or a user was told.
///
/// Shape: 12 hexadecimal digits.
pub fn correlation_id() -> String {
    let mut id = random_hex();
    id.truncate(12);
    id
}
