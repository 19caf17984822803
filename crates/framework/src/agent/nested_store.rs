//! The store of a nested run: its record lives in that of the run around it, or in its journal if that run
//! is durable; what a person allowed once and for all is shared.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ApprovalRule, ClaimOutcome, IRunStore, InMemoryRunStore, JournalEntry, JournalKey, Result,
    RunClaim, RunId, RunRecord, WriteOutcome,
};

use crate::function_invoking::DurableRun;

/// Keeps records while the body runs, and rules in the store of the outer run.
#[derive(Debug)]
pub(super) struct NestedRunStore {
    records: InMemoryRunStore,
    outer: Arc<dyn IRunStore>,
    /// Set if the run around is durable.
    durable: Option<DurableRun>,
}

impl NestedRunStore {
    /// An empty one, with the rules of this store, and its journals if the run around is durable.
    pub(super) fn new(outer: Arc<dyn IRunStore>, durable: Option<DurableRun>) -> Self {
        let records = InMemoryRunStore::new();
        Self {
            records,
            outer,
            durable,
        }
    }
}

#[async_trait]
impl IRunStore for NestedRunStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        self.records.create(record, claim).await
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.records.load(run_id).await
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.records.claim(run_id, claim).await
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.records.release(run_id, claim).await
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        self.records.save(record).await
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        self.records.find_request(request_id).await
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.records.list_open(session_id).await
    }

    async fn expire(&self) -> Result<usize> {
        self.records.expire().await
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        self.outer.remember(scope, rule).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.outer.remembered(scope).await
    }

    fn is_durable(&self) -> bool {
        self.durable.is_some()
    }

    /// Fenced by the claim of the outermost run, in whose store it is.
    async fn append(
        &self,
        key: &JournalKey,
        claim: &RunClaim,
        base: u64,
        entries: &[JournalEntry],
        record: Option<&RunRecord>,
    ) -> Result<WriteOutcome> {
        let Some(durable) = &self.durable else {
            return self.records.append(key, claim, base, entries, record).await;
        };
        let Some(claim) = durable.claim.upgrade() else {
            return Ok(WriteOutcome::ClaimLost);
        };
        let store = &durable.store;
        store.append(key, &claim, base, entries, record).await
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        match &self.durable {
            Some(durable) => durable.store.journal(key, from).await,
            None => self.records.journal(key, from).await,
        }
    }
}
