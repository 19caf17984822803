//! A run store for tests: its writes fail or hang when told to, before or after they were made, and what it
//! does takes no time on a paused clock.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures::executor::block_on;
use raf_core::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, Error, ErrorKind, IRunStore, JournalEntry,
    JournalKey, PendingRequest, Result, RetryStatus, RunClaim, RunId, RunRecord,
    ToolApprovalResponse, WriteOutcome,
};

use crate::latch::Latch;

/// How a write fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// Nothing of it was made.
    Before,
    /// It was made; only the answer was lost.
    After,
    /// Nothing of it is made, and it never returns: it is to be dropped.
    HangBefore,
    /// It is made, and never returns.
    HangAfter,
}

/// A write of a run's record, alone or with a step of its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWrite {
    /// The first: `create`, or an `append` with a record of revision 0.
    Create,
    /// A later one: `save`, or an `append` with a record.
    Save,
}

/// Another store whose writes fail or hang, some of them: the n-th, or the next of a kind. Writes are `create`,
/// `save`, `append`, `claim`, `release`, `answer`, `forget_answer` and `remember`; reads never fail, and signs
/// of life only hang.
#[derive(Clone, Debug)]
pub struct FaultyRunStore {
    inner: Arc<dyn IRunStore>,
    writes: Arc<AtomicU64>,
    journals_read: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    faults: Arc<Mutex<Faults>>,
    hangs: Latch,
    lease: Option<Duration>,
    renewals: Arc<AtomicU64>,
    hanging_renewals: Arc<AtomicU64>,
    clock_stands: bool,
}

#[derive(Debug, Default)]
struct Faults {
    by_number: Option<(u64, WriteFault)>,
    creates: Next,
    saves: Next,
}

/// What becomes of the next writes of a kind.
#[derive(Debug, Default)]
struct Next {
    good: u64,
    failing: u64,
}

impl Next {
    fn fails(&mut self) -> bool {
        if let Some(good) = self.good.checked_sub(1) {
            self.good = good;
            return false;
        }
        let left = self.failing.checked_sub(1);
        self.failing = left.unwrap_or_default();
        left.is_some()
    }
}

impl FaultyRunStore {
    /// A store that fails nothing yet.
    pub fn new(inner: Arc<dyn IRunStore>) -> Self {
        Self {
            inner,
            writes: Arc::default(),
            journals_read: Arc::default(),
            failed: Arc::default(),
            faults: Arc::default(),
            hangs: Latch::new(),
            lease: None,
            renewals: Arc::default(),
            hanging_renewals: Arc::default(),
            clock_stands: false,
        }
    }

    /// Another store with the faults of this one: what is still to fail there, and what was counted.
    /// For a store that is opened again.
    pub fn over(&self, inner: Arc<dyn IRunStore>) -> Self {
        Self {
            inner,
            ..self.clone()
        }
    }

    /// Sets whether all that the store does takes no time on tokio's paused clock. Default: not.
    ///
    /// A paused clock jumps to the next timer as soon as every task waits, so also while a store works
    /// on a thread of its own. With this, what is ready meanwhile goes on, then the runtime's thread
    /// waits for the store. For runtimes of one thread with a paused clock, where nothing that the store
    /// needs runs.
    pub fn with_standing_clock(mut self, stands: bool) -> Self {
        self.clock_stands = stands;
        self
    }

    /// Says that a claim lasts this long without a sign of life. Default: what the store says itself.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The next so many signs of life hang: they are to be dropped.
    pub fn hang_renewals(&self, renewals: u64) {
        self.hanging_renewals.store(renewals, Ordering::SeqCst);
    }

