//! Where the child stands: each write of the store and each body says so, and waits for the parent's word.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, IRunStore, JournalEntry, JournalKey, Result,
    RunClaim, RunId, RunRecord, ToolApprovalResponse, WriteOutcome,
};

/// More than the turns that the bodies of a batch take to their next write.
const TURNS: usize = 32;

/// Whether the child reports; the process that finishes a run does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundary(pub(crate) bool);

impl Boundary {
    /// Says where it stands, and waits: here it may be killed.
    pub(crate) fn at(self, what: &str) {
        if !self.0 {
            return;
        }
        say(&format!("boundary {what}"));
        let mut word = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut word)
            .expect("the parent writes");
    }

    async fn around<T>(self, what: &str, write: impl Future<Output = T> + Send) -> T {
        self.at(&format!("before {what}"));
        if self.0 {
            // Whatever else can go on without the store does, however fast the store is: the order of the
            // boundaries is that of the plan.
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        }
        let done = write.await;
        self.at(&format!("behind {what}"));
        done
    }
}

/// Says a line to the parent.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").expect("the parent reads");
    out.flush().expect("the parent reads");
}

/// A store whose writes are boundaries.
#[derive(Debug)]
pub(crate) struct Reporting {
    pub(crate) inner: Arc<dyn IRunStore>,
    pub(crate) boundary: Boundary,
}

#[async_trait]
impl IRunStore for Reporting {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        let write = self.inner.create(record, claim);
        self.boundary.around("create", write).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.inner.load(run_id).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        let write = self.inner.claim(run_id, claim);
        self.boundary.around("claim", write).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        let write = self.inner.release(run_id, claim);
        self.boundary.around("release", write).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        self.boundary.around("save", self.inner.save(record)).await
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
        let write = self.inner.append(key, claim, base, entries, record);
        let step = entries.first().map_or("nothing", |entry| &entry.step);
        self.boundary.around(step, write).await
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        self.inner.journal(key, from).await
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        self.inner.renew(run_id, claim).await
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        let write = self.inner.answer(answer);
        self.boundary.around("answer", write).await
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        self.inner.answers(run_id).await
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        self.inner.forget_answer(request_id).await
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        self.inner.list_resumable(limit).await
    }
}
