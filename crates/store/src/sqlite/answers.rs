//! Kept answers and rules within a transaction, and what waits.

use raf_core::{
    AnswerOutcome, ApprovalRule, PendingRequest, RefusalReason, Result, RunId, RunRecord,
    ToolApprovalResponse,
};
use rusqlite::params;

use super::fault::Fault;
use super::transaction::Transaction;
use crate::error::failed;
use crate::record_row::count;

/// How many rules a scope has at most.
const MAX_RULES: i64 = 1_000;

impl Transaction<'_> {
    /// The run that a request belongs to.
    pub(super) fn find_request(&self, request_id: &str) -> Result<Option<RunId>, Fault> {
        self.one(
            "SELECT run_id FROM raf_requests WHERE request_id = ?1",
            [request_id],
            |row| row.get::<_, String>(0).map(RunId::from),
        )
    }

    /// Keeps an answer that fits and is the first.
    pub(super) fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome, Fault> {
        self.expire_runs()?;
        let request_id = answer.request_id.as_str();
        let run_id = self.find_request(request_id)?;
        let record = run_id.map(|run_id| self.load(&run_id)).transpose()?;
        let Some(record) = record.flatten() else {
            return Ok(AnswerOutcome::Refused(RefusalReason::UnknownRequest));
        };
        let now = u64::try_from(self.now).unwrap_or_default();
        if let Some(reason) = record.refusal_of(answer, now) {
            return Ok(AnswerOutcome::Refused(reason));
        }
        let text = json(answer)?;
        let kept = self.execute(
            "INSERT OR IGNORE INTO raf_answers (request_id, run_id, answer) VALUES (?1, ?2, ?3)",
            params![request_id, record.run_id.as_str(), text],
        )?;
        if kept == 0 {
            return Ok(AnswerOutcome::Refused(RefusalReason::AlreadySettled));
        }
        self.set_due(record.run_id.as_str())?;
        Ok(AnswerOutcome::Kept)
    }

    /// The answers kept for a run, as they came.
    pub(super) fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>, Fault> {
        let texts = self.all(
            "SELECT answer FROM raf_answers WHERE run_id = ?1 ORDER BY arrival",
            [run_id.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        texts.iter().map(|text| parsed(text)).collect()
    }

    /// Takes an answer back.
    pub(super) fn forget_answer(&self, request_id: &str) -> Result<bool, Fault> {
        let run_id = self.find_request(request_id)?;
        let gone = self.execute(
            "DELETE FROM raf_answers WHERE request_id = ?1",
            [request_id],
        )?;
        if let Some(run_id) = run_id.filter(|_| gone > 0) {
            self.set_due(run_id.as_str())?;
        }
        Ok(gone > 0)
    }

    /// Open records, oldest first.
    pub(super) fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>, Fault> {
        let open = self.open_runs(session_id)?;
        Ok(open.into_iter().map(|(record, _)| record).collect())
    }

    /// The records that are open, each with when its run expires.
    fn open_runs(&self, session_id: Option<&str>) -> Result<Vec<(RunRecord, i64)>, Fault> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get(1)?));
        let texts = match session_id {
            Some(session_id) => self.all(
                "SELECT record, expires_at FROM raf_runs WHERE closed = 0 AND session_id = ?1
                 ORDER BY age",
                [session_id],
                read,
            )?,
            None => self.all(
                "SELECT record, expires_at FROM raf_runs WHERE closed = 0 ORDER BY age",
                [],
                read,
            )?,
        };
        let records = texts
            .iter()
            .map(|(text, expires_at)| Ok((RunRecord::from_json(text)?, *expires_at)));
        Ok(records.collect::<Result<_>>()?)
    }

    /// What waits for an answer.
    pub(super) fn list_pending(
        &self,
        session_id: Option<&str>,
    ) -> Result<Vec<PendingRequest>, Fault> {
        let mut pending = Vec::new();
        for (record, expires_at) in self.open_runs(session_id)? {
            let answered = self.all(
                "SELECT request_id FROM raf_answers WHERE run_id = ?1",
                [record.run_id.as_str()],
                |row| row.get::<_, String>(0),
            )?;
            let has = |id: &str| answered.iter().any(|answered| answered == id);
            let waits = PendingRequest::of(&record, has).into_iter();
            pending.extend(waits.map(|waits| waits.with_run_expiry(count(expires_at))));
        }
        Ok(pending)
    }

    /// Open runs that nobody holds and that have something to do, oldest first.
    pub(super) fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(
            "SELECT run_id FROM raf_runs WHERE age IN (
                 SELECT age FROM raf_runs WHERE closed = 0 AND working = 1
                     AND (owner IS NULL OR lease_until <= ?1)
                 UNION SELECT run.age FROM raf_answers AS answer
                     JOIN raf_runs AS run ON run.run_id = answer.run_id
                     WHERE run.closed = 0 AND (run.owner IS NULL OR run.lease_until <= ?1))
             ORDER BY age LIMIT ?2",
            [self.now, limit],
            |row| row.get::<_, String>(0).map(RunId::from),
        )
    }

    /// Keeps a rule.
    pub(super) fn remember(&self, scope: &str, rule: &ApprovalRule) -> Result<(), Fault> {
        let text = json(rule)?;
        self.execute(
            "INSERT OR IGNORE INTO raf_rules (scope, rule) SELECT ?1, ?2
             WHERE (SELECT COUNT(*) FROM raf_rules WHERE scope = ?1) < ?3",
            params![scope, text, MAX_RULES],
        )?;
        Ok(())
    }

    /// The rules of a scope.
    pub(super) fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>, Fault> {
        let texts = self.all(
            "SELECT rule FROM raf_rules WHERE scope = ?1 ORDER BY arrival",
            [scope],
            |row| row.get::<_, String>(0),
        )?;
        texts.iter().map(|text| parsed(text)).collect()
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| {
        let words = "what is to be kept has no JSON form";
        failed("json", raf_core::RetryStatus::Permanent, words)
            .with_source(error)
            .into()
    })
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| {
        let words = "what is kept is not of the form that this version reads";
        failed("corrupt", raf_core::RetryStatus::Permanent, words).into()
    })
}
