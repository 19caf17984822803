//! Which runs and sessions this process holds: a claim that was dropped is noticed at once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use raf_core::{ClaimWatch, RunClaim, RunId};

/// What this process holds in one store.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    claims: Mutex<HashMap<RunId, HeldRun>>,
    /// Sessions, each with the owner id of its lease.
    leases: Mutex<HashMap<String, String>>,
}

/// A claim of this process on a run.
#[derive(Clone, Debug)]
pub(crate) struct HeldRun {
    pub(crate) owner: String,
    pub(crate) fence: u64,
    watch: ClaimWatch,
}

impl Holds {
    /// Notes that a claim holds a run.
    pub(crate) fn hold(&self, run_id: &RunId, claim: &RunClaim, fence: u64) {
        claim.set_fence(run_id, fence);
        let held = HeldRun {
            owner: claim.owner().to_owned(),
            fence,
            watch: claim.watch(),
        };
        lock(&self.claims).insert(run_id.clone(), held);
    }

    /// Notes that a claim let a run go.
    pub(crate) fn let_go(&self, run_id: &RunId, claim: &RunClaim) {
        let mut claims = lock(&self.claims);
        if claims.get(run_id).is_some_and(|held| held.watch.is(claim)) {
            claims.remove(run_id);
        }
    }

    /// The claims that were dropped without being released. They stay noted until
    /// [`forget_dead`](Self::forget_dead).
    pub(crate) fn dead(&self) -> Vec<(RunId, HeldRun)> {
        self.claims_where(|held| !held.watch.is_live())
    }

    /// The claims that somebody has still.
    pub(crate) fn live(&self) -> Vec<(RunId, HeldRun)> {
        self.claims_where(|held| held.watch.is_live())
    }

    /// Forgets claims that were dropped, and are released by now.
    pub(crate) fn forget_dead(&self, dead: &[(RunId, HeldRun)]) {
        let mut claims = lock(&self.claims);
        for (run_id, gone) in dead {
            if claims
                .get(run_id)
                .is_some_and(|held| held.owner == gone.owner && held.fence == gone.fence)
            {
                claims.remove(run_id);
            }
        }
    }

    fn claims_where(&self, fits: impl Fn(&HeldRun) -> bool) -> Vec<(RunId, HeldRun)> {
        let claims = lock(&self.claims);
        let fitting = claims.iter().filter(|(_, held)| fits(held));
        fitting
            .map(|(run_id, held)| (run_id.clone(), held.clone()))
            .collect()
    }

    /// Notes that this process has a session's lease.
    pub(crate) fn lease(&self, session_id: &str, owner: &str) {
        lock(&self.leases).insert(session_id.to_owned(), owner.to_owned());
    }

    /// Notes that it let the lease go.
    pub(crate) fn end_lease(&self, session_id: &str, owner: &str) {
        let mut leases = lock(&self.leases);
        if leases.get(session_id).is_some_and(|held| held == owner) {
            leases.remove(session_id);
        }
    }

    /// Under which lease this process writes to a session.
    pub(crate) fn lease_of(&self, session_id: &str) -> Option<String> {
        lock(&self.leases).get(session_id).cloned()
    }

    /// All leases of this process.
    pub(crate) fn leases(&self) -> Vec<(String, String)> {
        let leases = lock(&self.leases);
        let pairs = leases.iter();
        pairs
            .map(|(id, owner)| (id.clone(), owner.clone()))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
