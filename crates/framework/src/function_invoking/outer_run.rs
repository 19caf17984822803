//! What a run lends to runs that are nested in its calls: its counters, its store, its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raf_core::{ClaimWatch, IRunStore, RunId};
use tokio::time::Instant;

/// What a run gives to the bodies of its agent-backed tools, in the extensions of their context.
#[derive(Debug)]
pub(crate) struct OuterRun {
    pub(crate) allowance: Arc<Allowance>,
    pub(crate) store: Arc<dyn IRunStore>,
    /// Set if the run is durable: so are runs within it.
    pub(crate) durable: Option<DurableRun>,
    pub(crate) session_id: Option<String>,
}

/// The outermost run, beside whose journal those of runs nested in it are kept.
#[derive(Clone, Debug)]
pub(crate) struct DurableRun {
    pub(crate) root: RunId,
    /// Its store.
    pub(crate) store: Arc<dyn IRunStore>,
    /// The hold of its leg, which fences all of it.
    pub(crate) claim: ClaimWatch,
}

/// Says to a loop that its run is nested in a call, in the options of that run.
#[derive(Clone, Debug)]
pub(crate) struct NestedIn {
    /// The id that the run gets.
    pub(crate) run_id: RunId,
    /// The run around it.
    pub(crate) parent: RunId,
    /// The outermost run, if it is durable.
    pub(crate) durable: Option<DurableRun>,
    /// What it may use.
    pub(crate) allowance: Arc<Allowance>,
}

/// What nested runs may use of the limits of the runs around them (contract F5). Bodies run at the
/// same time: what one takes, the others lack.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// The calls that are left; unset is no limit of this run's own.
    calls: Option<AtomicU32>,
    taken: AtomicU32,
    until: Option<Instant>,
    outer: Option<Arc<Self>>,
}

impl Allowance {
    /// What a run allows: so many calls, until then, within what runs around it allow.
    pub(crate) fn new(
        calls: Option<u32>,
        until: Option<Instant>,
        outer: Option<Arc<Self>>,
    ) -> Self {
        Self {
            calls: calls.map(AtomicU32::new),
            taken: AtomicU32::new(0),
            until,
            outer,
        }
    }

    /// One that only counts what is taken.
    pub(crate) fn counting(outer: Option<Arc<Self>>) -> Self {
        Self::new(None, None, outer)
    }

    /// Takes up to so many calls, at every level; says how many.
    pub(crate) fn take(&self, wanted: u32) -> u32 {
        let mut granted = wanted;
        if let Some(calls) = &self.calls {
            let left = calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                Some(left.saturating_sub(wanted))
            });
            granted = granted.min(left.unwrap_or_default());
        }
        if let Some(outer) = &self.outer {
            let given = outer.take(granted);
            self.give_back_own(granted - given);
            granted = given;
        }
        self.taken.fetch_add(granted, Ordering::SeqCst);
        granted
    }

    /// Gives calls back that were not made.
    pub(crate) fn give_back(&self, calls: u32) {
        self.taken.fetch_sub(calls, Ordering::SeqCst);
        self.give_back_own(calls);
        if let Some(outer) = &self.outer {
            outer.give_back(calls);
        }
    }

    fn give_back_own(&self, calls: u32) {
        if let Some(left) = &self.calls {
            left.fetch_add(calls, Ordering::SeqCst);
        }
    }

    /// The calls that were made.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Whether a run around has worked for as long as it may.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
            || self
                .outer
                .as_ref()
                .is_some_and(|outer| outer.is_out_of_time())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Allowance;

    #[test]
    fn f5_what_is_taken_below_is_taken_at_every_level() {
        let top = Arc::new(Allowance::new(Some(5), None, None));
        let left = Arc::new(Allowance::new(Some(10), None, Some(Arc::clone(&top))));
        let right = Allowance::counting(Some(Arc::clone(&top)));
        assert_eq!(left.take(3), 3);
        assert_eq!(right.take(4), 2);
        assert_eq!(left.take(1), 0);
        right.give_back(1);
        assert_eq!(left.take(9), 1);
        assert_eq!((top.taken(), left.taken(), right.taken()), (5, 4, 1));
        left.give_back(4);
        assert_eq!(top.take(9), 4);
    }
}
