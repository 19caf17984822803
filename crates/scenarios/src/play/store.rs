//! A run store that fails when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use raf_core::{
    ApprovalRule, ClaimOutcome, Error, ErrorKind, IRunStore, InMemoryRunStore, Result, RunClaim,
    RunId, RunRecord, WriteOutcome,
};

/// An in-memory store whose writes fail, some of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultyStore {
    inner: InMemoryRunStore,
    fail_creates: Arc<AtomicUsize>,
    fail_saves: Arc<AtomicUsize>,
}

impl FaultyStore {
    /// A store that fails nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The next so many creations fail.
    pub(crate) fn fail_creates(&self, count: usize) {
        self.fail_creates.store(count, Ordering::SeqCst);
    }

    /// The next so many saves fail, and nothing is written.
    pub(crate) fn fail_saves(&self, count: usize) {
        self.fail_saves.store(count, Ordering::SeqCst);
    }

    fn fails(left: &AtomicUsize) -> Result<()> {
        let less = |left: usize| left.checked_sub(1);
        let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        if taken.is_err() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Store, "the disk is full"))
    }
}

#[async_trait]
impl IRunStore for FaultyStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        Self::fails(&self.fail_creates)?;
        self.inner.create(record, claim).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.inner.load(run_id).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.inner.claim(run_id, claim).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.inner.release(run_id, claim).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        Self::fails(&self.fail_saves)?;
        self.inner.save(record).await
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        self.inner.find_request(request_id).await
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.inner.list_open(session_id).await
    }

    async fn expire(&self) -> Result<usize> {
        self.inner.expire().await
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        self.inner.remember(scope, rule).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.inner.remembered(scope).await
    }
}
