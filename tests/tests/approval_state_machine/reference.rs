//! A small model of pausing (contract D2, E2, E3, E4, E5, E7, I3, I4): what a leg must come to. It
//! shares no code with the engine.

use std::collections::{BTreeMap, BTreeSet};

use crate::ops::{CallOp, Tool};
use crate::terms::{Decision, End, Expected, Given, Input, Settled};

/// Where a call of the open batch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has its outcome.
    Done,
    /// Its body was, or may have been, entered in a leg that was dropped.
    Started,
    /// It waits for a yes.
    Yes(String),
    /// It waits for data.
    Data(String),
    /// It waits for the caller's result.
    Result,
}

impl State {
    pub(crate) fn request(&self) -> Option<&str> {
        match self {
            Self::Yes(id) | Self::Data(id) => Some(id),
            _ => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Self::Done | Self::Started)
    }
}

/// A call of the open batch.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) tool: Tool,
    pub(crate) id: String,
    /// What runs; a person may have changed it.
    pub(crate) n: i64,
    /// How often its body was entered.
    pub(crate) attempts: u32,
    pub(crate) state: State,
}

/// The batch that waits.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) run: String,
    pub(crate) round: u32,
    pub(crate) calls: Vec<Call>,
    /// Calls that were denied in this run.
    pub(crate) denied: BTreeSet<(Tool, i64)>,
}

/// What is known of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reference {
    pub(crate) open: Option<Batch>,
    /// The requests that the process knows to be settled.
    pub(crate) settled: BTreeMap<String, Settled>,
}

/// Stands for the id of a request that is yet to be made.
pub(crate) const NEW: &str = "";

impl Reference {
    /// What a leg must come to.
    pub(crate) fn expect(&self, input: &Input) -> Expected {
        let mut leg = Expected {
            end: End::Stop,
            refusals: Vec::new(),
            entries: Vec::new(),
            results: Vec::new(),
            requests: 0,
            pending: Vec::new(),
            closed: Vec::new(),
            answered: None,
            after: self.clone(),
        };
        let Some(mut batch) = leg.after.open.take() else {
            leg.without_record(input);
            return leg;
        };
        let before = batch.clone();
        let mut acted = false;
        let mut ready: BTreeMap<usize, bool> = BTreeMap::new();
        for answer in &input.answers {
            match leg.after.judge(&batch, answer, input.tampered) {
                Ok(None) => {}
                Ok(Some(position)) => {
                    acted = true;
                    leg.after
                        .settled
                        .insert(answer.request.clone(), Settled::Answered);
                    leg.apply(&mut batch, position, answer.decision, &mut ready);
                }
                Err(reason) => leg.refusals.push((answer.request.clone(), reason)),
            }
        }
        acted |= leg.take_results(&before, &mut batch, &input.results);
        leg.answered = Some(batch.clone());
        let unfinished = before.calls.iter().all(|call| !call.state.is_open())
            || before.calls.iter().any(|call| call.state == State::Started);
        if !acted && !input.message && !unfinished {
            if leg.refusals.is_empty() {
                leg.pause(batch);
            } else {
                leg.refuse();
                leg.wait_for(&batch);
                leg.after.open = Some(before);
            }
            return leg;
        }
        for (position, again) in ready {
            leg.enter(&mut batch, position, again);
        }
        for (position, call) in (0..).zip(&mut batch.calls) {
            if call.state == State::Started {
                leg.results.push((batch.round, position, "cancelled"));
                call.state = State::Done;
            }
        }
        if input.message {
            for (position, call) in (0..).zip(&batch.calls) {
                if !call.state.is_open() {
                    continue;
                }
                leg.results
                    .push((batch.round, position, "skipped superseded"));
                if let Some(request) = call.state.request() {
                    leg.closed.push(request.to_owned());
                    if request != NEW {
                        leg.after
                            .settled
                            .insert(request.to_owned(), Settled::Closed);
                    }
                }
            }
            leg.rounds(0, &BTreeSet::new(), &input.replies);
        } else if batch.calls.iter().any(|call| call.state.is_open()) {
            leg.pause(batch);
        } else {
            leg.rounds(batch.round + 1, &batch.denied, &input.replies);
        }
        leg
    }

    /// Why an answer to no open request is refused.
    fn reason(&self, request: &str) -> &'static str {
        match self.settled.get(request) {
            Some(Settled::Answered) => "already_settled",
            Some(Settled::Closed) => "stale",
            None => "unknown_request",
        }
    }

    /// The call that an answer settles, if it decides anything.
    fn judge(
        &self,
        batch: &Batch,
        answer: &Given,
        tampered: Option<usize>,
    ) -> Result<Option<usize>, &'static str> {
        if answer.decision == Decision::Nothing {
            return Ok(None);
        }
        let mut calls = batch.calls.iter();
        let open = calls.position(|call| call.state.request() == Some(&answer.request));
        let Some(position) = open.filter(|_| !self.settled.contains_key(&answer.request)) else {
            return Err(self.reason(&answer.request));
        };
        if tampered == Some(position) || answer.decision == Decision::Mismatch {
            return Err("args_mismatch");
        }
        let data = matches!(batch.calls[position].state, State::Data(_));
        match answer.decision {
            Decision::Malformed => Err("malformed"),
            Decision::No => Ok(Some(position)),
            Decision::Data { .. } if data => Ok(Some(position)),
            Decision::Yes | Decision::Edited(_) if !data => Ok(Some(position)),
            Decision::BadEdit if !data => Err("malformed"),
            _ => Err("wrong_category"),
        }
    }
}

