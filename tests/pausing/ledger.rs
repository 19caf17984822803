//! What was seen over all legs of a case: who was asked what, what was answered, what ran.

use std::collections::BTreeMap;

use raf_core::{
    AgentResponseUpdate as Update, ApprovalRequest, ChatMessage, PendingCall, RunId,
    ToolApprovalResponse, Usage, WaitsFor,
};
use raf_testing::{RecordedCall, ToolLog};

use super::check;
use crate::leg::Leg;
use crate::watch::SeenRequest;

/// What was seen over all legs of a case.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The requests that were announced, in order.
    pub asked: Vec<ApprovalRequest>,
    /// Request id and call label of everything that was asked of the outside, in order.
    pub names: Vec<(String, String)>,
    /// The answers that were given.
    pub answers: Vec<ToolApprovalResponse>,
    /// The entries of all bodies.
    pub entries: Vec<RecordedCall>,
    /// The logs of the tools that are gated.
    pub(super) gated_logs: Vec<ToolLog>,
    /// The runs, and what each model request of them has cost.
    pub(super) runs: BTreeMap<RunId, Vec<Usage>>,
    /// A leg was dropped: what it cost is not known to every later one.
    pub(super) lost_usage: bool,
}

impl Ledger {
    /// Takes a leg in; says what is wrong with it.
    pub(super) fn take(
        &mut self,
        leg: &Leg,
        answers: &[ToolApprovalResponse],
        conversation: &[ChatMessage],
    ) -> Vec<String> {
        let mut faults = self.take_items(leg, answers);
        let run = leg
            .response
            .as_ref()
            .ok()
            .and_then(|response| response.run_id.clone());
        let run = run.or_else(|| {
            let error = leg.response.as_ref().err()?;
            error.leg()?.run_id.clone()
        });
        if let Some(run) = run {
            let spent = leg.requests().iter().map(SeenRequest::usage);
            self.runs.entry(run).or_default().extend(spent);
        }
        faults.extend(check::check_leg(leg, self, conversation));
        faults
    }

    /// Takes in what was seen of a leg that was dropped.
    pub(super) fn take_dropped(
        &mut self,
        leg: &Leg,
        answers: &[ToolApprovalResponse],
    ) -> Vec<String> {
        self.lost_usage = true;
        let mut faults = self.take_items(leg, answers);
        faults.extend(check::check_dropped(leg, self));
        faults
    }

    fn take_items(&mut self, leg: &Leg, answers: &[ToolApprovalResponse]) -> Vec<String> {
        let mut faults = Vec::new();
        self.answers.extend_from_slice(answers);
        self.entries.extend_from_slice(&leg.entries);
        for update in leg.items().iter().flatten() {
            match update {
                Update::ToolApprovalRequest { request } => {
                    let (id, label) = (request.request_id.clone(), request.call_id.clone());
                    self.ask(id, label, &mut faults);
                    self.asked.push((**request).clone());
                }
                Update::ToolInterrupted {
                    occurrence,
                    interrupt,
                } => {
                    let pending = leg.pending();
                    let label = pending
                        .iter()
                        .find(|call| call.occurrence == *occurrence)
                        .map_or_else(|| occurrence.to_string(), |call| call.call.id().to_owned());
                    self.ask(interrupt.request_id.clone(), label, &mut faults);
                }
                _ => {}
            }
        }
        faults
    }

    fn ask(&mut self, id: String, label: String, faults: &mut Vec<String>) {
        if self.names.iter().any(|(known, _)| *known == id) {
            faults.push(format!(
                "E4: the request about '{label}' is announced again"
            ));
        }
        self.names.push((id, label));
    }

    /// The id of the last request about the call with this label.
    pub fn request_of(&self, call: &str) -> Option<String> {
        let mut names = self.names.iter();
        let found = names.rfind(|(_, label)| label == call);
        found.map(|(id, _)| id.clone())
    }

    /// How often something was asked about the call with this label.
    pub fn times_asked(&self, call: &str) -> usize {
        self.names.iter().filter(|(_, label)| label == call).count()
    }

    /// The labels of the calls that wait, and for what: `c1 approval`, `c2 result`, `c3 data`,
    /// `c4 earlier`.
    pub fn waiting(leg: &Leg) -> Vec<String> {
        leg.pending().iter().map(waits).collect()
    }

    /// The items of a leg in the words of the cases, with `approval_requested c1`,
    /// `approval_refused c1 stale`, `approval_closed c1 superseded` and `interrupted c1`.
    pub fn words(&self, leg: &Leg) -> Vec<String> {
        let words = leg.events().into_iter().zip(leg.items());
        words
            .map(|(word, item)| match item {
                Ok(update) => self.outside_word(update).unwrap_or(word),
                Err(error) => match error.code() {
                    Some(code) => format!("{word} {code}"),
                    None => word,
                },
            })
            .collect()
    }

    /// How many items are in these words.
    pub fn count(&self, leg: &Leg, word: &str) -> usize {
        self.words(leg).iter().filter(|text| *text == word).count()
    }

    /// The items of a leg that speak to the outside, in words.
    pub(super) fn outside_words(&self, leg: &Leg) -> Vec<String> {
        let updates = leg.items().iter().flatten();
        updates
            .filter_map(|update| self.outside_word(update))
            .collect()
    }

    fn outside_word(&self, update: &Update) -> Option<String> {
        let label = |id: &str| {
            let known = self.names.iter().find(|(known, _)| known == id);
            known.map_or("?", |(_, label)| label.as_str())
        };
        Some(match update {
            Update::ToolApprovalRequest { request } => {
                format!("approval_requested {}", request.call_id)
            }
            Update::ToolApprovalRefused { request_id, reason } => {
                format!("approval_refused {} {reason}", label(request_id))
            }
            Update::ToolApprovalClosed { request_id, reason } => {
                let reason = serde_json::to_value(reason).unwrap_or_default();
                let reason = reason.as_str().unwrap_or_default();
                format!("approval_closed {} {reason}", label(request_id))
            }
            Update::ToolInterrupted { interrupt, .. } => {
                format!("interrupted {}", label(&interrupt.request_id))
            }
            _ => return None,
        })
    }

    /// A text without the ids that are random.
    pub(super) fn without_ids(&self, line: &str) -> String {
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

fn waits(call: &PendingCall) -> String {
    let what = match &call.waits_for {
        WaitsFor::Approval(_) => "approval",
        WaitsFor::ToolResult => "result",
        WaitsFor::Data { .. } => "data",
        WaitsFor::EarlierCall => "earlier",
        _ => "something else",
    };
    format!("{} {what}", call.call.id())
}
