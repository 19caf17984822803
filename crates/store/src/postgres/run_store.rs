//! Runs in PostgreSQL: a write is one statement.

use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, Error, IRunStore, JournalEntry, JournalKey,
    PendingRequest, Result, RunClaim, RunId, RunRecord, ToolApprovalResponse, WriteOutcome,
};

use super::records::Append;
use super::{PostgresStore, answers, expiry, records, told};
use crate::record_row::column;

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IRunStore for PostgresStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        let (new, claim) = (record.clone(), claim.cloned());
        let created = self.ask(|connection, shared| async move {
            records::create(&connection, &shared, &new, claim.as_ref()).await
        });
        told(created.await, "create", Some(&record.run_id))
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        let id = run_id.clone();
        let loaded = self.ask(|connection, shared| async move {
            let mut found = records::load(&connection, &shared, &id).await?;
            if matches!(found, Some((_, true))) {
                expiry::expire(&connection, &shared).await?;
                found = records::load(&connection, &shared, &id).await?;
            }
            Ok(found.map(|(record, _)| record))
        });
        told(loaded.await, "load", Some(run_id))
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        let (id, held) = (run_id.clone(), claim.clone());
        let claimed = self.ask(|connection, shared| async move {
            shared.release_dead(&connection).await?;
            loop {
                match records::claim(&connection, &shared, &id, &held).await? {
                    Some(outcome) => return Ok(outcome),
                    None => {
                        // What cannot be read is put off: it says so when it is claimed.
                        expiry::expire(&connection, &shared).await?;
                    }
                }
            }
        });
        told(claimed.await, "claim", Some(run_id))
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        let (id, owner) = (run_id.clone(), claim.owner().to_owned());
        let released = self
            .ask(|connection, _| async move { records::release(&connection, &id, &owner).await });
        told(released.await, "release", Some(run_id))?;
        self.0.shared.holds.let_go(run_id, claim);
        Ok(())
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        let new = record.clone();
        let saved = self.ask(|connection, shared| async move {
            records::write(&connection, &shared, &new).await
        });
        told(saved.await, "save", Some(&record.run_id))
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        let id = request_id.to_owned();
        let found = self.ask(|connection, shared| async move {
            expiry::expire(&connection, &shared).await?;
            answers::find_request(&connection, &id).await
        });
        told(found.await, "find_request", None)
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        let session_id = session_id.map(str::to_owned);
        let open = self.ask(|connection, shared| async move {
            expiry::expire(&connection, &shared).await?;
            let runs = answers::open_runs(&connection, session_id.as_deref()).await?;
            Ok(runs.into_iter().map(|run| run.record).collect())
        });
        told(open.await, "list_open", None)
    }

    async fn expire(&self) -> Result<usize> {
        let expired = self
            .ask(|connection, shared| async move { expiry::expire(&connection, &shared).await });
        told(expired.await, "expire", None)
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        let scope = scope.to_owned();
        let kept =
            self.ask(
                |connection, _| async move { answers::remember(&connection, &scope, &rule).await },
            );
        told(kept.await, "remember", None)
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        let scope = scope.to_owned();
        let rules =
            self.ask(|connection, _| async move { answers::remembered(&connection, &scope).await });
        told(rules.await, "remembered", None)
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
        let texts = entries.iter().map(JournalEntry::to_json);
        let append = Append {
            key: key.clone(),
            claim: claim.clone(),
            base,
            entries: texts.collect::<Result<_>>()?,
            record: record.cloned(),
        };
        let appended = self.ask(|connection, shared| async move {
            records::append(&connection, &shared, &append).await
        });
        told(appended.await, "append", Some(&key.root))
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        let whose = key.clone();
        let from = column(from.min(i64::MAX.unsigned_abs()))?;
        let entries = self.ask(move |connection, _| async move {
            let rows = connection
                .rows(
                    "SELECT entry::text FROM raf_journal
                     WHERE root_id = $1 AND run_id = $2 AND place >= $3 ORDER BY place",
                    &[&whose.root.as_str(), &whose.run.as_str(), &from],
                )
                .await?;
            let entries = rows
                .iter()
                .map(|row| Ok(JournalEntry::from_json(row.try_get(0)?)?));
            entries.collect()
        });
        told(entries.await, "journal", Some(&key.root))
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        let Some(fence) = claim.fence(run_id) else {
            return Ok(false);
        };
        let (id, owner) = (run_id.clone(), claim.owner().to_owned());
        let renewed = self.ask(move |connection, shared| async move {
            records::renew(&connection, &shared, &id, &owner, fence).await
        });
        told(renewed.await, "renew", Some(run_id))
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        let answer = answer.clone();
        let kept = self.ask(|connection, shared| async move {
            answers::answer(&connection, &shared, &answer).await
        });
        told(kept.await, "answer", None)
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        let id = run_id.clone();
        let kept =
            self.ask(|connection, _| async move { answers::answers(&connection, &id).await });
        told(kept.await, "answers", Some(run_id))
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        let id = request_id.to_owned();
        let forgotten =
            self.ask(|connection, _| async move { answers::forget_answer(&connection, &id).await });
        told(forgotten.await, "forget_answer", None)
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        let runs = self.ask(move |connection, shared| async move {
            shared.release_dead(&connection).await?;
            expiry::expire(&connection, &shared).await?;
            answers::list_resumable(&connection, &shared, limit).await
        });
        told(runs.await, "list_resumable", None)
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        let session_id = session_id.map(str::to_owned);
        let pending = self.ask(|connection, shared| async move {
            expiry::expire(&connection, &shared).await?;
            answers::list_pending(&connection, session_id.as_deref()).await
        });
        told(pending.await, "list_pending", None)
    }
}
