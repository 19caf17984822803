//! What a leg is given and what it must come to, in the reference's terms.

use crate::ops::CallOp;
use crate::reference::{Batch, Reference};

/// How a request was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Answered,
    Closed,
}

/// An answer as the model of the case sees it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) request: String,
    pub(crate) decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Nothing,
    Yes,
    /// Yes, with this instead.
    Edited(i64),
    No,
    /// Data; whether the tool asks again.
    Data {
        again: bool,
    },
    Malformed,
    BadEdit,
    Mismatch,
}

/// What a leg is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) answers: Vec<Given>,
    /// Labels of the results that stand behind the open batch and that no loop made.
    pub(crate) results: Vec<String>,
    /// A message of the user stands last or behind the open batch.
    pub(crate) message: bool,
    /// The call that is shown with other arguments.
    pub(crate) tampered: Option<usize>,
    pub(crate) replies: Vec<Vec<CallOp>>,
}

/// How a leg ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The answers were refused, for one of these reasons.
    Refused(Vec<&'static str>),
    /// Calls wait.
    Paused,
    Stop,
}

/// An entry of a body: round, position, attempt, argument.
pub(crate) type Entry = (u32, u32, u32, i64);

/// What a leg comes to.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) end: End,
    /// Request and reason of each refused answer.
    pub(crate) refusals: Vec<(String, &'static str)>,
    pub(crate) entries: Vec<Entry>,
    /// Round, position and outcome of each result.
    pub(crate) results: Vec<(u32, u32, &'static str)>,
    pub(crate) requests: usize,
    /// Position, and whether it waits for a yes, data or a result.
    pub(crate) pending: Vec<(u32, &'static str)>,
    /// The requests that are closed without an answer.
    pub(crate) closed: Vec<String>,
    /// The open batch when all answers are applied, before anything runs.
    pub(crate) answered: Option<Batch>,
    /// What the open batch is afterwards; its new requests have no ids yet.
    pub(crate) after: Reference,
}
