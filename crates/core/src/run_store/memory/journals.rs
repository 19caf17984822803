//! Journals and kept answers of the in-memory store.

use std::time::Duration;

use super::super::{JournalEntry, JournalKey, RunClaim, WriteOutcome};
use super::shared::{Entry, Shared};
use crate::approval::{RefusalReason, ToolApprovalResponse};
use crate::record::RunRecord;

/// What one append brings.
pub(super) struct Append<'a> {
    pub(super) key: &'a JournalKey,
    pub(super) claim: &'a RunClaim,
    pub(super) base: u64,
    pub(super) entries: &'a [JournalEntry],
    pub(super) record: Option<&'a RunRecord>,
    pub(super) expires_at: Duration,
}

impl Append<'_> {
    fn length(&self) -> u64 {
        self.base + self.entries.len() as u64
    }
}

impl Shared {
    /// Appends to the journal of a run that is there.
    pub(super) fn append(&mut self, append: &Append<'_>) -> WriteOutcome {
        let Some(run) = self.runs.get_mut(&append.key.root) else {
            return WriteOutcome::Conflict;
        };
        if !run.is_held_by(append.claim) {
            return WriteOutcome::ClaimLost;
        }
        let fits = run.length(append.key) == append.base
            && append
                .record
                .is_none_or(|record| record.revision == run.record.revision);
        if !fits {
            return match run.is_repeated(append) {
                true if append.record.is_some() => WriteOutcome::Written(run.record.revision),
                true => WriteOutcome::Written(append.length()),
                false => WriteOutcome::Conflict,
            };
        }
        run.expires_at = append.expires_at;
        let revision = append
            .record
            .and_then(|record| run.write(record, append.expires_at));
        if let Some(record) = append.record {
            self.index(record);
        }
        let written = revision.unwrap_or(append.length());
        self.extend(append.key, append.entries);
        WriteOutcome::Written(written)
    }

    /// Adds entries to a journal.
    pub(super) fn extend(&mut self, key: &JournalKey, entries: &[JournalEntry]) {
        if let Some(run) = self.runs.get_mut(&key.root)
            && !entries.is_empty()
        {
            let journal = run.journals.entry(key.run.clone()).or_default();
            journal.extend_from_slice(entries);
        }
    }

    /// Keeps an answer, or says why not.
    pub(super) fn keep_answer(
        &mut self,
        answer: &ToolApprovalResponse,
        now: Duration,
    ) -> Option<RefusalReason> {
        let run_id = self.requests.get(&answer.request_id);
        let Some(run) = run_id.and_then(|run_id| self.runs.get_mut(run_id)) else {
            return Some(RefusalReason::UnknownRequest);
        };
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if let Some(reason) = run.record.refusal_of(answer, now_ms) {
            return Some(reason);
        }
        if run.has_answer(&answer.request_id) {
            return Some(RefusalReason::AlreadySettled);
        }
        run.answers.push(answer.clone());
        None
    }

    /// Takes an answer back.
    pub(super) fn forget_answer(&mut self, request_id: &str) -> bool {
        let run_id = self.requests.get(request_id);
        let Some(run) = run_id.and_then(|run_id| self.runs.get_mut(run_id)) else {
            return false;
        };
        let before = run.answers.len();
        run.answers.retain(|kept| kept.request_id != request_id);
        run.answers.len() < before
    }

    /// The runs by age.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Entry> {
        self.order.iter().filter_map(|run_id| self.runs.get(run_id))
    }
}

impl Entry {
    pub(super) fn is_open_in(&self, session_id: Option<&str>) -> bool {
        !self.record.closed
            && (session_id.is_none() || self.record.session_id.as_deref() == session_id)
    }

    pub(super) fn is_resumable(&self) -> bool {
        let has_work = self.record.working || !self.answers.is_empty();
        !self.record.closed && !self.is_claimed() && has_work
    }

    pub(super) fn has_answer(&self, request_id: &str) -> bool {
        let mut kept = self.answers.iter();
        kept.any(|kept| kept.request_id == request_id)
    }

    fn length(&self, key: &JournalKey) -> u64 {
        let journal = self.journals.get(&key.run);
        journal.map_or(0, |journal| journal.len() as u64)
    }

    /// Whether the last append is made again as it was.
    fn is_repeated(&self, append: &Append<'_>) -> bool {
        let same_record = append.record.is_none_or(|record| {
            let mut written = record.clone();
            written.revision += 1;
            written == self.record
        });
        let journal = self.journals.get(&append.key.run);
        let journal = journal.map(Vec::as_slice).unwrap_or_default();
        same_record
            && self.length(append.key) == append.length()
            && journal.ends_with(append.entries)
    }
}
