//! What was seen over all legs of a case: who was asked what, what was answered, what ran.

use std::collections::BTreeMap;

use raf_core::{
    AgentResponseUpdate as Update, ApprovalRequest, RunId, ToolApprovalResponse, Usage,
};
use raf_testing::{RecordedCall, ToolLog};

use super::leg::{Labels, Leg, words};
use super::watch::SeenRequest;

/// What an update says, at whatever depth.
fn innermost(update: &Update) -> &Update {
    match update {
        Update::Nested { nested, .. } => innermost(&nested.update),
        update => update,
    }
}

/// What was seen over all legs of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// The requests that were announced, in order.
    pub(crate) asked: Vec<ApprovalRequest>,
    /// Request id and call label of everything that was asked of the outside, in order.
    names: Vec<(String, String)>,
    pub(crate) labels: Labels,
    pub(crate) answers: Vec<ToolApprovalResponse>,
    pub(crate) entries: Vec<RecordedCall>,
    /// The logs of the tools that are gated, and whose gate nothing opens unasked.
    pub(crate) gated_logs: Vec<ToolLog>,
    /// The runs, and what each model request of them has cost.
    pub(crate) runs: BTreeMap<RunId, Vec<Usage>>,
    /// What each model request of the runs nested in them has cost.
    pub(crate) nested: BTreeMap<RunId, Vec<Usage>>,
}

impl Ledger {
    /// Takes a leg in, and puts its events into words; says what is wrong with what it asks.
    pub(crate) fn take(&mut self, leg: &mut Leg, answers: &[ToolApprovalResponse]) -> Vec<String> {
        let mut faults = Vec::new();
        self.answers.extend_from_slice(answers);
        self.entries
            .extend(leg.entries.iter().map(|(_, entry)| entry.clone()));
        for update in leg.seen.items.iter().flatten() {
            match innermost(update) {
                Update::ToolApprovalRequest { request } => {
                    self.ask(&request.request_id, &request.call_id, &mut faults);
                    self.asked.push((**request).clone());
                }
                Update::ToolInterrupted {
                    occurrence,
                    interrupt,
                } => {
                    let pending = leg.pending();
                    let asks = Some(interrupt.request_id.as_str());
                    let call = pending
                        .iter()
                        .find(|call| call.request_id().map(AsRef::as_ref) == asks);
                    let label = call
                        .map_or_else(|| occurrence.to_string(), |call| call.call.id().to_owned());
                    self.ask(&interrupt.request_id, &label, &mut faults);
                }
                _ => {}
            }
        }
        if let Some(run) = leg.run_id() {
            let spent = leg.seen.requests.iter().map(SeenRequest::usage);
            self.runs.entry(run.clone()).or_default().extend(spent);
            let spent = leg.seen.nested.iter().map(SeenRequest::usage);
            self.nested.entry(run).or_default().extend(spent);
        }
        leg.events = leg
            .seen
            .items
            .iter()
            .map(|item| words(item, &self.labels))
            .collect();
        faults
    }

    fn ask(&mut self, id: &str, label: &str, faults: &mut Vec<String>) {
        if self.names.iter().any(|(known, _)| known == id) {
            faults.push(format!(
                "E4: the request about '{label}' is announced again"
            ));
        }
        self.names.push((id.to_owned(), label.to_owned()));
        self.labels.name(id, label);
    }

    /// The id of the request about the call with this label: the last, or with `@n` the n-th.
    pub(crate) fn request_of(&self, label: &str) -> Option<String> {
        let (label, number) = match label.rsplit_once('@') {
            Some((label, number)) => (label, number.parse::<usize>().ok()),
            None => (label, None),
        };
        let mut names = self.names.iter().filter(|(_, own)| own == label);
        let found = match number {
            Some(number) => names.nth(number.checked_sub(1)?),
            None => names.next_back(),
        };
        found.map(|(id, _)| id.clone())
    }

    /// A text without the ids that are random.
    pub(crate) fn without_ids(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (id, label) in &self.names {
            line = line.replace(id.as_str(), &format!("<request {label}>"));
        }
        for run in self.runs.keys() {
            line = line.replace(run.as_str(), "<run>");
        }
        line
    }
}