impl Expected {
    /// Nothing is open: every answer is refused; a new message is answered all the same.
    fn without_record(&mut self, input: &Input) {
        for answer in &input.answers {
            if answer.decision != Decision::Nothing {
                let reason = self.after.reason(&answer.request);
                self.refusals.push((answer.request.clone(), reason));
            }
        }
        if self.refusals.is_empty() || input.message {
            self.rounds(0, &BTreeSet::new(), &input.replies);
        } else {
            self.refuse();
        }
    }

    fn refuse(&mut self) {
        let reasons = self.refusals.iter().map(|(_, reason)| *reason);
        self.end = End::Refused(reasons.collect());
    }

    /// What a right answer does to its call.
    fn apply(
        &mut self,
        batch: &mut Batch,
        position: usize,
        decision: Decision,
        ready: &mut BTreeMap<usize, bool>,
    ) {
        let call = &mut batch.calls[position];
        let gate = matches!(call.state, State::Yes(_));
        call.state = State::Done;
        match decision {
            Decision::No => {
                let place = u32::try_from(position).unwrap_or_default();
                self.results.push((batch.round, place, "denied"));
                if gate {
                    batch.denied.insert((call.tool, call.n));
                }
            }
            Decision::Edited(n) => {
                call.n = n;
                ready.insert(position, false);
            }
            Decision::Data { again } => {
                ready.insert(position, again);
            }
            _ => {
                ready.insert(position, false);
            }
        }
    }

    /// Results that the caller gives; whether any settles a call.
    fn take_results(&mut self, before: &Batch, batch: &mut Batch, given: &[String]) -> bool {
        let mut given = given.to_vec();
        let mut acted = false;
        for (position, call) in before.calls.iter().enumerate() {
            let Some(found) = given.iter().position(|label| *label == call.id) else {
                continue;
            };
            match &call.state {
                State::Result => {
                    given.remove(found);
                    batch.calls[position].state = State::Done;
                    acted = true;
                }
                State::Yes(request) | State::Data(request) => {
                    given.remove(found);
                    self.refusals.push((request.clone(), "wrong_category"));
                }
                State::Done | State::Started => {}
            }
        }
        acted
    }

    /// A body is entered: it returns, or asks for data.
    fn enter(&mut self, batch: &mut Batch, position: usize, again: bool) {
        let call = &mut batch.calls[position];
        call.attempts += 1;
        let place = u32::try_from(position).unwrap_or_default();
        self.entries
            .push((batch.round, place, call.attempts, call.n));
        if call.tool.asks() && (call.attempts == 1 || again) {
            call.state = State::Data(NEW.to_owned());
        } else {
            call.state = State::Done;
            self.results.push((batch.round, place, "ok"));
        }
    }

    /// The model is asked until its script ends, or calls wait.
    fn rounds(&mut self, first: u32, denied: &BTreeSet<(Tool, i64)>, replies: &[Vec<CallOp>]) {
        for (round, reply) in (first..).zip(replies) {
            self.requests += 1;
            let mut batch = Batch {
                run: String::new(),
                round,
                calls: Vec::new(),
                denied: denied.clone(),
            };
            for (position, call) in reply.iter().enumerate() {
                let place = u32::try_from(position).unwrap_or_default();
                let mut state = State::Done;
                let asked_before = denied.contains(&(call.tool, call.n));
                let mut runs = false;
                if call.tool == Tool::Declared {
                    state = State::Result;
                } else if call.invalid {
                    self.results.push((round, place, "error invalid_arguments"));
                } else if asked_before {
                    self.results.push((round, place, "denied"));
                } else if call.tool.is_gated() {
                    state = State::Yes(NEW.to_owned());
                } else {
                    runs = true;
                }
                batch.calls.push(Call {
                    tool: call.tool,
                    id: call.id.to_owned(),
                    n: call.n,
                    attempts: 0,
                    state,
                });
                if runs {
                    self.enter(&mut batch, position, false);
                }
            }
            if batch.calls.iter().any(|call| call.state.is_open()) {
                self.pause(batch);
                return;
            }
        }
        self.requests += 1;
        self.end = End::Stop;
    }

    fn pause(&mut self, batch: Batch) {
        self.end = End::Paused;
        self.wait_for(&batch);
        self.after.open = Some(batch);
    }

    fn wait_for(&mut self, batch: &Batch) {
        let calls = (0..).zip(&batch.calls);
        self.pending = calls
            .filter_map(|(position, call)| {
                let what = match &call.state {
                    State::Yes(_) => "yes",
                    State::Data(_) => "data",
                    State::Result => "result",
                    State::Done | State::Started => return None,
                };
                Some((position, what))
            })
            .collect();
    }
}
