//! Sessions in SQLite: a write appends rows, a lease is a row.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    BusyPolicy, ISessionStore, Result, RunClaim, SessionChange, SessionLease, SessionRecord,
    WriteOutcome,
};

use super::{Inner, SqliteStore};
use crate::turns::{Turn, busy};

#[async_trait]
impl ISessionStore for SqliteStore {
    async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
        let session_id = id.to_owned();
        let read = self.write(move |t| {
            t.expire_sessions()?;
            t.load_session(&session_id)
        });
        told(read.await, "load", id)
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
        let taken = self.0.database.write_until(move |connection| {
            let transaction = shared.transaction(connection);
            Ok(match transaction.take_lease(&session_id, &owner)? {
                true => Some(true),
                false if policy == BusyPolicy::Refuse => Some(false),
                false => None,
            })
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
        let written = self
            .write(move |t| t.write_session(&session_id, base, &change, lease.as_deref()))
            .await;
        told(written, "write", id)
    }

    async fn delete(&self, id: &str) -> Result<bool> {
        let session_id = id.to_owned();
        let deleted = self.write(move |t| t.forget_session(&session_id)).await;
        told(deleted, "delete", id)
    }

    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method by its path has one lifetime, not any"
    )]
    async fn expire(&self) -> Result<usize> {
        let expired = self.write(|t| t.expire_sessions()).await;
        super::told(expired, "expire", None)
    }
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
        let shared = Arc::clone(&self.store.shared);
        let (session_id, owner) = (self.session_id.clone(), self.owner.clone());
        self.store.database.write_later(move |connection| {
            shared
                .transaction(connection)
                .drop_lease(&session_id, &owner)
        });
    }
}

fn told<T>(result: Result<T>, operation: &'static str, session_id: &str) -> Result<T> {
    result.map_err(|error| {
        let error = error.with_context("operation", operation);
        error.with_context("session", session_id)
    })
}
