//! Records within a transaction: created, read, written, held.

use raf_core::{ClaimOutcome, RunClaim, RunId, RunRecord, WriteOutcome};
use rusqlite::params;

use super::fault::Fault;
use super::transaction::{RunRow, Transaction};
use crate::record_row::{RecordRow, column, count};

impl Transaction<'_> {
    /// Keeps a new record, unless the run is known.
    pub(super) fn create(
        &self,
        record: &RunRecord,
        claim: Option<&RunClaim>,
    ) -> Result<WriteOutcome, Fault> {
        self.expire_runs()?;
        let id = record.run_id.as_str();
        let known = self.one(
            "SELECT 1 FROM raf_runs WHERE run_id = ?1
             UNION ALL SELECT 1 FROM raf_tombstones WHERE run_id = ?1",
            [id],
            |_| Ok(()),
        )?;
        if known.is_some() {
            return Ok(WriteOutcome::Conflict);
        }
        let row = RecordRow::new(record, 1)?;
        let owner = claim.map(RunClaim::owner);
        let expires_at = self.run_expiry();
        let due_at = row
            .answerable_until
            .map_or(expires_at, |until| until.min(expires_at));
        self.execute(
            "INSERT INTO raf_runs (run_id, session_id, format, revision, closed, working, record,
                 fence, owner, lease_until, expires_at, answerable_until, due_at)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                id,
                record.session_id,
                record.format,
                record.closed,
                record.working,
                row.json,
                i64::from(owner.is_some()),
                owner,
                owner.map_or(0, |_| self.lease_end()),
                expires_at,
                row.answerable_until,
                due_at,
            ],
        )?;
        self.index(id, &row)?;
        if let Some(claim) = claim {
            self.holds.hold(&record.run_id, claim, 1);
        }
        Ok(WriteOutcome::Written(1))
    }

    /// The record of a run.
    pub(super) fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>, Fault> {
        let json = self.one(
            "SELECT record FROM raf_runs WHERE run_id = ?1",
            [run_id.as_str()],
            |row| row.get::<_, String>(0),
        )?;
        Ok(json.map(|json| RunRecord::from_json(&json)).transpose()?)
    }

    /// Writes over the record of the same revision.
    pub(super) fn save(&self, record: &RunRecord) -> Result<WriteOutcome, Fault> {
        let revision = column(record.revision)?;
        match self.run(&record.run_id)? {
            Some(run) if run.revision == revision => {
                self.refuse_later_format(&run, record)?;
                Ok(WriteOutcome::Written(self.write_record(record)?))
            }
            _ => Ok(WriteOutcome::Conflict),
        }
    }

    /// A record of a later version is never written over by what this one made of it.
    pub(super) fn refuse_later_format(
        &self,
        run: &RunRow,
        record: &RunRecord,
    ) -> Result<(), Fault> {
        if run.format > record.format {
            self.load(&record.run_id)?;
        }
        Ok(())
    }

    /// Writes a record over the one that is there; its revision now.
    pub(super) fn write_record(&self, record: &RunRecord) -> Result<u64, Fault> {
        let id = record.run_id.as_str();
        let revision = record.revision + 1;
        let row = RecordRow::new(record, revision)?;
        let expires_at = self.run_expiry();
        if record.closed {
            self.execute("DELETE FROM raf_answers WHERE run_id = ?1", [id])?;
        } else {
            for request_id in &row.settled {
                self.execute(
                    "DELETE FROM raf_answers WHERE request_id = ?1",
                    [request_id],
                )?;
            }
        }
        self.execute(
            "UPDATE raf_runs SET session_id = ?2, format = ?3, revision = ?4, closed = ?5,
                 working = ?6, record = ?7, expires_at = ?8, answerable_until = ?9
             WHERE run_id = ?1",
            params![
                id,
                record.session_id,
                record.format,
                column(revision)?,
                record.closed,
                record.working,
                row.json,
                expires_at,
                row.answerable_until,
            ],
        )?;
        self.index(id, &row)?;
        self.set_due(id)?;
        Ok(revision)
    }

    /// Says when a run is over: it may end before its time if nobody can answer any more.
    pub(super) fn set_due(&self, run_id: &str) -> Result<(), Fault> {
        self.execute(
            "UPDATE raf_runs SET due_at = CASE
                 WHEN answerable_until IS NULL OR answerable_until > expires_at
                     OR EXISTS (SELECT 1 FROM raf_answers WHERE raf_answers.run_id = ?1)
                 THEN expires_at ELSE answerable_until END
             WHERE run_id = ?1",
            [run_id],
        )?;
        Ok(())
    }

    fn index(&self, run_id: &str, row: &RecordRow) -> Result<(), Fault> {
        for request_id in &row.request_ids {
            self.execute(
                "INSERT OR IGNORE INTO raf_requests (request_id, run_id) VALUES (?1, ?2)",
                [request_id, run_id],
            )?;
        }
        Ok(())
    }

    /// Takes hold of a run, unless a live claim of somebody else has it.
    pub(super) fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome, Fault> {
        self.expire_runs()?;
        let owner = claim.owner();
        let Some(run) = self.run(run_id)? else {
            return Ok(ClaimOutcome::Missing);
        };
        let free = run.lease_until <= self.now;
        if run
            .owner
            .as_deref()
            .is_some_and(|held| held != owner && !free)
        {
            return Ok(ClaimOutcome::Busy);
        }
        let Some(record) = self.load(run_id)? else {
            return Ok(ClaimOutcome::Missing);
        };
        self.execute(
            "UPDATE raf_runs SET owner = ?2, fence = ?3, lease_until = ?4 WHERE run_id = ?1",
            (run_id.as_str(), owner, run.fence + 1, self.lease_end()),
        )?;
        // Noted before it is committed: a claim whose future is dropped is let go all the same.
        self.holds.hold(run_id, claim, count(run.fence + 1));
        Ok(ClaimOutcome::Claimed(Box::new(record)))
    }

    /// Lets a run go that this owner holds.
    pub(super) fn release(&self, run_id: &RunId, owner: &str) -> Result<(), Fault> {
        self.execute(
            "UPDATE raf_runs SET owner = NULL, lease_until = 0 WHERE run_id = ?1 AND owner = ?2",
            (run_id.as_str(), owner),
        )?;
        Ok(())
    }

    /// A sign of life; whether the run is still held under this fence.
    pub(super) fn renew(&self, run_id: &RunId, owner: &str, fence: u64) -> Result<bool, Fault> {
        let renewed = self.execute(
            "UPDATE raf_runs SET lease_until = ?4 WHERE run_id = ?1 AND owner = ?2 AND fence = ?3",
            (run_id.as_str(), owner, column(fence)?, self.lease_end()),
        )?;
        Ok(renewed > 0)
    }
}

/// Whether a claim is the one that the store knows.
pub(super) fn holds(claim: &RunClaim, run_id: &RunId, run: &RunRow) -> bool {
    run.owner.as_deref() == Some(claim.owner()) && claim.fence(run_id) == Some(count(run.fence))
}
