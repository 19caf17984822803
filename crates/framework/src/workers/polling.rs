//! A worker that goes on: it looks for open runs again and again until it is told to stop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use raf_core::{CancellationToken, IRunStore, Result, RunId};
use tokio::time::Instant;

use super::{IRunResumer, PassOptions, ResumedRun, RunProgress, resumed};

/// How a worker looks for runs.
///
/// | setting | default |
/// |---|---|
/// | `pass`: how many runs it lists, how many it works at at once | 100, 4 |
/// | `every`: how long it rests between two looks | 1 second |
/// | `longest_rest`: how long a run that failed again and again is left alone at most | 5 minutes |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerOptions {
    /// How many runs it lists, and how many it works at at once.
    pub pass: PassOptions,
    /// How long it rests between two looks.
    pub every: Duration,
    /// How long a run that failed again and again is left alone at most.
    pub longest_rest: Duration,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            pass: PassOptions::default(),
            every: Duration::from_secs(1),
            longest_rest: Duration::from_secs(300),
        }
    }
}

impl WorkerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many runs it lists, and how many it works at at once.
    pub fn with_pass(mut self, pass: PassOptions) -> Self {
        self.pass = pass;
        self
    }

    /// Sets how long it rests between two looks.
    pub fn with_every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets how long a failing run is left alone at most.
    pub fn with_longest_rest(mut self, rest: Duration) -> Self {
        self.longest_rest = rest;
        self
    }
}

/// Goes on with open runs until the token is cancelled: then no further run is begun, those in flight are
/// played to their end or pause, and it returns. Dropping the future stops those too; another worker takes
/// them up when their leases lapse. What came of each run is told to `tell`.
///
/// A run that fails is left alone for a while, twice as long each time. A store that cannot be read is
/// asked again after the next rest.
pub async fn run_worker(
    store: &Arc<dyn IRunStore>,
    resumer: &dyn IRunResumer,
    options: WorkerOptions,
    stop: &CancellationToken,
    mut tell: impl FnMut(&ResumedRun),
) {
    let mut resting = Resting::default();
    let mut held: Vec<RunId> = Vec::new();
    let mut work = FuturesUnordered::new();
    let mut look = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(run) = work.next(), if !work.is_empty() => {
                let run: ResumedRun = run;
                held.retain(|id| *id != run.run_id);
                resting.note(&run, options);
                tell(&run);
            }
            () = tokio::time::sleep_until(look), if work.len() < options.pass.at_once => {
                let room = options.pass.at_once - work.len();
                // The failing ones come first in age: they may not hide the others.
                let limit = options.pass.runs + resting.len() + held.len();
                let begun = held.len();
                match listed(store, limit).await {
                    Ok(open) => {
                        let free = open.into_iter()
                            .filter(|id| !held.contains(id) && !resting.holds(id))
                            .take(room)
                            .collect::<Vec<_>>();
                        for run_id in free {
                            held.push(run_id.clone());
                            work.push(resumed(store, resumer, run_id));
                        }
                    }
                    Err(error) => tracing::warn!(%error, "open runs cannot be listed"),
                }
                // A full list is looked at again as soon as there is room.
                look = if held.len() - begun == room { Instant::now() } else { Instant::now() + options.every };
            }
        }
    }
    while let Some(run) = work.next().await {
        tell(&run);
    }
}

async fn listed(store: &Arc<dyn IRunStore>, limit: usize) -> Result<Vec<RunId>> {
    store.expire().await?;
    store.list_resumable(limit).await
}

/// Runs that failed, and until when they are left alone.
#[derive(Debug, Default)]
struct Resting(HashMap<RunId, (u32, Instant)>);

impl Resting {
    fn note(&mut self, run: &ResumedRun, options: WorkerOptions) {
        if !matches!(run.progress, RunProgress::Failed(_)) {
            self.0.remove(&run.run_id);
            return;
        }
        let times = self.0.get(&run.run_id).map_or(0, |(times, _)| *times);
        let rest = options.every.saturating_mul(1 << times.min(20));
        let until = Instant::now() + rest.min(options.longest_rest);
        self.0.insert(run.run_id.clone(), (times + 1, until));
    }

    fn holds(&self, run_id: &RunId) -> bool {
        let until = self.0.get(run_id).map(|(_, until)| *until);
        until.is_some_and(|until| until > Instant::now())
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
