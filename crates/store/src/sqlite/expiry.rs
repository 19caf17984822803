//! What is over: runs are closed as expired, then gone; sessions are gone.

use raf_core::{RunId, RunRecord};

use super::fault::Fault;
use super::transaction::Transaction;
use crate::options::milliseconds;
use crate::record_row::expired;

/// How many runs one transaction closes or forgets at most.
const MAX_RUNS: i64 = 1_000;

impl Transaction<'_> {
    /// Closes and forgets what is over; says how many were closed. A run that somebody holds is not over.
    pub(super) fn expire_runs(&self) -> Result<usize, Fault> {
        self.execute(
            "DELETE FROM raf_tombstones WHERE expires_at <= ?1",
            [self.now],
        )?;
        let over = self.all(
            "SELECT run_id, closed, record FROM raf_runs
             WHERE due_at <= ?1 AND (closed = 1 OR owner IS NULL OR lease_until <= ?1)
             ORDER BY due_at LIMIT ?2",
            [self.now, MAX_RUNS],
            |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, bool>(1)?,
                    row.get::<_, String>(2)?,
                ))
            },
        )?;
        let mut closed = 0;
        for (run_id, is_closed, json) in over {
            let run_id = RunId::from(run_id);
            if is_closed {
                self.forget_run(&run_id)?;
                continue;
            }
            match RunRecord::from_json(&json) {
                Ok(record) => {
                    self.write_record(&expired(record))?;
                    closed += 1;
                }
                // What cannot be read is left as it is, for a version that can.
                Err(error) => {
                    tracing::warn!(%error, run = run_id.as_str(), "an expired run cannot be closed");
                    self.execute(
                        "UPDATE raf_runs SET due_at = ?2 WHERE run_id = ?1",
                        (run_id.as_str(), self.run_expiry()),
                    )?;
                }
            }
        }
        Ok(closed)
    }

    /// Whether a run is over and not closed or forgotten yet.
    pub(super) fn is_over(&self, run_id: &RunId) -> Result<bool, Fault> {
        let over = self.one(
            "SELECT 1 FROM raf_runs WHERE run_id = ?1 AND due_at <= ?2",
            (run_id.as_str(), self.now),
            |_| Ok(()),
        )?;
        Ok(over.is_some())
    }

    fn forget_run(&self, run_id: &RunId) -> Result<(), Fault> {
        let id = run_id.as_str();
        let lifetime = milliseconds(self.options.lifetime);
        let until = self.now.saturating_add(lifetime.saturating_mul(2));
        self.execute(
            "INSERT OR REPLACE INTO raf_tombstones (run_id, expires_at) VALUES (?1, ?2)",
            (id, until),
        )?;
        for sql in [
            "DELETE FROM raf_runs WHERE run_id = ?1",
            "DELETE FROM raf_requests WHERE run_id = ?1",
            "DELETE FROM raf_answers WHERE run_id = ?1",
            "DELETE FROM raf_journal WHERE root_id = ?1",
            "DELETE FROM raf_rules WHERE scope = ?1",
        ] {
            self.execute(sql, [id])?;
        }
        Ok(())
    }

    /// Forgets sessions that are over and that nobody writes to; says how many.
    pub(super) fn expire_sessions(&self) -> Result<usize, Fault> {
        let over = self.all(
            "SELECT session_id FROM raf_sessions WHERE expires_at <= ?1
             AND NOT EXISTS (SELECT 1 FROM raf_session_leases AS lease
                 WHERE lease.session_id = raf_sessions.session_id AND lease.lease_until > ?1)
             LIMIT ?2",
            [self.now, MAX_RUNS],
            |row| row.get::<_, String>(0),
        )?;
        for id in &over {
            self.forget_session(id)?;
        }
        Ok(over.len())
    }
}
