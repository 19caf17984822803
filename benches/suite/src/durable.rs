//! Runs whose steps are kept in SQLite: what the journal costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use raf_store::SqliteStore;

use crate::runs::{Shape, run_in};

/// What one durable run came to.
#[derive(Clone, Copy, Debug)]
pub struct StepCost {
    /// From its first step to its end, the opening of the store apart.
    pub time: Duration,
    /// Bytes that the process handed to the system meanwhile: the file of the database, its log and
    /// the log's copying back. 0 where the system does not tell.
    pub bytes: u64,
}

/// Runs so many rounds of two calls behind so many messages, each step kept in a new database with
/// default options.
pub fn durable_run(history: u32, rounds: u32) -> StepCost {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(folder.path().join("runs.db")).expect("a store");
    let shape = Shape::default().history(history).rounds(rounds);
    let (before, start) = (bytes_written(), Instant::now());
    run_in(&shape, Some(Arc::new(store)));
    StepCost {
        time: start.elapsed(),
        bytes: bytes_written() - before,
    }
}

fn bytes_written() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let written = counters
        .lines()
        .find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
