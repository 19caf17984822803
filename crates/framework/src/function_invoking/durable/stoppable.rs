//! A durable store that does not hold up a run that is told to stop: a call of it that is not answered is
//! given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    AnswerOutcome, ApprovalRule, Cancellation, ClaimOutcome, Error, ErrorKind, IRunStore,
    JournalEntry, JournalKey, PendingRequest, Result, RetryStatus, RunClaim, RunId, RunRecord,
    ToolApprovalResponse, WriteOutcome,
};
use tokio::time::Instant;

use crate::function_invoking::leg::{Leg, stopped};
use crate::function_invoking::run::Stop;

/// The code of the error of a store that was given up.
const UNANSWERED: &str = "unanswered";

/// The store of one leg. Until something says stop it waits for as long as the store takes; then each call
/// has the grace of a body to end, and once one is given up, all later ones fail at once.
#[derive(Debug)]
pub(in crate::function_invoking) struct StoppableStore {
    inner: Arc<dyn IRunStore>,
    cancellation: Cancellation,
    deadline: Option<Instant>,
    grace: Duration,
    given_up: AtomicBool,
}

impl StoppableStore {
    pub(in crate::function_invoking) fn new(leg: &Leg, grace: Duration) -> Self {
        Self {
            inner: Arc::clone(&leg.store),
            cancellation: leg.options.cancellation.clone(),
            deadline: leg.deadline(),
            grace,
            given_up: AtomicBool::new(false),
        }
    }

    async fn until_stopped<T>(&self, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        if self.given_up.load(Ordering::SeqCst) {
            return Err(unanswered());
        }
        let too_long = async {
            stopped(self.cancellation.clone(), self.deadline).await;
            tokio::time::sleep(self.grace).await;
        };
        tokio::select! {
            biased;
            done = call => done,
            () = too_long => {
                self.given_up.store(true, Ordering::SeqCst);
                Err(unanswered())
            }
        }
    }
}

fn unanswered() -> Error {
    Error::new(
        ErrorKind::Store,
        "the run store did not answer within the grace behind the stop of the run: what it was asked \
         last may have been done, and the run is open",
    )
    .with_retry(RetryStatus::Temporary)
    .with_code(UNANSWERED)
}

/// The error that a leg ends with: a cancelled one whose store did not answer was cancelled.
pub(in crate::function_invoking) fn told(leg: &Leg, error: Error) -> Error {
    if error.code() != Some(UNANSWERED) || leg.stop() != Some(Stop::Cancelled) {
        return error;
    }
    Error::new(
        ErrorKind::Cancelled,
        "the run was cancelled, and its store did not answer: it is open there, and goes on if it is \
         taken up",
    )
    .with_code(UNANSWERED)
    .with_source(error)
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IRunStore for StoppableStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        self.until_stopped(self.inner.create(record, claim)).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.until_stopped(self.inner.load(run_id)).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.until_stopped(self.inner.claim(run_id, claim)).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.until_stopped(self.inner.release(run_id, claim)).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        self.until_stopped(self.inner.save(record)).await
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        self.until_stopped(self.inner.find_request(request_id))
            .await
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.until_stopped(self.inner.list_open(session_id)).await
    }

    async fn expire(&self) -> Result<usize> {
        self.until_stopped(self.inner.expire()).await
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        self.until_stopped(self.inner.remember(scope, rule)).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.until_stopped(self.inner.remembered(scope)).await
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
        self.until_stopped(append).await
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        self.until_stopped(self.inner.journal(key, from)).await
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        self.until_stopped(self.inner.renew(run_id, claim)).await
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        self.until_stopped(self.inner.answer(answer)).await
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        self.until_stopped(self.inner.answers(run_id)).await
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        self.until_stopped(self.inner.forget_answer(request_id))
            .await
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        self.until_stopped(self.inner.list_resumable(limit)).await
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        self.until_stopped(self.inner.list_pending(session_id))
            .await
    }
}
