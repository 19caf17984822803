//! How the requests of a run were settled.

use serde::{Deserialize, Serialize};

use crate::approval::{ClosedReason, RefusalReason};

/// A request that is settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledRequest {
    /// The request.
    pub request_id: String,
    /// How it was settled.
    pub settlement: Settlement,
}

/// How a request was settled. JSON form: `"answered"`, `{"closed": "superseded"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Settlement {
    /// By an answer.
    Answered,
    /// Without one.
    Closed(ClosedReason),
}

impl Settlement {
    /// Why another answer is refused.
    pub const fn refusal(self) -> RefusalReason {
        match self {
            Self::Answered => RefusalReason::AlreadySettled,
            Self::Closed(_) => RefusalReason::Stale,
        }
    }
}
