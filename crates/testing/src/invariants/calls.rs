//! The life of each call in a stream: start < pieces < end < body starts < progress < outcome.

use std::collections::{BTreeMap, HashSet};

use raf_core::{
    MessageStatus, Occurrence, PendingCall, ToolCall, ToolErrorClass, ToolOutcome, ToolResult,
};

#[derive(Default)]
pub(super) struct Calls {
    /// Of the open message: whether the call at each position has ended, and as what.
    open: BTreeMap<u32, Option<ToolCall>>,
    /// The calls of each message that ended, and the round they turned out to be.
    batches: Vec<Batch>,
    started: HashSet<Key>,
    settled: BTreeMap<Key, usize>,
    asked: HashSet<String>,
}

/// An occurrence, and whether it was asked for in this leg: what an earlier leg left open is settled
/// before this one asks for calls, and may be of an earlier run, whose occurrences are the same.
type Key = (bool, Occurrence);

struct Batch {
    calls: BTreeMap<u32, ToolCall>,
    round: Option<u32>,
}

impl Calls {
    pub(super) fn message_starts(&mut self) {
        self.open.clear();
    }

    pub(super) fn call_starts(&mut self, index: usize, position: u32, faults: &mut Vec<String>) {
        if self.open.insert(position, None).is_some() {
            faults.push(format!("item {index}: call {position} starts twice"));
        }
    }

    pub(super) fn call_goes_on(&mut self, index: usize, position: u32, faults: &mut Vec<String>) {
        if self.open.get(&position) != Some(&None) {
            faults.push(format!(
                "item {index}: an argument piece of call {position}, which is not open"
            ));
        }
    }

    pub(super) fn call_ends(
        &mut self,
        index: usize,
        position: u32,
        call: &ToolCall,
        faults: &mut Vec<String>,
    ) {
        if self.open.insert(position, Some(call.clone())) != Some(None) {
            faults.push(format!(
                "item {index}: call {position} ends without a start, or twice"
            ));
        }
    }

    pub(super) fn message_ends(
        &mut self,
        index: usize,
        status: MessageStatus,
        faults: &mut Vec<String>,
    ) {
        let mut calls = BTreeMap::new();
        for (position, call) in std::mem::take(&mut self.open) {
            match call {
                Some(call) => {
                    calls.insert(position, call);
                }
                None if status == MessageStatus::Complete => faults.push(format!(
                    "item {index}: the message is complete, yet call {position} has not ended"
                )),
                None => {}
            }
        }
        // A call's position is its place among the calls that are kept.
        let calls: BTreeMap<u32, ToolCall> = (0..).zip(calls.into_values()).collect();
        if !calls.is_empty() {
            self.batches.push(Batch { calls, round: None });
        }
    }

    pub(super) fn reset(&mut self) {
        self.open.clear();
    }

    pub(super) fn body_starts(
        &mut self,
        index: usize,
        occurrence: Occurrence,
        id: &str,
        faults: &mut Vec<String>,
    ) {
        self.must_be_known(index, occurrence, id, faults);
        let key = self.key(occurrence);
        if !self.started.insert(key) {
            faults.push(format!("item {index}: {occurrence} is started twice"));
        }
        if self.settled.contains_key(&key) {
            faults.push(format!(
                "item {index}: {occurrence} is started after its outcome"
            ));
        }
    }

    /// The body asked the outside and is over: with an answer it is started again.
    pub(super) fn body_is_interrupted(
        &mut self,
        index: usize,
        occurrence: Occurrence,
        faults: &mut Vec<String>,
    ) {
        let key = self.key(occurrence);
        if !self.started.remove(&key) || self.settled.contains_key(&key) {
            faults.push(format!(
                "item {index}: an interrupt of {occurrence}, whose body is not running"
            ));
        }
    }

    pub(super) fn body_goes_on(
        &mut self,
        index: usize,
        occurrence: Occurrence,
        faults: &mut Vec<String>,
    ) {
        let key = self.key(occurrence);
        if !self.started.contains(&key) || self.settled.contains_key(&key) {
            faults.push(format!(
                "item {index}: progress of {occurrence}, whose body is not running"
            ));
        }
    }

