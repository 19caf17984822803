//! A run's record as the columns that a store looks at, and its JSON text.

use raf_core::{Error, Result, RunRecord, Settlement};

/// What is written of a record.
#[derive(Debug)]
pub(crate) struct RecordRow {
    pub(crate) json: String,
    pub(crate) answerable_until: Option<i64>,
    pub(crate) request_ids: Vec<String>,
    /// Of these requests, kept answers are done with.
    pub(crate) settled: Vec<String>,
}

impl RecordRow {
    /// A record as it is written at a revision.
    pub(crate) fn new(record: &RunRecord, revision: u64) -> Result<Self> {
        let mut written = record.clone();
        written.revision = revision;
        let settled = |id: &&str| record.settlement(id).is_some();
        let until = record
            .answerable_until_ms()
            .filter(|_| !record.closed && !record.working);
        Ok(Self {
            json: written.to_json()?,
            answerable_until: until.and_then(|until| i64::try_from(until).ok()),
            request_ids: record.request_ids().map(str::to_owned).collect(),
            settled: record
                .request_ids()
                .filter(settled)
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// A count as a column holds it.
pub(crate) fn column(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| Error::misuse("a count is beyond what a store can hold"))
}

/// A column's count.
pub(crate) fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// A record whose time is over, closed as such.
pub(crate) fn expired(mut record: RunRecord) -> RunRecord {
    record.close(raf_core::ClosedReason::Expired);
    debug_assert!(record.request_ids().all(|id| matches!(
        record.settlement(id),
        Some(Settlement::Answered | Settlement::Closed(_))
    )));
    record
}
