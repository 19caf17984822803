//! The records of the in-memory store, with what belongs to each.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use super::super::{ApprovalRule, ClaimWatch, JournalEntry, RunClaim};
use super::tombstones::Tombstones;
use crate::approval::{ClosedReason, ToolApprovalResponse};
use crate::identity::RunId;
use crate::record::RunRecord;

#[derive(Default)]
pub(super) struct Shared {
    pub(super) runs: HashMap<RunId, Entry>,
    /// Runs by age.
    pub(super) order: VecDeque<RunId>,
    pub(super) requests: HashMap<String, RunId>,
    pub(super) rules: BTreeMap<String, Vec<ApprovalRule>>,
    pub(super) tombstones: Tombstones,
}

pub(super) struct Entry {
    pub(super) record: RunRecord,
    pub(super) claim: Option<ClaimWatch>,
    pub(super) fence: u64,
    pub(super) expires_at: Duration,
    /// When the last request's time is over, if each has an end.
    answerable_until: Option<Duration>,
    pub(super) journals: HashMap<RunId, Vec<JournalEntry>>,
    pub(super) answers: Vec<ToolApprovalResponse>,
}

impl Shared {
    /// Closes what is expired; forgets closed records after the same time once more.
    pub(super) fn expire(&mut self, now: Duration, lifetime: Duration) -> usize {
        self.tombstones.expire(now);
        let mut closed = 0;
        let mut gone = Vec::new();
        for (run_id, entry) in &mut self.runs {
            if !entry.is_expired(now) {
                continue;
            }
            if entry.record.closed {
                gone.push(run_id.clone());
            } else if !entry.is_claimed() {
                entry.record.close(ClosedReason::Expired);
                entry.answers.clear();
                entry.record.revision += 1;
                entry.expires_at = now.saturating_add(lifetime);
                closed += 1;
            }
        }
        for run_id in gone {
            self.forget(&run_id, now, lifetime);
        }
        closed
    }

    pub(super) fn forget(&mut self, run_id: &RunId, now: Duration, lifetime: Duration) {
        let until = now.saturating_add(lifetime.saturating_mul(2));
        self.tombstones.add(run_id, until);
        if let Some(entry) = self.runs.remove(run_id) {
            for request_id in entry.record.request_ids() {
                self.requests.remove(request_id);
            }
            self.order.retain(|other| other != run_id);
            self.rules.remove(run_id.as_str());
        }
    }

    pub(super) fn make_room(&mut self, max_runs: usize, now: Duration, lifetime: Duration) {
        while self.runs.len() >= max_runs {
            let oldest = |fits: fn(&Entry) -> bool| {
                let mut by_age = self.order.iter();
                by_age.find(|run_id| self.runs.get(*run_id).is_some_and(fits))
            };
            let oldest = oldest(|run| run.record.closed && !run.is_claimed())
                .or_else(|| oldest(|run| !run.is_claimed()))
                .or_else(|| self.order.front());
            let Some(oldest) = oldest.cloned() else {
                return;
            };
            self.forget(&oldest, now, lifetime);
        }
    }

    pub(super) fn index(&mut self, record: &RunRecord) {
        for request_id in record.request_ids() {
            if !self.requests.contains_key(request_id) {
                self.requests
                    .insert(request_id.to_owned(), record.run_id.clone());
            }
        }
    }
}

impl Entry {
    /// A record of a run that nobody holds.
    pub(super) fn new(mut record: RunRecord, expires_at: Duration) -> Self {
        record.revision = 1;
        Self {
            answerable_until: answerable_until(&record),
            record,
            claim: None,
            fence: 0,
            expires_at,
            journals: HashMap::new(),
            answers: Vec::new(),
        }
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.claim.as_ref().is_some_and(ClaimWatch::is_live)
    }

    pub(super) fn is_held_by(&self, claim: &RunClaim) -> bool {
        self.claim.as_ref().is_some_and(|held| held.is(claim))
    }

    pub(super) fn hold(&mut self, claim: &RunClaim) {
        self.fence += 1;
        claim.set_fence(&self.record.run_id, self.fence);
        self.claim = Some(claim.watch());
    }

    /// Writes over the record of the same revision; the revision now.
    pub(super) fn write(&mut self, record: &RunRecord, expires_at: Duration) -> Option<u64> {
        if self.record.revision != record.revision {
            return None;
        }
        self.record = record.clone();
        self.record.revision += 1;
        self.expires_at = expires_at;
        self.answerable_until = answerable_until(record);
        let open = |answer: &ToolApprovalResponse| {
            !record.closed && record.settlement(&answer.request_id).is_none()
        };
        self.answers.retain(open);
        Some(self.record.revision)
    }

    /// Nobody can or will do anything with it any more.
    fn is_expired(&self, now: Duration) -> bool {
        let unanswered = !self.record.closed
            && !self.record.working
            && self.answers.is_empty()
            && self.answerable_until.is_some_and(|until| until <= now);
        self.expires_at <= now || unanswered
    }
}

fn answerable_until(record: &RunRecord) -> Option<Duration> {
    record.answerable_until_ms().map(Duration::from_millis)
}
