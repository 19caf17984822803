//! A leg over a durable store: each step is in the run's journal, with the record as it stands behind
//! it, before what follows from it begins (contract I6, steps.md K1, K2, K13).
//!
//! The record says where the run stands: counters, requests, the open batch with its starts. The
//! journal holds what the record leaves out: messages, and outcomes of a batch in flight.

mod heartbeat;
mod in_hand;
mod recover;
mod value;

use std::collections::BTreeSet;

use raf_core::{
    ChatMessage, Error, ErrorKind, JournalEntry, JournalKey, JournalKind, MessageRole, Occurrence,
    Result, RunRecord, ToolResult, WriteOutcome,
};
use raf_tools::{FinishedCall, OpenBatch};
use serde::Serialize;
use serde_json::Value;

use self::value::{Outcome, Recorded};
use super::leg::Leg;
use super::records;

pub(super) use self::heartbeat::{Held, while_held};
pub(super) use self::in_hand::{InHand, forget, not_entered};
pub(super) use self::recover::{named_record, recover};

/// How far the journal of a leg's run is written.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Entries that it has.
    base: u64,
    /// Which leg of the run this is, from 0.
    leg: u32,
    /// Messages of the leg's own that it has, up to the results at their end: those are put in call order,
    /// and one that comes later may stand before one that is kept.
    saved: usize,
    /// The results behind them that it has.
    kept: BTreeSet<Occurrence>,
    /// What the caller brought and it lacks.
    input: Vec<ChatMessage>,
    /// Whether the outcomes that it holds of the open batch are not counted in the record.
    pub(super) uncounted: bool,
}

impl Journal {
    /// Notes that it has these messages, and all before a place.
    fn keep(&mut self, until: usize, messages: &[ChatMessage]) {
        self.saved = self.saved.max(until);
        let results = messages.iter().flat_map(ChatMessage::tool_results);
        self.kept.extend(results.filter_map(ToolResult::occurrence));
    }
}

/// What a write is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A leg begins.
    Begin,
    /// Messages came before a request.
    Before,
    /// A reply asks for calls that are about to run.
    Plan,
    /// A batch has its results, or waits for the rest.
    Batch,
    /// A leg ends.
    End,
}

impl Step {
    /// Its stable name.
    fn name(self, leg: u32, round: u32) -> String {
        match self {
            Self::Begin => format!("leg/{leg}/begin"),
            Self::Before => format!("round/{round}/before"),
            Self::Plan => format!("round/{round}/plan"),
            Self::Batch => format!("round/{round}/batch"),
            Self::End => format!("leg/{leg}/end"),
        }
    }
}

/// Writes a step and the record behind it, in one transaction.
///
/// # Errors
/// What the store fails with.
pub(super) async fn append(leg: &mut Leg, step: Step, record: &RunRecord) -> Result<WriteOutcome> {
    let mut journal = match leg.journal.take() {
        Some(journal) => journal,
        None => opened(leg, record).await?,
    };
    let new = leg.new_messages();
    // Results of a batch in flight are entries of their own: they have no order yet.
    let until = new.len() - trailing_results(new);
    let whole = match step {
        Step::Plan | Step::Begin => until,
        _ => new.len(),
    };
    let is_new = |message: &&ChatMessage| {
        let mut places = message.tool_results().filter_map(ToolResult::occurrence);
        !places.any(|place| journal.kept.contains(&place))
    };
    let from = journal.saved.min(whole);
    let messages: Vec<ChatMessage> = new[from..whole].iter().filter(is_new).cloned().collect();
    let value = Recorded::new(std::mem::take(&mut journal.input), messages);
    let entry = entry(
        &journal,
        step.name(journal.leg, record.round),
        JournalKind::Step,
        &value,
    )?;
    let key = JournalKey::root(record.run_id.clone());
    let written = leg
        .store
        .append(&key, &leg.claim, journal.base, &[entry], Some(record))
        .await;
    if matches!(written, Ok(WriteOutcome::Written(_))) {
        journal.base += 1;
        journal.keep(until, &value.messages);
        leg.held.set(record.run_id.clone());
    } else {
        journal.input = value.input;
    }
    leg.journal = Some(journal);
    written
}

