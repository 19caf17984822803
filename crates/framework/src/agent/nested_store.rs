//! The store of a nested run: its record lives in that of the run around it; what a person allowed once
//! and for all is shared.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ApprovalRule, ClaimOutcome, IRunStore, InMemoryRunStore, Result, RunClaim, RunId, RunRecord,
    WriteOutcome,
};

/// Keeps records while the body runs, and rules in the store of the outer run.
#[derive(Debug)]
pub(super) struct NestedRunStore {
    records: InMemoryRunStore,
    rules: Arc<dyn IRunStore>,
}

impl NestedRunStore {
    /// An empty one, with the rules of this store.
    pub(super) fn new(rules: Arc<dyn IRunStore>) -> Self {
        let records = InMemoryRunStore::new();
        Self { records, rules }
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
        self.rules.remember(scope, rule).await
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        self.rules.remembered(scope).await
    }
}
