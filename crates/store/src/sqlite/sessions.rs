//! Sessions within a transaction: a head, a row per message, a lease.

use raf_core::{SessionChange, SessionRecord, WriteOutcome};
use rusqlite::params;

use super::fault::Fault;
use super::transaction::Transaction;
use crate::options::milliseconds;
use crate::record_row::{column, count};
use crate::session_row;

impl Transaction<'_> {
    /// A session with all its messages.
    pub(super) fn load_session(&self, id: &str) -> Result<Option<SessionRecord>, Fault> {
        let Some((revision, head)) = self.head(id)? else {
            return Ok(None);
        };
        let messages = self.all(
            "SELECT message FROM raf_messages WHERE session_id = ?1 ORDER BY place",
            [id],
            |row| row.get::<_, String>(0),
        )?;
        let messages = messages.iter().map(String::as_str);
        Ok(Some(session_row::record(&head, count(revision), messages)?))
    }

    fn head(&self, id: &str) -> Result<Option<(i64, String)>, Fault> {
        self.one(
            "SELECT revision, head FROM raf_sessions WHERE session_id = ?1",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Lays a change over a session; under a lease, if the writer has one.
    pub(super) fn write_session(
        &self,
        id: &str,
        base: u64,
        change: &SessionChange,
        lease: Option<&str>,
    ) -> Result<WriteOutcome, Fault> {
        self.expire_sessions()?;
        if let Some(owner) = lease
            && self.lease_owner(id)?.as_deref() != Some(owner)
        {
            return Ok(WriteOutcome::ClaimLost);
        }
        let head = self.head(id)?;
        let present = head.as_ref().map_or(0, |(revision, _)| *revision);
        if present != column(base)? {
            return Ok(WriteOutcome::Conflict);
        }
        let mut place = self
            .one(
                "SELECT length FROM raf_sessions WHERE session_id = ?1",
                [id],
                |row| row.get::<_, i64>(0),
            )?
            .unwrap_or(0);
        for message in &change.messages {
            self.execute(
                "INSERT INTO raf_messages (session_id, place, message) VALUES (?1, ?2, ?3)",
                params![id, place, session_row::message(message)?],
            )?;
            place += 1;
        }
        let lifetime = milliseconds(self.options.session_lifetime);
        let expires_at = self.now.saturating_add(lifetime);
        let revision = base + 1;
        let mut record = match &head {
            Some((_, head)) => SessionRecord::from_json(head)?,
            None => SessionRecord::new(id),
        };
        let mut rest = SessionChange::default();
        rest.metadata.clone_from(&change.metadata);
        rest.paused_run.clone_from(&change.paused_run);
        record.apply(rest);
        record.revision = revision;
        self.execute(
            "INSERT INTO raf_sessions (session_id, revision, length, head, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (session_id) DO UPDATE SET revision = excluded.revision,
                 length = excluded.length, head = excluded.head, expires_at = excluded.expires_at",
            params![
                id,
                column(revision)?,
                place,
                session_row::head(&record)?,
                expires_at
            ],
        )?;
        Ok(WriteOutcome::Written(revision))
    }

    /// Forgets a session; whether there was one.
    pub(super) fn forget_session(&self, id: &str) -> Result<bool, Fault> {
        self.execute("DELETE FROM raf_messages WHERE session_id = ?1", [id])?;
        let gone = self.execute("DELETE FROM raf_sessions WHERE session_id = ?1", [id])?;
        Ok(gone > 0)
    }

    fn lease_owner(&self, id: &str) -> Result<Option<String>, Fault> {
        self.one(
            "SELECT owner FROM raf_session_leases WHERE session_id = ?1",
            [id],
            |row| row.get(0),
        )
    }

    /// Takes a session's lease, unless another has it; whether it did.
    pub(super) fn take_lease(&self, id: &str, owner: &str) -> Result<bool, Fault> {
        let taken = self.execute(
            "INSERT INTO raf_session_leases (session_id, owner, lease_until) VALUES (?1, ?2, ?3)
             ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner,
                 lease_until = excluded.lease_until
             WHERE raf_session_leases.lease_until <= ?4",
            params![id, owner, self.lease_end(), self.now],
        )?;
        Ok(taken > 0)
    }

    /// Lets a lease go.
    pub(super) fn drop_lease(&self, id: &str, owner: &str) -> Result<(), Fault> {
        self.execute(
            "DELETE FROM raf_session_leases WHERE session_id = ?1 AND owner = ?2",
            [id, owner],
        )?;
        Ok(())
    }

    /// A sign of life of a lease.
    pub(super) fn renew_lease(&self, id: &str, owner: &str) -> Result<(), Fault> {
        self.execute(
            "UPDATE raf_session_leases SET lease_until = ?3 WHERE session_id = ?1 AND owner = ?2",
            params![id, owner, self.lease_end()],
        )?;
        Ok(())
    }
}
