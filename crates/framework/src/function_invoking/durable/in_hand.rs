//! What a store failed to keep stays in hand, so that the next leg of the run saves it first and runs
//! no body again (contract I6).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use raf_core::{IRunStore, Occurrence, RunId};

use super::value::Outcome;
use crate::function_invoking::leg::Leg;

/// Runs of which something is in hand at most: the oldest gives way.
const MAX_RUNS: usize = 1000;

/// What a loop has in hand, for all its runs.
#[derive(Debug, Default)]
pub(in crate::function_invoking) struct InHand(Mutex<VecDeque<Unsaved>>);

/// What a store lacks of one run.
#[derive(Debug)]
pub(super) struct Unsaved {
    run_id: RunId,
    /// A run of the same name in another store is another run.
    store: Weak<dyn IRunStore>,
    /// The fence under which it came to be.
    fence: Option<u64>,
    /// Outcomes that could not be saved, with their round.
    pub(super) outcomes: Vec<(u32, Outcome)>,
    /// Calls that may be recorded as started and whose body was not entered.
    pub(super) not_entered: Vec<Occurrence>,
}

impl Unsaved {
    fn is_of(&self, run_id: &RunId, store: &Arc<dyn IRunStore>) -> bool {
        let same = |own: Arc<dyn IRunStore>| Arc::ptr_eq(&own, store);
        self.run_id == *run_id && self.store.upgrade().is_some_and(same)
    }

    /// Whether nobody has held the run in between: else bodies may have been entered elsewhere.
    pub(super) fn is_next(&self, leg: &Leg) -> bool {
        let own = self.fence.and_then(|fence| fence.checked_add(1));
        own.is_some() && own == fence(leg, &self.run_id)
    }
}

/// The fence under which a leg writes: that of the outermost run, if it is nested in one.
fn fence(leg: &Leg, run_id: &RunId) -> Option<u64> {
    match &leg.root {
        Some(root) => leg.durable_run().claim.upgrade()?.fence(root),
        None => leg.claim.fence(run_id),
    }
}

impl InHand {
    fn with<T>(&self, look: impl FnOnce(&mut VecDeque<Unsaved>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what there is of a run.
    fn take(&self, run_id: &RunId, store: &Arc<dyn IRunStore>) -> Option<Unsaved> {
        self.with(|runs| {
            let place = runs.iter().position(|run| run.is_of(run_id, store))?;
            runs.remove(place)
        })
    }
}

/// Takes what there is of a run that the leg is to go on with.
pub(super) fn take(leg: &Leg, run_id: &RunId) -> Option<Unsaved> {
    leg.in_hand.take(run_id, &leg.durable_run().store)
}

/// Keeps something of the leg's run in hand.
pub(super) fn hold(leg: &Leg, run_id: &RunId, note: impl FnOnce(&mut Unsaved)) {
    let store = leg.durable_run().store;
    let taken = leg.in_hand.take(run_id, &store);
    let mut unsaved = taken.unwrap_or_else(|| Unsaved {
        run_id: run_id.clone(),
        store: Arc::downgrade(&store),
        fence: None,
        outcomes: Vec::new(),
        not_entered: Vec::new(),
    });
    unsaved.fence = fence(leg, run_id);
    note(&mut unsaved);
    leg.in_hand.with(|runs| {
        runs.retain(|run| run.store.strong_count() > 0);
        if runs.len() >= MAX_RUNS {
            runs.pop_front();
        }
        runs.push_back(unsaved);
    });
}

/// Keeps an outcome in hand that could not be saved.
pub(in crate::function_invoking) fn keep_in_hand(leg: &Leg, round: u32, outcome: Outcome) {
    hold(leg, &leg.run.id, |unsaved| {
        unsaved.outcomes.push((round, outcome));
    });
}

/// Bodies that may be recorded as started were not entered.
pub(in crate::function_invoking) fn not_entered(
    leg: &Leg,
    calls: impl IntoIterator<Item = Occurrence>,
) {
    hold(leg, &leg.run.id, |unsaved| {
        unsaved.not_entered.extend(calls);
    });
}

/// Drops what is in hand of a run that is at its end.
pub(in crate::function_invoking) fn forget(leg: &Leg) {
    drop(take(leg, &leg.run.id));
}
