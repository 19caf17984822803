//! Where sessions are kept, and their in-memory form.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use futures::channel::oneshot;

use crate::error::{Error, ErrorKind, Result};
use crate::run_store::WriteOutcome;
use crate::session::{BusyPolicy, SessionChange, SessionLease, SessionRecord};

/// A store of sessions.
///
/// # Contract
/// - A write names the revision that it is based on (0 for a new session); it is made only if that is
///   the present one (compare-and-set), whole, and raises it by one.
/// - At most one live lease on a session. Those who wait get it in the order in which they came.
/// - What is expired is gone; a session that is leased does not expire.
#[async_trait]
pub trait ISessionStore: Debug + Send + Sync {
    /// What is kept of a session.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be read.
    async fn load(&self, id: &str) -> Result<Option<SessionRecord>>;

    /// The right to write, until it is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::BusySession`](crate::ErrorKind::BusySession) if another holds it and the policy
    /// is not to wait; [`ErrorKind::Store`](crate::ErrorKind::Store).
    async fn lease(&self, id: &str, policy: BusyPolicy) -> Result<SessionLease>;

    /// Lays a change over a session, creating it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn write(&self, id: &str, base: u64, change: SessionChange) -> Result<WriteOutcome>;

    /// Forgets a session; says whether there was one.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn delete(&self, id: &str) -> Result<bool>;

    /// Forgets what is expired; says how many.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if it cannot be written.
    async fn expire(&self) -> Result<usize>;
}

/// The in-memory store: bounded, expiring, of this process alone.
///
/// Defaults: 10,000 sessions, of which the one that was not written to for longest gives way; 24
/// hours after the last write.
#[derive(Clone)]
pub struct InMemorySessionStore {
    shared: Arc<Mutex<Shared>>,
    max_sessions: usize,
    lifetime: Duration,
    clock: Arc<dyn Fn() -> Duration + Send + Sync>,
}

#[derive(Default)]
struct Shared {
    sessions: HashMap<String, Entry>,
    /// Sessions that are leased, and who waits for them.
    leases: HashMap<String, VecDeque<oneshot::Sender<Lease>>>,
}

struct Entry {
    record: SessionRecord,
    expires_at: Duration,
}

impl Default for InMemorySessionStore {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            max_sessions: 10_000,
            lifetime: Duration::from_hours(24),
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
            }),
        }
    }
}

impl Debug for InMemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemorySessionStore")
            .field("sessions", &self.len())
            .field("max_sessions", &self.max_sessions)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl InMemorySessionStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many sessions are kept; at least one.
    pub fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions.max(1);
        self
    }

    /// Sets how long a session is kept after its last write.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets the clock: the time since some fixed moment. For tests.
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How many sessions are kept.
    pub fn len(&self) -> usize {
        lock(&self.shared).sessions.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn forget_expired(&self, shared: &mut Shared) -> usize {
        let now = (self.clock)();
        let before = shared.sessions.len();
        let leases = &shared.leases;
        shared
            .sessions
            .retain(|id, entry| entry.expires_at > now || leases.contains_key(id));
        before - shared.sessions.len()
    }

    fn make_room(&self, shared: &mut Shared) {
        while shared.sessions.len() >= self.max_sessions {
            let oldest = shared
                .sessions
                .iter()
                .filter(|(id, _)| !shared.leases.contains_key(*id))
                .min_by_key(|(_, entry)| entry.expires_at)
                .map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return };
            shared.sessions.remove(&oldest);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lease of one session; its drop hands it to the next who waits.
struct Lease {
    shared: Arc<Mutex<Shared>>,
    id: String,
    live: bool,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.live {
            return;
        }
        let mut shared = lock(&self.shared);
        while let Some(next) = shared
            .leases
            .get_mut(&self.id)
            .and_then(VecDeque::pop_front)
        {
            let lease = Self {
                shared: Arc::clone(&self.shared),
                id: self.id.clone(),
                live: true,
            };
            match next.send(lease) {
                Ok(()) => return,
                // Who waited has gone away.
                Err(mut unwanted) => unwanted.live = false,
            }
        }
        shared.leases.remove(&self.id);
    }
}

#[async_trait]
impl ISessionStore for InMemorySessionStore {
    async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
        let mut shared = lock(&self.shared);
        self.forget_expired(&mut shared);
        Ok(shared.sessions.get(id).map(|entry| entry.record.clone()))
    }

    async fn lease(&self, id: &str, policy: BusyPolicy) -> Result<SessionLease> {
        let turn = {
            let mut shared = lock(&self.shared);
            match (shared.leases.get_mut(id), policy) {
                (None, _) => {
                    shared.leases.insert(id.to_owned(), VecDeque::new());
                    return Ok(SessionLease::new(Lease {
                        shared: Arc::clone(&self.shared),
                        id: id.to_owned(),
                        live: true,
                    }));
                }
                (Some(_), BusyPolicy::Refuse) => {
                    return Err(Error::new(
                        ErrorKind::BusySession,
                        "another run writes to this session: wait for its end, or let the run \
                         queue (`BusyPolicy::Queue`)",
                    )
                    .with_context("session", id));
                }
                (Some(waiting), BusyPolicy::Queue) => {
                    let (sender, turn) = oneshot::channel();
                    waiting.push_back(sender);
                    turn
                }
            }
        };
        match turn.await {
            Ok(lease) => Ok(SessionLease::new(lease)),
            Err(_) => Err(Error::new(
                ErrorKind::Store,
                "the session store was dropped while a run waited for its turn",
            )),
        }
    }

    async fn write(&self, id: &str, base: u64, change: SessionChange) -> Result<WriteOutcome> {
        let expires_at = (self.clock)().saturating_add(self.lifetime);
        let mut shared = lock(&self.shared);
        self.forget_expired(&mut shared);
        let present = shared
            .sessions
            .get(id)
            .map_or(0, |entry| entry.record.revision);
        if present != base {
            return Ok(WriteOutcome::Conflict);
        }
        if !shared.sessions.contains_key(id) {
            self.make_room(&mut shared);
        }
        let entry = shared
            .sessions
            .entry(id.to_owned())
            .or_insert_with(|| Entry {
                record: SessionRecord::new(id),
                expires_at,
            });
        entry.record.apply(change);
        entry.expires_at = expires_at;
        Ok(WriteOutcome::Written(entry.record.revision))
    }

    async fn delete(&self, id: &str) -> Result<bool> {
        Ok(lock(&self.shared).sessions.remove(id).is_some())
    }

    async fn expire(&self) -> Result<usize> {
        Ok(self.forget_expired(&mut lock(&self.shared)))
    }
}

#[cfg(test)]
mod tests;
