//! What came of a write, a claim, an answer.

use crate::approval::RefusalReason;
use crate::record::RunRecord;

/// Whether a write was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WriteOutcome {
    /// It was; this is the revision now, or the length of the journal.
    Written(u64),
    /// Another write came first, or the record exists or is missing.
    Conflict,
    /// The claim does not hold the run: it was released, or lapsed and another took hold.
    ClaimLost,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum ClaimOutcome {
    /// The record, held by the claim.
    Claimed(Box<RunRecord>),
    /// Another live claim holds it.
    Busy,
    /// There is no such record.
    Missing,
}

/// Whether an answer is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum AnswerOutcome {
    /// It is, until a leg acts on it.
    Kept,
    /// It is not; nothing runs for it.
    Refused(RefusalReason),
}
