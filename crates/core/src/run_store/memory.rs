//! The in-memory store.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use super::tombstones::Tombstones;
use super::{ApprovalRule, ClaimOutcome, IRunStore, RunClaim, WriteOutcome};
use crate::approval::ClosedReason;
use crate::error::Result;
use crate::identity::RunId;
use crate::record::RunRecord;

/// The in-memory store: bounded, expiring, of this process alone.
///
/// Defaults: 10,000 runs, of which the oldest closed and then the oldest open give way; 24 hours.
/// A run that is claimed gives way only when all are. A record that gave way is unknown: an answer to
/// it is refused as such, and so is its paused run as a value: the ids of the last 100,000 runs that
/// are gone are kept for twice the lifetime, so that nothing runs again.
#[derive(Clone)]
pub struct InMemoryRunStore {
    shared: Arc<Mutex<Shared>>,
    max_runs: usize,
    lifetime: Duration,
    clock: Clock,
}

type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

#[derive(Default)]
struct Shared {
    runs: HashMap<RunId, Entry>,
    /// Runs by age.
    order: VecDeque<RunId>,
    requests: HashMap<String, RunId>,
    rules: BTreeMap<String, Vec<ApprovalRule>>,
    tombstones: Tombstones,
}

struct Entry {
    record: RunRecord,
    claim: Option<Weak<()>>,
    expires_at: Duration,
}

impl Default for InMemoryRunStore {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            max_runs: 10_000,
            lifetime: Duration::from_hours(24),
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
            }),
        }
    }
}

impl Debug for InMemoryRunStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryRunStore")
            .field("runs", &self.lock().runs.len())
            .field("max_runs", &self.max_runs)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl InMemoryRunStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many runs are kept; at least one.
    pub fn with_max_runs(mut self, runs: usize) -> Self {
        self.max_runs = runs.max(1);
        self
    }

    /// Sets how long a run is kept after its last write.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets the clock: the time since some fixed moment. For tests.
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How many records are kept, closed ones included.
    pub fn len(&self) -> usize {
        self.lock().runs.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> MutexGuard<'_, Shared> {
        let now = (self.clock)();
        let mut shared = self.lock();
        shared.expire(now, self.lifetime);
        shared
    }
}

impl Shared {
    /// Closes what is expired; forgets closed records after the same time once more.
    fn expire(&mut self, now: Duration, lifetime: Duration) -> usize {
        self.tombstones.expire(now);
        let mut closed = 0;
        let mut gone = Vec::new();
        for (run_id, entry) in &mut self.runs {
            if entry.expires_at > now {
                continue;
            }
            if entry.record.closed {
                gone.push(run_id.clone());
            } else if !entry.is_claimed() {
                entry.record.close(ClosedReason::Expired);
                entry.record.revision += 1;
                entry.expires_at = now.saturating_add(lifetime);
                closed += 1;
            }
        }
        for run_id in gone {
            self.forget(&run_id, now, lifetime);
        }
        closed
    }

    fn forget(&mut self, run_id: &RunId, now: Duration, lifetime: Duration) {
        let until = now.saturating_add(lifetime.saturating_mul(2));
        self.tombstones.add(run_id, until);
        if let Some(entry) = self.runs.remove(run_id) {
            for request_id in entry.record.request_ids() {
                self.requests.remove(request_id);
            }
            self.order.retain(|other| other != run_id);
            self.rules.remove(run_id.as_str());
        }
    }

    fn make_room(&mut self, max_runs: usize, now: Duration, lifetime: Duration) {
        while self.runs.len() >= max_runs {
            let oldest = |fits: fn(&Entry) -> bool| {
                let mut by_age = self.order.iter();
                by_age.find(|run_id| self.runs.get(*run_id).is_some_and(fits))
            };
            let oldest = oldest(|run| run.record.closed && !run.is_claimed())
                .or_else(|| oldest(|run| !run.is_claimed()))
                .or_else(|| self.order.front());
            let Some(oldest) = oldest.cloned() else {
                return;
            };
            self.forget(&oldest, now, lifetime);
        }
    }

    fn index(&mut self, record: &RunRecord) {
        for request_id in record.request_ids() {
            if !self.requests.contains_key(request_id) {
                self.requests
                    .insert(request_id.to_owned(), record.run_id.clone());
            }
        }
    }
}

impl Entry {
    fn is_claimed(&self) -> bool {
        self.claim
            .as_ref()
            .is_some_and(|claim| claim.strong_count() > 0)
    }
}

#[async_trait]
impl IRunStore for InMemoryRunStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        let now = (self.clock)();
        let expires_at = now.saturating_add(self.lifetime);
        let mut shared = self.fresh();
        if shared.runs.contains_key(&record.run_id) || shared.tombstones.has(&record.run_id) {
            return Ok(WriteOutcome::Conflict);
        }
        shared.make_room(self.max_runs, now, self.lifetime);
        let mut record = record.clone();
        record.revision = 1;
        shared.index(&record);
        shared.order.push_back(record.run_id.clone());
        let claim = claim.map(|claim| Arc::downgrade(&claim.0));
        let entry = Entry {
            record: record.clone(),
            claim,
            expires_at,
        };
        shared.runs.insert(record.run_id, entry);
        Ok(WriteOutcome::Written(1))
    }

    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        let shared = self.fresh();
        Ok(shared.runs.get(run_id).map(|entry| entry.record.clone()))
    }

    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        let mut shared = self.fresh();
        let Some(entry) = shared.runs.get_mut(run_id) else {
            return Ok(ClaimOutcome::Missing);
        };
        let own = entry.claim.as_ref().is_some_and(|held| claim.is(held));
        if entry.is_claimed() && !own {
            return Ok(ClaimOutcome::Busy);
        }
        entry.claim = Some(Arc::downgrade(&claim.0));
        Ok(ClaimOutcome::Claimed(Box::new(entry.record.clone())))
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        let mut shared = self.lock();
        if let Some(entry) = shared.runs.get_mut(run_id)
            && entry.claim.as_ref().is_some_and(|held| claim.is(held))
        {
            entry.claim = None;
        }
        Ok(())
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        let expires_at = (self.clock)().saturating_add(self.lifetime);
        let mut shared = self.fresh();
        let revision = match shared.runs.get_mut(&record.run_id) {
            Some(entry) if entry.record.revision == record.revision => {
                entry.record = record.clone();
                entry.record.revision += 1;
                entry.expires_at = expires_at;
                entry.record.revision
            }
            _ => return Ok(WriteOutcome::Conflict),
        };
        shared.index(record);
        Ok(WriteOutcome::Written(revision))
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        Ok(self.fresh().requests.get(request_id).cloned())
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        let shared = self.fresh();
        let records = shared
            .order
            .iter()
            .filter_map(|run_id| shared.runs.get(run_id));
        Ok(records
            .map(|entry| &entry.record)
            .filter(|record| !record.closed)
            .filter(|record| session_id.is_none() || record.session_id.as_deref() == session_id)
            .cloned()
            .collect())
    }

    async fn expire(&self) -> Result<usize> {
        Ok(self.lock().expire((self.clock)(), self.lifetime))
    }

    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        let mut shared = self.lock();
        while shared.rules.len() >= self.max_runs && !shared.rules.contains_key(scope) {
            shared.rules.pop_first();
        }
        let rules = shared.rules.entry(scope.to_owned()).or_default();
        if !rules.contains(&rule) && rules.len() < 1_000 {
            rules.push(rule);
        }
        Ok(())
    }

    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        Ok(self.lock().rules.get(scope).cloned().unwrap_or_default())
    }
}
