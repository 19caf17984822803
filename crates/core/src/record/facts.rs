//! What is known of a call beyond its arguments.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is known of a call that has no outcome yet, beyond its arguments. JSON form: what holds and
/// is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each of which is a key of the JSON form"
)]
pub struct CallFacts {
    /// It waits for a person, and its request is not made yet.
    #[serde(skip_serializing_if = "is_false")]
    pub gated: bool,
    /// A person approved its arguments.
    #[serde(skip_serializing_if = "is_false")]
    pub approved: bool,
    /// A person, a rule or a policy decided on its arguments.
    #[serde(skip_serializing_if = "is_false")]
    pub decided: bool,
    /// A person changed its arguments.
    #[serde(skip_serializing_if = "is_false")]
    pub edited: bool,
    /// No tool had its name.
    #[serde(skip_serializing_if = "is_false")]
    pub unknown: bool,
    /// What asked the outside last was not its body but a middleware around it.
    #[serde(skip_serializing_if = "is_false")]
    pub asked_around: bool,
    /// Its body has ended: only what is around it is entered again.
    #[serde(skip_serializing_if = "is_false")]
    pub body_ended: bool,
    /// Why a person is asked, where the request is not made yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer that it has not seen yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<CallAnswer>,
}

impl CallFacts {
    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An answer of the outside for a call that asked for data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallAnswer {
    /// The state that the call left behind.
    #[serde(default)]
    pub state: Value,
    /// What the outside says.
    #[serde(default)]
    pub data: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(fact: &bool) -> bool {
    !*fact
}
