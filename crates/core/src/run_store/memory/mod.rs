//! The in-memory store.

mod journals;
mod shared;
mod tombstones;

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use self::journals::Append;
use self::shared::{Entry, Shared};
use super::{
    AnswerOutcome, ApprovalRule, ClaimOutcome, IRunStore, JournalEntry, JournalKey, PendingRequest,
    RunClaim, WriteOutcome,
};
use crate::approval::ToolApprovalResponse;
use crate::error::{Error, Result};
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
    durable: bool,
}

type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

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
            durable: false,
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

    /// Says that the store is durable, so that the loop writes its steps ahead: as long as a clone of
    /// it lives. For tests.
    pub fn with_durable(mut self, durable: bool) -> Self {
        self.durable = durable;
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

    /// Keeps a new record, unless the run is known.
    fn insert(
        &self,
        shared: &mut Shared,
        record: &RunRecord,
        claim: Option<&RunClaim>,
        now: Duration,
    ) -> WriteOutcome {
        if shared.runs.contains_key(&record.run_id) || shared.tombstones.has(&record.run_id) {
            return WriteOutcome::Conflict;
        }
        shared.make_room(self.max_runs, now, self.lifetime);
        let mut entry = Entry::new(record.clone(), now.saturating_add(self.lifetime));
        if let Some(claim) = claim {
            entry.hold(claim);
        }
        shared.index(record);
        shared.order.push_back(record.run_id.clone());
        shared.runs.insert(record.run_id.clone(), entry);
        WriteOutcome::Written(1)
    }

    fn fresh(&self) -> MutexGuard<'_, Shared> {
        let now = (self.clock)();
        let mut shared = self.lock();
        shared.expire(now, self.lifetime);
        shared
    }
}

#[async_trait]
impl IRunStore for InMemoryRunStore {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        let now = (self.clock)();
        let mut shared = self.fresh();
        Ok(self.insert(&mut shared, record, claim, now))
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
        if entry.is_claimed() && !entry.is_held_by(claim) {
            return Ok(ClaimOutcome::Busy);
        }
        entry.hold(claim);
        Ok(ClaimOutcome::Claimed(Box::new(entry.record.clone())))
    }

    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        let mut shared = self.lock();
        if let Some(entry) = shared.runs.get_mut(run_id)
            && entry.is_held_by(claim)
        {
            entry.claim = None;
        }
        Ok(())
    }

    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        let expires_at = (self.clock)().saturating_add(self.lifetime);
        let mut shared = self.fresh();
        let entry = shared.runs.get_mut(&record.run_id);
        let Some(revision) = entry.and_then(|entry| entry.write(record, expires_at)) else {
            return Ok(WriteOutcome::Conflict);
        };
        shared.index(record);
        Ok(WriteOutcome::Written(revision))
    }

    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        Ok(self.fresh().requests.get(request_id).cloned())
    }

    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        let shared = self.fresh();
        let runs = shared.in_order().filter(|run| run.is_open_in(session_id));
        Ok(runs.map(|run| run.record.clone()).collect())
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

    fn is_durable(&self) -> bool {
        self.durable
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
        let now = (self.clock)();
        let mut shared = self.fresh();
        if let Some(new) = record.filter(|record| record.revision == 0)
            && !shared.runs.contains_key(&key.root)
        {
            let created = match base {
                0 => self.insert(&mut shared, new, Some(claim), now),
                _ => WriteOutcome::Conflict,
            };
            if created == WriteOutcome::Conflict {
                return Ok(created);
            }
            shared.extend(key, entries);
            return Ok(created);
        }
        let expires_at = now.saturating_add(self.lifetime);
        Ok(shared.append(&Append {
            key,
            claim,
            base,
            entries,
            record,
            expires_at,
        }))
    }

    async fn journal(&self, key: &JournalKey, from: u64) -> Result<Vec<JournalEntry>> {
        let shared = self.fresh();
        let run = shared.runs.get(&key.root);
        let journal = run.and_then(|run| run.journals.get(&key.run));
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let rest = journal.and_then(|journal| journal.get(from..));
        Ok(rest.map(<[_]>::to_vec).unwrap_or_default())
    }

    async fn renew(&self, run_id: &RunId, claim: &RunClaim) -> Result<bool> {
        let shared = self.lock();
        let run = shared.runs.get(run_id);
        Ok(run.is_some_and(|run| run.is_held_by(claim)))
    }

    async fn answer(&self, answer: &ToolApprovalResponse) -> Result<AnswerOutcome> {
        let now = (self.clock)();
        let mut shared = self.fresh();
        Ok(match shared.keep_answer(answer, now) {
            None => AnswerOutcome::Kept,
            Some(reason) => AnswerOutcome::Refused(reason),
        })
    }

    async fn answers(&self, run_id: &RunId) -> Result<Vec<ToolApprovalResponse>> {
        let shared = self.fresh();
        let run = shared.runs.get(run_id);
        Ok(run.map(|run| run.answers.clone()).unwrap_or_default())
    }

    async fn forget_answer(&self, request_id: &str) -> Result<bool> {
        let mut shared = self.fresh();
        Ok(shared.forget_answer(request_id))
    }

    async fn list_resumable(&self, limit: usize) -> Result<Vec<RunId>> {
        let shared = self.fresh();
        let runs = shared.in_order().filter(|run| run.is_resumable());
        let ids = runs.map(|run| run.record.run_id.clone());
        Ok(ids.take(limit).collect())
    }

    async fn list_pending(&self, session_id: Option<&str>) -> Result<Vec<PendingRequest>> {
        let shared = self.fresh();
        let runs = shared.in_order().filter(|run| run.is_open_in(session_id));
        let pending = runs.flat_map(|run| {
            let until = u64::try_from(run.expires_at.as_millis()).unwrap_or(u64::MAX);
            let pending = PendingRequest::of(&run.record, |id| run.has_answer(id));
            pending
                .into_iter()
                .map(move |waits| waits.with_run_expiry(until))
        });
        Ok(pending.collect())
    }
}
