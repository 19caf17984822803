//! Which runs a store knew and has no record of any more.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use crate::identity::RunId;

/// How many runs are remembered; the oldest give way.
const MAX_RUNS: usize = 100_000;

/// The ids of runs whose records are gone, for a while.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    runs: HashSet<RunId>,
    /// With the end of their time, by age.
    order: VecDeque<(RunId, Duration)>,
}

impl Tombstones {
    pub(super) fn add(&mut self, run_id: &RunId, expires_at: Duration) {
        if !self.runs.insert(run_id.clone()) {
            return;
        }
        self.order.push_back((run_id.clone(), expires_at));
        if self.order.len() > MAX_RUNS {
            self.forget_oldest();
        }
    }

    pub(super) fn has(&self, run_id: &RunId) -> bool {
        self.runs.contains(run_id)
    }

    pub(super) fn expire(&mut self, now: Duration) {
        while self
            .order
            .front()
            .is_some_and(|(_, expires_at)| *expires_at <= now)
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((run_id, _)) = self.order.pop_front() {
            self.runs.remove(&run_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{MAX_RUNS, Tombstones};
    use crate::identity::RunId;

    #[test]
    fn tombstones_are_bounded_and_expire() {
        let mut tombstones = Tombstones::default();
        let run = |number: usize| RunId::from(number.to_string().as_str());
        for number in 0..=MAX_RUNS {
            tombstones.add(&run(number), Duration::from_secs(9));
        }
        assert!(!tombstones.has(&run(0)));
        assert!(tombstones.has(&run(1)) && tombstones.has(&run(MAX_RUNS)));
        tombstones.expire(Duration::from_secs(9));
        assert!(!tombstones.has(&run(MAX_RUNS)));
        assert!(tombstones.order.is_empty() && tombstones.runs.is_empty());
    }
}
