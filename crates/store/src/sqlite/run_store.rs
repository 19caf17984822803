//! Runs in SQLite: each method is one transaction.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, Error, IRunStore, JournalEntry, JournalKey,
    PendingRequest, Result, RunClaim, RunId, RunRecord, ToolApprovalResponse, WriteOutcome,
};

use super::journal::Append;
use super::{SqliteStore, told};

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IRunStore for SqliteStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        let new = record.clone();
        let claim = claim.cloned();
        let created = self.write(move |t| t.create(&new, claim.as_ref())).await;
        told(created, "create", Some(&record.run_id))
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        let id = run_id.clone();
        let found = self
            .read(move |t| Ok((t.is_over(&id)?, t.load(&id)?)))
            .await;
        let (is_over, record) = told(found, "load", Some(run_id))?;
        if !is_over {
            return Ok(record);
        }
        let id = run_id.clone();
        let found = self
            .write(move |t| {
                t.expire_runs()?;
                t.load(&id)
            })
            .await;
        told(found, "load", Some(run_id))
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        let (id, claim) = (run_id.clone(), claim.clone());
        let shared = Arc::clone(&self.0.shared);
        let claimed = self
            .write(move |t| {
                shared.release_dead(t)?;
                t.claim(&id, &claim)
            })
            .await;
        told(claimed, "claim", Some(run_id))
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        let (id, owner) = (run_id.clone(), claim.owner().to_owned());
        let released = self.write(move |t| t.release(&id, &owner)).await;
        told(released, "release", Some(run_id))?;
        self.0.shared.holds.let_go(run_id, claim);
        Ok(())
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        let new = record.clone();
        let saved = self
            .write(move |t| {
                t.expire_runs()?;
                t.save(&new)
            })
            .await;
        told(saved, "save", Some(&record.run_id))
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        let id = request_id.to_owned();
        let found = self
            .write(move |t| {
                t.expire_runs()?;
                t.find_request(&id)
            })
            .await;
        told(found, "find_request", None)
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.expire().await?;
        let session_id = session_id.map(str::to_owned);
        let open = self.read(move |t| t.list_open(session_id.as_deref())).await;
        told(open, "list_open", None)
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method by its path has one lifetime, not any"
    )]
    async fn expire(&self) -> Result<usize> {
        told(self.write(|t| t.expire_runs()).await, "expire", None)
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        let scope = scope.to_owned();
        let kept = self.write(move |t| t.remember(&scope, &rule)).await;
        told(kept, "remember", None)
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        let scope = scope.to_owned();
        let rules = self.read(move |t| t.remembered(&scope)).await;
        told(rules, "remembered", None)
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn lease(&self) -> Option<Duration> {
        Some(self.0.shared.options.lease)
    }

    async fn append(
        &self,
        key: &JournalKey,
        claim: &RunClaim,
        base: u64,
        entries: &[JournalEntry],
        record: Option<&RunRecord>,
    ) -> Result<WriteOutcome> {
        if record.is_some_and(|record| record.run_id != key.root) {
            return Err(Error::misuse("the record is not that of the root run"));
        }
        let texts: Vec<String> = entries
            .iter()
            .map(JournalEntry::to_json)
            .collect::<Result<_>>()?;
        let (whose, held, record) = (key.clone(), claim.clone(), record.cloned());
        let appended = self
            .write(move |t| {
                t.append(&Append {
                    key: &whose,
                    claim: &held,
                    base,
                    entries: &texts,
                    record: record.as_ref(),
                })
            })
            .await;
        told(appended, "append", Some(&key.root))
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        let whose = key.clone();
        let entries = self.read(move |t| t.journal(&whose, from)).await;
        told(entries, "journal", Some(&key.root))
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        let Some(fence) = claim.fence(run_id) else {
            return Ok(false);
        };
        let (id, owner) = (run_id.clone(), claim.owner().to_owned());
        let renewed = self.write(move |t| t.renew(&id, &owner, fence)).await;
        told(renewed, "renew", Some(run_id))
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        let answer = answer.clone();
        let kept = self.write(move |t| t.answer(&answer)).await;
        told(kept, "answer", None)
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        let id = run_id.clone();
        let answers = self.read(move |t| t.answers(&id)).await;
        told(answers, "answers", Some(run_id))
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        let id = request_id.to_owned();
        let forgotten = self.write(move |t| t.forget_answer(&id)).await;
        told(forgotten, "forget_answer", None)
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        let shared = Arc::clone(&self.0.shared);
        let runs = self
            .write(move |t| {
                shared.release_dead(t)?;
                t.expire_runs()?;
                t.list_resumable(limit)
            })
            .await;
        told(runs, "list_resumable", None)
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        self.expire().await?;
        let session_id = session_id.map(str::to_owned);
        let pending = self.read(move |t| t.list_pending(session_id.as_deref()));
        told(pending.await, "list_pending", None)
    }
}
