//! Where records of runs are kept, and their in-memory form.

mod claim;
mod journal;
mod memory;
mod outcome;
mod pending;

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::approval::ToolApprovalResponse;
use crate::error::{Error, Result};
use crate::identity::RunId;
use crate::record::RunRecord;

pub use self::claim::{ClaimWatch, RunClaim};
pub use self::journal::{JournalEntry, JournalKey, JournalKind};
pub use self::memory::InMemoryRunStore;
pub use self::outcome::{AnswerOutcome, ClaimOutcome, WriteOutcome};
pub use self::pending::PendingRequest;

/// A store of run records: the authority for pending calls.
///
/// # Contract
/// - A write names the revision that it is based on; it is made only if that is the present one
///   (compare-and-set), and raises it by one.
/// - At most one live claim on a run. A claim dies with its [`RunClaim`], or with its lease. Each claim
///   that takes hold raises the run's fence, so that an earlier one which comes back cannot write.
/// - A closed record is kept for a while, so that a late answer gets a true reply.
/// - What is expired is closed as such, and never comes back. A run whose record is gone is not created
///   again for as long as the store can know of it: its paused run, given again as a value, would run
///   what has run.
/// - A journal lives as long as its root run's record, and goes with it.
/// - A future that is dropped leaves its whole write or none of it. Whether it was made, a read tells;
///   [`append`](Self::append) may be made again as it was.
/// - Times are those of the store's clock, never of the one who asks.
///
/// The methods of the durable part have defaults for a store that keeps only records. raf-testing has
/// the contract as a suite to run on a store of one's own.
#[async_trait]
pub trait IRunStore: Debug + Send + Sync {
    /// Keeps a new record; its revision becomes 1. The claim, if one is given, holds it. A conflict if
    /// there is a record of the run, or was one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome>;

    /// The record of a run.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>>;

    /// The record, held by this claim until it is released or dies.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read or written.
    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome>;

    /// Lets a claimed run go.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()>;

    /// Writes a record over the one of its own revision, whoever holds the run. A leg that holds it
    /// writes by [`append`](Self::append), where the store has one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome>;

    /// The run that a request belongs to, open or settled.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>>;

    /// The records that are open, oldest first: of one session, or of all.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>>;

    /// Closes what is expired; says how many.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn expire(&self) -> Result<usize>;

    /// Keeps a rule for a scope: a session, or a run.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()>;

    /// The rules of a scope.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>>;

    /// Whether what was written is there after the process has died: the loop then writes its steps
    /// ahead. A durable store implements all that follows.
    fn is_durable(&self) -> bool {
        false
    }

    /// How long a claim lasts without a sign of life: a write under it, or [`renew`](Self::renew).
    /// `None`: claims do not lapse, they only die.
    fn lease(&self) -> Option<Duration> {
        None
    }

    /// Appends to the journal of a run and writes the root run's record, if one is given, all in one
    /// transaction. A record of revision 0 creates the root run, held by the claim.
    ///
    /// It is made only if the claim holds the root run ([`WriteOutcome::ClaimLost`] if not), the journal
    /// has `base` entries, and the record's revision is the present one ([`WriteOutcome::Conflict`]). The
    /// last append made again as it was, under the same claim, is no conflict: it gives what it gave.
    /// It renews the lease. [`WriteOutcome::Written`] has the record's revision now, without a record the
    /// journal's length.
    ///
    /// A record takes the kept answers with it whose requests it settles.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written;
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if the store keeps no journals, or if the record
    /// is of another run.
    async fn append(
        &self,
        key: &JournalKey,
        claim: &RunClaim,
        base: u64,
        entries: &[JournalEntry],
        record: Option<&RunRecord>,
    ) -> Result<WriteOutcome> {
        let _ = (claim, base, entries, record);
        Err(no_journals(&key.root))
    }

    /// The journal of a run, from an entry on; empty if there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        let _ = (key, from);
        Ok(Vec::new())
    }

    /// A sign of life of a claim; `false` if it is lost.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        let _ = (run_id, claim);
        Ok(true)
    }

    /// Keeps an answer of the outside until a leg acts on it. The first that fits a request wins; any
    /// further one is [`AlreadySettled`](crate::RefusalReason::AlreadySettled).
    /// [`RunRecord::refusal_of`] says what does not fit.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written;
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) if the store keeps no answers.
    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        let _ = answer;
        Err(Error::misuse(
            "this run store keeps no answers: give them to the run, in its options",
        ))
    }

    /// The answers kept for a run that no leg has acted on, in the order in which they came.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        let _ = run_id;
        Ok(Vec::new())
    }

    /// Takes back a kept answer that a leg refused, so that the request can be answered again; says
    /// whether there was one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        let _ = request_id;
        Ok(false)
    }

    /// Open runs that nobody holds and that have something to do: a leg in flight whose owner died, or
    /// answers kept. Oldest first.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// What waits for an answer, oldest run first: of one session, or of all.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        let mut pending = Vec::new();
        for record in self.list_open(session_id).await? {
            let answers = self.answers(&record.run_id).await?;
            let answered = |id: &str| answers.iter().any(|answer| answer.request_id == id);
            pending.extend(PendingRequest::of(&record, answered));
        }
        Ok(pending)
    }
}

fn no_journals(run_id: &RunId) -> Error {
    Error::misuse("this run store keeps no journals: use one that says `is_durable`")
        .with_context("run", run_id.as_str())
}

/// What a person allowed once and for all, within a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    /// The tool.
    pub tool: String,
    /// The canonical arguments; `None` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
}

#[cfg(test)]
mod tests;
