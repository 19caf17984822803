//! A run store whose writes fail when told to, before or after they were made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, Error, ErrorKind, IRunStore, JournalEntry,
    JournalKey, PendingRequest, Result, RetryStatus, RunClaim, RunId, RunRecord,
    ToolApprovalResponse, WriteOutcome,
};

/// When a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// Nothing of it was made.
    Before,
    /// It was made; only the answer was lost.
    After,
}

/// Another store whose n-th write fails. Writes are `create`, `save`, `append`, `claim`, `release`,
/// `answer`, `forget_answer` and `remember`; signs of life and reads never fail.
#[derive(Clone, Debug)]
pub struct FaultyRunStore {
    inner: Arc<dyn IRunStore>,
    writes: Arc<AtomicU64>,
    fault: Arc<Mutex<Option<(u64, WriteFault)>>>,
    failed: Arc<AtomicU64>,
}

impl FaultyRunStore {
    /// A store that fails nothing yet.
    pub fn new(inner: Arc<dyn IRunStore>) -> Self {
        Self {
            inner,
            writes: Arc::default(),
            fault: Arc::default(),
            failed: Arc::default(),
        }
    }

    /// The write of this number fails, counted from 0 over the life of the store; one alone.
    pub fn fail_write(&self, number: u64, fault: WriteFault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, fault));
    }

    /// How many writes were asked for, the failed ones included.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::SeqCst)
    }

    fn next(&self) -> Option<WriteFault> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        let mut armed = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, fault) = armed.filter(|(failing, _)| *failing == number)?;
        *armed = None;
        drop(armed);
        self.failed.fetch_add(1, Ordering::SeqCst);
        Some(fault)
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let fault = self.next();
        if fault == Some(WriteFault::Before) {
            return Err(lost());
        }
        let written = write.await;
        match fault {
            Some(WriteFault::After) => Err(lost()),
            _ => written,
        }
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Store, "the store failed, as the test asked")
        .with_retry(RetryStatus::Temporary)
        .with_code("injected")
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IRunStore for FaultyRunStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        self.write(self.inner.create(record, claim)).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.inner.load(run_id).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.write(self.inner.claim(run_id, claim)).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.write(self.inner.release(run_id, claim)).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        self.write(self.inner.save(record)).await
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
        self.write(self.inner.remember(scope, rule)).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.inner.remembered(scope).await
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    fn lease(&self) -> Option<Duration> {
        self.inner.lease()
    }

    async fn append(
        &self,
        key: &JournalKey,
        claim: &RunClaim,
        base: u64,
        entries: &[JournalEntry],
        record: Option<&RunRecord>,
    ) -> Result<WriteOutcome> {
        let append = self.inner.append(key, claim, base, entries, record);
        self.write(append).await
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        self.inner.journal(key, from).await
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        self.inner.renew(run_id, claim).await
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        self.write(self.inner.answer(answer)).await
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        self.inner.answers(run_id).await
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        self.write(self.inner.forget_answer(request_id)).await
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        self.inner.list_resumable(limit).await
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        self.inner.list_pending(session_id).await
    }
}
