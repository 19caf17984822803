//! Sessions in PostgreSQL: a write appends rows in one statement, a lease is a row.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    BusyPolicy, ISessionStore, Result, RunClaim, SessionChange, SessionLease, SessionRecord,
    WriteOutcome,
};

use super::pool::Connection;
use super::{Fault, Inner, PostgresStore, Shared};
use crate::options::milliseconds;
use crate::record_row::{column, count};
use crate::session_row;
use crate::turns::{Turn, busy};

#[async_trait]
impl ISessionStore for PostgresStore {
    async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
        let session_id = id.to_owned();
        let loaded = self.ask(|connection, shared| async move {
            let row = connection
                .row(
                    "SELECT revision, head::text, ARRAY(
                         SELECT message::text FROM raf_messages m
                         WHERE m.session_id = $1 ORDER BY m.place)
                     FROM raf_sessions
                     WHERE session_id = $1 AND NOT raf_session_is_over($2, session_id, expires_at)",
                    &[&session_id, &shared.ahead()],
                )
                .await?;
            let Some(row) = row else {
                return Ok(None);
            };
            let messages: Vec<&str> = row.try_get(2)?;
            let revision = count(row.try_get(0)?);
            Ok(Some(session_row::record(
                row.try_get(1)?,
                revision,
                messages,
            )?))
        });
        told(loaded.await, "load", id)
    }

    async fn lease(&self, id: &str, policy: BusyPolicy) -> Result<SessionLease> {
        let turn = self.0.turns.take(id, policy).await?;
        let owner = RunClaim::new().owner().to_owned();
        // From now on a drop lets go what may have been taken.
        let lease = Lease {
            store: Arc::clone(&self.0),
            session_id: id.to_owned(),
            owner: owner.clone(),
            _turn: turn,
        };
        let shared = Arc::clone(&self.0.shared);
        let session_id = id.to_owned();
        let taken = self.0.database.ask_until(move |connection| {
            let shared = Arc::clone(&shared);
            let (session_id, owner) = (session_id.clone(), owner.clone());
            async move {
                Ok(
                    match take(&connection, &shared, &session_id, &owner).await? {
                        true => Some(true),
                        false if policy == BusyPolicy::Refuse => Some(false),
                        false => None,
                    },
                )
            }
        });
        if told(taken.await, "lease", id)? {
            self.0.shared.holds.lease(id, &lease.owner);
            Ok(SessionLease::new(lease))
        } else {
            Err(busy(id))
        }
    }

    async fn write(&self, id: &str, base: u64, change: SessionChange) -> Result<WriteOutcome> {
        let session_id = id.to_owned();
        let lease = self.0.shared.holds.lease_of(id);
        let written = self.ask(move |connection, shared| async move {
            write(&connection, &shared, &session_id, base, change, lease).await
        });
        told(written.await, "write", id)
    }

    async fn delete(&self, id: &str) -> Result<bool> {
        let session_id = id.to_owned();
        let deleted = self.ask(|connection, _| async move {
            let gone = connection
                .row(
                    "WITH gone AS (DELETE FROM raf_sessions WHERE session_id = $1 RETURNING 1),
                         messages AS (DELETE FROM raf_messages WHERE session_id = $1)
                     SELECT 1 FROM gone",
                    &[&session_id],
                )
                .await?;
            Ok(gone.is_some())
        });
        told(deleted.await, "delete", id)
    }

    async fn expire(&self) -> Result<usize> {
        let expired = self.ask(|connection, shared| async move {
            let gone: i64 = connection
                .value("SELECT raf_expire_sessions($1)", &[&shared.ahead()])
                .await?;
            Ok(usize::try_from(gone).unwrap_or_default())
        });
        super::told(expired.await, "expire", None)
    }
}

/// Takes a session's lease, unless another has it; whether it did.
async fn take(
    connection: &Connection,
    shared: &Shared,
    session_id: &str,
    owner: &str,
) -> Result<bool, Fault> {
    let taken = connection
        .row(
            "INSERT INTO raf_session_leases AS held (session_id, owner, lease_until)
             VALUES ($1, $2, raf_now($3) + $4)
             ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner,
                 lease_until = excluded.lease_until
             WHERE held.lease_until <= raf_now($3) RETURNING true",
            &[&session_id, &owner, &shared.ahead(), &shared.lease()],
        )
        .await?;
    Ok(taken.is_some())
}

/// Lays a change over a session. Messages alone are one statement; else the head is read first.
async fn write(
    connection: &Connection,
    shared: &Shared,
    id: &str,
    base: u64,
    change: SessionChange,
    lease: Option<String>,
) -> Result<WriteOutcome, Fault> {
    let texts = change.messages.iter().map(session_row::message);
    let messages: Vec<String> = texts.collect::<Result<_>>()?;
    let first = session_row::head(&SessionRecord::new(id))?;
    let new_head = if change.metadata.is_empty() && change.paused_run.is_none() {
        None
    } else {
        let row = connection
            .row(
                "SELECT head::text FROM raf_sessions WHERE session_id = $1 AND revision = $2",
                &[&id, &column(base)?],
            )
            .await?;
        let mut record = match &row {
            Some(row) => SessionRecord::from_json(row.try_get(0)?)?,
            None => SessionRecord::new(id),
        };
        let mut rest = SessionChange::default();
        rest.metadata = change.metadata;
        rest.paused_run = change.paused_run;
        record.apply(rest);
        Some(session_row::head(&record)?)
    };
    let outcome: String = connection
        .value(
            "SELECT raf_write_session($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &shared.ahead(),
                &milliseconds(shared.options.session_lifetime),
                &id,
                &column(base)?,
                &lease,
                &first,
                &new_head,
                &messages,
            ],
        )
        .await?;
    Ok(match outcome.as_str() {
        "written" => WriteOutcome::Written(base + 1),
        "lost" => WriteOutcome::ClaimLost,
        _ => WriteOutcome::Conflict,
    })
}

/// A lease of this process. Its drop lets the row go, then the turn.
struct Lease {
    store: Arc<Inner>,
    session_id: String,
    owner: String,
    _turn: Turn,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.store
            .shared
            .holds
            .end_lease(&self.session_id, &self.owner);
        let (session_id, owner) = (self.session_id.clone(), self.owner.clone());
        self.store.database.later(move |connection| async move {
            connection
                .rows(
                    "DELETE FROM raf_session_leases WHERE session_id = $1 AND owner = $2",
                    &[&session_id, &owner],
                )
                .await?;
            Ok(())
        });
    }
}

fn told<T>(result: Result<T>, operation: &'static str, session_id: &str) -> Result<T> {
    result.map_err(|error| {
        let error = error.with_context("operation", operation);
        error.with_context("session", session_id)
    })
}
