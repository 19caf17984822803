//! One leg's hold on a run.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::identity::{RunId, random_hex};

/// One leg's hold on a run. It dies when the leg ends or its stream is dropped.
///
/// A store that is shared between processes knows it by its owner id, and by the fence that the store
/// counts up whenever a claim takes hold of the run: who holds an older fence cannot write.
#[derive(Clone, Debug, Default)]
pub struct RunClaim(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    owner: OnceLock<String>,
    fences: Mutex<Vec<(RunId, u64)>>,
}

impl RunClaim {
    /// A claim that nobody else has.
    pub fn new() -> Self {
        Self::default()
    }

    /// The random id by which stores know it.
    pub fn owner(&self) -> &str {
        self.0.owner.get_or_init(random_hex)
    }

    /// The fence that a store gave it for a run; none if it never held the run.
    pub fn fence(&self, run_id: &RunId) -> Option<u64> {
        let fences = self.0.fences.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fences.iter().find(|(run, _)| run == run_id);
        found.map(|(_, fence)| *fence)
    }

    /// Notes the fence under which it holds a run. For stores.
    pub fn set_fence(&self, run_id: &RunId, fence: u64) {
        let mut fences = self.0.fences.lock().unwrap_or_else(PoisonError::into_inner);
        match fences.iter_mut().find(|(run, _)| run == run_id) {
            Some((_, kept)) => *kept = fence,
            None => fences.push((run_id.clone(), fence)),
        }
    }

    /// A look at it that does not keep it alive. For stores.
    pub fn watch(&self) -> ClaimWatch {
        ClaimWatch(Arc::downgrade(&self.0))
    }
}

/// A look at a [`RunClaim`] that does not keep it alive.
#[derive(Clone, Debug)]
pub struct ClaimWatch(Weak<Held>);

impl ClaimWatch {
    /// The claim itself, if somebody has it still.
    pub fn upgrade(&self) -> Option<RunClaim> {
        self.0.upgrade().map(RunClaim)
    }

    /// Whether somebody has the claim still.
    pub fn is_live(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Whether this is that claim.
    pub fn is(&self, claim: &RunClaim) -> bool {
        std::ptr::eq(Arc::as_ptr(&claim.0), self.0.as_ptr())
    }
}