/// Keeps the outcome of a call as soon as it is known, before anybody is told of it. What the store
/// fails to keep stays in hand.
///
/// # Errors
/// What the store fails with; a typed busy error if the claim is lost.
pub(super) async fn settled(
    leg: &mut Leg,
    batch: &OpenBatch,
    finished: &FinishedCall,
) -> Result<()> {
    let Some(journal) = &leg.journal else {
        return Ok(());
    };
    let Some(value) = outcome(batch, finished) else {
        return Ok(());
    };
    let name = Step::Batch.name(journal.leg, finished.occurrence.round);
    let entries = [entry(journal, name, JournalKind::Settled, &value)?];
    let key = JournalKey::root(leg.run.id.clone());
    let base = journal.base;
    let written = leg.store.append(&key, &leg.claim, base, &entries, None);
    let written = match written.await {
        Ok(written) => written,
        Err(error) => {
            in_hand::hold(leg, &leg.run.id, |unsaved| unsaved.outcomes.push(value));
            return Err(error);
        }
    };
    match written {
        WriteOutcome::Written(_) => {
            if let Some(journal) = &mut leg.journal {
                journal.base += 1;
            }
            Ok(())
        }
        WriteOutcome::Conflict | WriteOutcome::ClaimLost => Err(records::busy(&leg.run.id)),
    }
}

/// Keeps an outcome in hand that comes behind a failed save.
pub(super) fn keep_in_hand(leg: &Leg, batch: &OpenBatch, finished: &FinishedCall) {
    if let Some(value) = outcome(batch, finished) {
        in_hand::hold(leg, &leg.run.id, |unsaved| unsaved.outcomes.push(value));
    }
}

fn outcome(batch: &OpenBatch, finished: &FinishedCall) -> Option<Outcome> {
    let position = finished.occurrence.position;
    let mut calls = batch.to_records(None).into_iter();
    let call = calls.find(|call| call.position == position)?;
    Some(Outcome::new(call, finished.result.clone()))
}

/// Whether messages stand in the transcript that the journal lacks.
pub(super) fn has_unsaved(leg: &Leg) -> bool {
    let saved = leg.journal.as_ref().map(|journal| journal.saved);
    let new = leg.new_messages();
    saved.is_some_and(|saved| saved < new.len() - trailing_results(new))
}

/// Whether a failure leaves the run open, for another leg to go on with.
pub(super) fn leaves_open(leg: &Leg, error: &Error) -> bool {
    leg.journal.is_some() && matches!(error.kind(), ErrorKind::Store | ErrorKind::BusySession)
}

/// The journal of a run that this leg has not written to: of a new run, or of one that had none.
async fn opened(leg: &Leg, record: &RunRecord) -> Result<Journal> {
    let mut journal = Journal {
        input: leg.input().to_vec(),
        ..Journal::default()
    };
    if record.revision > 0 {
        let key = JournalKey::root(record.run_id.clone());
        let entries = leg.store.journal(&key, 0).await?;
        journal.base = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    }
    Ok(journal)
}

fn trailing_results(messages: &[ChatMessage]) -> usize {
    let is_result = |message: &&ChatMessage| message.role() == MessageRole::Tool;
    messages.iter().rev().take_while(is_result).count()
}

fn entry(
    journal: &Journal,
    name: String,
    kind: JournalKind,
    value: &impl Serialize,
) -> Result<JournalEntry> {
    let value: Value = serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::Store, "a step of the run has no JSON form").with_source(error)
    })?;
    Ok(JournalEntry::new(journal.leg, name, kind, value))
}
