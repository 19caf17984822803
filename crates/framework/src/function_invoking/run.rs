//! What lives as long as a run, and what may stop it.

use std::time::Duration;

use raf_core::{FinishReason, RoundUsage, RunId, RunRecord, SkipReason, ToolOutcome, Usage};
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::no_progress::NoProgress;

/// Why work stops although nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stop {
    /// The run's token or flag says so.
    Cancelled,
    /// The leg's deadline passed.
    Deadline,
}

impl Stop {
    /// The outcome of a call that was not started when it came.
    pub(super) const fn not_started(self) -> ToolOutcome {
        match self {
            Self::Cancelled => ToolOutcome::Cancelled { started: false },
            Self::Deadline => ToolOutcome::skipped(SkipReason::Limit),
        }
    }
}

/// What lives as long as the run: across pauses.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) counters: Counters,
    pub(super) no_progress: NoProgress,
    /// Calls that were denied in this turn: tool and canonical arguments.
    pub(super) denied: Vec<(String, String)>,
    pub(super) usage: Usage,
    pub(super) rounds: Vec<RoundUsage>,
    /// The end that follows behind the batch that waits, whatever comes of it.
    pub(super) batch_end: Option<FinishReason>,
    /// How long earlier legs have worked.
    pub(super) worked: Duration,
    /// The record, once the run has paused: its revision is the store's.
    pub(super) record: Option<Box<RunRecord>>,
}

impl Run {
    pub(super) fn new() -> Self {
        Self {
            id: RunId::random(),
            counters: Counters::default(),
            no_progress: NoProgress::default(),
            denied: Vec::new(),
            usage: Usage::default(),
            rounds: Vec::new(),
            batch_end: None,
            worked: Duration::ZERO,
            record: None,
        }
    }
}
