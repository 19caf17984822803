//! Workers: any process goes on with runs whose owner died, or whose answers were given (contract I7, I8,
//! E8).
//!
//! Reading order: `resumed` is what came of a run, `resumer` who goes on with one, `polling` the form that
//! does so for ever.

mod polling;
mod resumed;
mod resumer;

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{Error, ErrorKind, IRunStore, Result, RunId, ToolApprovalResponse};

pub use self::polling::{WorkerOptions, run_worker};
pub use self::resumed::{ResumedRun, RunProgress};
pub use self::resumer::{AgentResumer, ClientResumer, IRunResumer};

/// How many runs one pass looks at, and how many it works at at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassOptions {
    /// Runs of one pass, oldest first. Default: 100.
    pub runs: usize,
    /// Runs at once. Default: 4.
    pub at_once: usize,
}

impl Default for PassOptions {
    fn default() -> Self {
        Self {
            runs: 100,
            at_once: 4,
        }
    }
}

impl PassOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many runs one pass looks at.
    pub fn with_runs(mut self, runs: usize) -> Self {
        self.runs = runs;
        self
    }

    /// Sets how many runs are worked at at once; at least one.
    pub fn with_at_once(mut self, at_once: usize) -> Self {
        self.at_once = at_once.max(1);
        self
    }
}

/// Goes on, once, with each open run that nobody holds and that has something to do: a leg in flight whose
/// owner died, or answers that the store keeps. Says what came of each, in the order in which they ended.
///
/// Any number of processes may do so at once: a run that another one took first is
/// [`RunProgress::Taken`]. A run that fails does not stop the others. Nothing is detached: dropping the
/// future stops the work, and what was in flight is resumable again.
///
/// # Errors
/// The store, if the list cannot be read.
pub async fn resume_open_runs(
    store: &Arc<dyn IRunStore>,
    resumer: &dyn IRunResumer,
    options: PassOptions,
) -> Result<Vec<ResumedRun>> {
    // What is expired is settled as such: no answer wakes it up again.
    store.expire().await?;
    let open = store.list_resumable(options.runs).await?;
    let work = open
        .into_iter()
        .map(|run_id| resumed(store, resumer, run_id));
    Ok(futures::stream::iter(work)
        .buffer_unordered(options.at_once.max(1))
        .collect()
        .await)
}

/// Goes on with one run, and says what came of it.
async fn resumed(
    store: &Arc<dyn IRunStore>,
    resumer: &dyn IRunResumer,
    run_id: RunId,
) -> ResumedRun {
    let progress = match progress(store, resumer, &run_id).await {
        Ok(progress) => progress,
        Err(error) => RunProgress::Failed(error),
    };
    ResumedRun { run_id, progress }
}

async fn progress(
    store: &Arc<dyn IRunStore>,
    resumer: &dyn IRunResumer,
    run_id: &RunId,
) -> Result<RunProgress> {
    // The leg looks at all of these. What comes meanwhile is for the next one.
    let answers = store.answers(run_id).await?;
    match resumer.resume(store, run_id).await {
        Ok(response) if response.pending.is_empty() => Ok(RunProgress::Finished(response)),
        Ok(response) => {
            take_back(store, run_id, &answers).await;
            Ok(RunProgress::Waits(response))
        }
        Err(error) => match error.kind() {
            ErrorKind::BusySession => Ok(RunProgress::Taken),
            ErrorKind::ApprovalRefused => {
                take_back(store, run_id, &answers).await;
                Err(error)
            }
            // It came to its end between the list and the claim.
            ErrorKind::Misuse => match store.load(run_id).await {
                Ok(Some(record)) if record.closed => Ok(RunProgress::Taken),
                _ => Err(error),
            },
            _ => Err(error),
        },
    }
}

/// Of these answers, those that are still kept fitted nothing: the leg refused them. They are taken back:
/// what they were for can be answered again, and the run is not taken up for them for ever.
async fn take_back(store: &Arc<dyn IRunStore>, run_id: &RunId, answers: &[ToolApprovalResponse]) {
    let taken_back = async {
        let kept = store.answers(run_id).await?;
        for answer in answers.iter().filter(|answer| kept.contains(answer)) {
            tracing::warn!(run = %run_id, request = %answer.request_id, "an answer does not fit: it is taken back");
            store.forget_answer(&answer.request_id).await?;
        }
        Ok::<(), Error>(())
    };
    if let Err(error) = taken_back.await {
        tracing::warn!(%error, run = %run_id, "refused answers could not be taken back");
    }
}