    /// How many signs of life were given, those that hang included.
    pub fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::SeqCst)
    }

    /// The write of this number fails, counted from 0 over the life of the store; one alone.
    pub fn fail_write(&self, number: u64, fault: WriteFault) {
        self.faults().by_number = Some((number, fault));
    }

    /// The next writes of this kind: so many are made, then so many fail, and nothing of them is made.
    /// What was told before of this kind no longer holds.
    pub fn fail_next(&self, kind: RecordWrite, good: u64, failing: u64) {
        let next = Next { good, failing };
        let mut faults = self.faults();
        match kind {
            RecordWrite::Create => faults.creates = next,
            RecordWrite::Save => faults.saves = next,
        }
    }

    /// How often a journal was read.
    pub fn journals_read(&self) -> u64 {
        self.journals_read.load(Ordering::SeqCst)
    }

    /// How many writes were asked for, the failed ones included.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// Opens when a write hangs.
    pub fn hangs(&self) -> Latch {
        self.hangs.clone()
    }

    /// How many failed or hang.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::SeqCst)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of the write that is asked for now.
    fn next(&self, kind: Option<RecordWrite>) -> Option<WriteFault> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst);
        let mut faults = self.faults();
        let by_number = faults
            .by_number
            .take_if(|(failing, _)| *failing == number)
            .map(|(_, fault)| fault);
        let by_kind = match kind {
            Some(RecordWrite::Create) => faults.creates.fails(),
            Some(RecordWrite::Save) => faults.saves.fails(),
            None => false,
        };
        drop(faults);
        let fault = by_number.or(by_kind.then_some(WriteFault::Before))?;
        self.failed.fetch_add(1, Ordering::SeqCst);
        Some(fault)
    }

    async fn write<T>(
        &self,
        kind: Option<RecordWrite>,
        write: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let fault = self.next(kind);
        match fault {
            Some(WriteFault::Before) => return Err(lost()),
            Some(WriteFault::HangBefore) => return self.hang().await,
            _ => {}
        }
        let written = self.work(write).await;
        match fault {
            Some(WriteFault::After) => Err(lost()),
            Some(WriteFault::HangAfter) => self.hang().await,
            _ => written,
        }
    }

    async fn hang<T>(&self) -> T {
        self.hangs.open();
        std::future::pending().await
    }

    /// Lets the store work.
    async fn work<T>(&self, work: impl Future<Output = T> + Send) -> T {
        if !self.clock_stands {
            return work.await;
        }
        let mut work = pin!(work);
        if let Poll::Ready(done) = futures::poll!(work.as_mut()) {
            return done;
        }
        tokio::task::yield_now().await;
        block_on(work)
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
        let create = self.inner.create(record, claim);
        self.write(Some(RecordWrite::Create), create).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.work(self.inner.load(run_id)).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.write(None, self.inner.claim(run_id, claim)).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.write(None, self.inner.release(run_id, claim)).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        let save = self.inner.save(record);
        self.write(Some(RecordWrite::Save), save).await
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        self.work(self.inner.find_request(request_id)).await
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.work(self.inner.list_open(session_id)).await
    }

    async fn expire(&self) -> Result<usize> {
        self.work(self.inner.expire()).await
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        self.write(None, self.inner.remember(scope, rule)).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.work(self.inner.remembered(scope)).await
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    fn lease(&self) -> Option<Duration> {
        self.lease.or_else(|| self.inner.lease())
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
        let kind = record.map(|record| match record.revision {
            0 => RecordWrite::Create,
            _ => RecordWrite::Save,
        });
        self.write(kind, append).await
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        self.journals_read.fetch_add(1, Ordering::SeqCst);
        self.work(self.inner.journal(key, from)).await
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        self.renewals.fetch_add(1, Ordering::SeqCst);
        let hanging = &self.hanging_renewals;
        let left = hanging.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        if left.is_ok() {
            return std::future::pending().await;
        }
        self.work(self.inner.renew(run_id, claim)).await
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        self.write(None, self.inner.answer(answer)).await
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        self.work(self.inner.answers(run_id)).await
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        self.write(None, self.inner.forget_answer(request_id)).await
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        self.work(self.inner.list_resumable(limit)).await
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        self.work(self.inner.list_pending(session_id)).await
    }
}

#[cfg(test)]
mod tests;
