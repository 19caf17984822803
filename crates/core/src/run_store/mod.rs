//! Where records of runs are kept, and their in-memory form.

mod memory;
mod tombstones;

use std::fmt::Debug;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::identity::RunId;
use crate::record::RunRecord;

pub use self::memory::InMemoryRunStore;

/// A store of run records: the authority for pending calls.
///
/// # Contract
/// - A write names the revision that it is based on; it is made only if that is the present one
///   (compare-and-set), and raises it by one.
/// - At most one live claim on a run. A claim dies with its [`RunClaim`], or with its lease.
/// - A closed record is kept for a while, so that a late answer gets a true reply.
/// - What is expired is closed as such, and never comes back. A run whose record is gone is not created
///   again for as long as the store can know of it: its paused run, given again as a value, would run
///   what has run.
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

    /// Writes a record over the one of its own revision.
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

/// Whether a write was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WriteOutcome {
    /// It was; this is the revision now.
    Written(u64),
    /// Another write came first, or the record exists or is missing.
    Conflict,
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

/// One leg's hold on a run. It dies when the leg ends or its stream is dropped.
#[derive(Clone, Debug, Default)]
pub struct RunClaim(Arc<()>);

impl RunClaim {
    /// A claim that nobody else has.
    pub fn new() -> Self {
        Self::default()
    }

    fn is(&self, other: &Weak<()>) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.0), other.as_ptr())
    }
}

#[cfg(test)]
mod tests;