    pub(super) fn call_is_settled(
        &mut self,
        index: usize,
        occurrence: Occurrence,
        result: &ToolResult,
        faults: &mut Vec<String>,
    ) {
        self.must_be_known(index, occurrence, result.call_id(), faults);
        let key = self.key(occurrence);
        if let Some(first) = self.settled.insert(key, index) {
            faults.push(format!(
                "item {index}: a second outcome of {occurrence}; the first is item {first}"
            ));
        }
        if result.occurrence().is_some_and(|own| own != occurrence) {
            faults.push(format!(
                "item {index}: the result of {occurrence} says that it is of another call"
            ));
        }
        if self.started.contains(&key) && says_not_entered(result.outcome()) {
            faults.push(format!(
                "item {index}: {occurrence} was started, yet its outcome is {:?}",
                result.outcome()
            ));
        }
        if result.content().is_empty() {
            faults.push(format!("item {index}: the result of {occurrence} is empty"));
        }
    }

    pub(super) fn is_asked(&mut self, index: usize, request: &str, faults: &mut Vec<String>) {
        if !self.asked.insert(request.to_owned()) {
            faults.push(format!(
                "item {index}: the request '{request}' is announced twice"
            ));
        }
    }

    /// Each call that was kept has its outcome, unless it waits for the outside.
    pub(super) fn must_be_settled(&self, pending: &[PendingCall], faults: &mut Vec<String>) {
        for batch in &self.batches {
            for (position, call) in &batch.calls {
                let settled = batch.round.is_some_and(|round| {
                    let occurrence = Occurrence::new(round, *position);
                    self.settled.contains_key(&(true, occurrence))
                });
                // What waits within a nested run is named by that run's own call.
                let within = |waiting: &PendingCall| {
                    let mut own = batch.calls.iter();
                    !own.any(|(_, own)| own.id() == waiting.call.id())
                };
                let waits = pending.iter().any(|waiting| {
                    waiting.occurrence.position == *position
                        && batch
                            .round
                            .is_none_or(|round| round == waiting.occurrence.round)
                        && (waiting.call.id() == call.id() || within(waiting))
                });
                if settled == waits {
                    faults.push(format!(
                        "the call '{}' of '{}' {}",
                        call.id(),
                        call.name(),
                        if settled {
                            "has its outcome, and is pending too"
                        } else {
                            "has no outcome, and is not pending"
                        }
                    ));
                }
            }
        }
        for key @ (_, occurrence) in &self.started {
            let waits = pending.iter().any(|call| call.occurrence == *occurrence);
            if !self.settled.contains_key(key) && !waits {
                faults.push(format!(
                    "{occurrence} was started, and has no outcome at the end"
                ));
            }
        }
    }

    fn key(&self, occurrence: Occurrence) -> Key {
        (!self.batches.is_empty(), occurrence)
    }

    /// An occurrence belongs to a message of this leg, or to an earlier leg.
    fn must_be_known(
        &mut self,
        index: usize,
        occurrence: Occurrence,
        id: &str,
        faults: &mut Vec<String>,
    ) {
        let of_round = |batch: &&mut Batch| batch.round == Some(occurrence.round);
        let known = self.batches.iter_mut().find(of_round);
        let batch = match known {
            Some(batch) => Some(batch),
            None => self.batches.iter_mut().find(|batch| batch.round.is_none()),
        };
        // Without a message that it could belong to it was asked for in an earlier leg.
        let Some(batch) = batch else { return };
        batch.round = Some(occurrence.round);
        match batch.calls.get(&occurrence.position) {
            None => faults.push(format!(
                "item {index}: {occurrence} is of no call of its message"
            )),
            Some(call) if call.id() != id => faults.push(format!(
                "item {index}: {occurrence} is call '{}', not '{id}'",
                call.id()
            )),
            Some(_) => {}
        }
    }
}

/// Whether an outcome rules out that the body was entered. A body may still find arguments invalid
/// that its schema let through.
fn says_not_entered(outcome: ToolOutcome) -> bool {
    matches!(
        outcome,
        ToolOutcome::Denied
            | ToolOutcome::Skipped { .. }
            | ToolOutcome::Cancelled { started: false }
            | ToolOutcome::Error(
                ToolErrorClass::UnknownTool | ToolErrorClass::TimedOut { started: false }
            )
    )
}
