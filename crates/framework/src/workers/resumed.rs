//! What came of a run that a worker took up.

use raf_core::{AgentResponse, Error, RunId};

/// A run that a worker took up.
#[derive(Debug)]
#[non_exhaustive]
pub struct ResumedRun {
    /// The run.
    pub run_id: RunId,
    /// What came of it.
    pub progress: RunProgress,
}

/// How far a worker got with a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunProgress {
    /// It is at its end. The response has what this leg added: nothing, where the session had the answer already
    /// and its owner died before the run was closed.
    Finished(AgentResponse),
    /// It waits for the outside; [`AgentResponse::pending`] says for what.
    Waits(AgentResponse),
    /// Somebody else works at it, at its session, or has ended it already.
    Taken,
    /// It failed. Whether it can be taken up again, the store says: what is open is listed again.
    Failed(Error),
}
