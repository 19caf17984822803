//! A leg goes on with a run whose owner died: what the journal has is taken, nothing of it is run
//! again (contract I7).

use std::collections::BTreeMap;

use raf_core::{
    AgentResponseUpdate, CallStatus, ChatMessage, Error, ErrorKind, JournalEntry, JournalKey,
    JournalKind, Occurrence, Result, RunRecord, ToolOutcome, ToolResult, WriteOutcome,
};
use raf_tools::{CallState, OpenBatch, SettledCall, ToolSet};
use serde::de::DeserializeOwned;

use super::value::{Outcome, Recorded};
use super::{Journal, Step, in_hand, trailing_results};
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::NamedRun;
use crate::function_invoking::records;

/// What was found of a leg that did not come to its end.
#[derive(Debug, Default)]
pub(in crate::function_invoking) struct Recovered {
    /// A leg was in flight when its owner died.
    pub(in crate::function_invoking) interrupted: bool,
    /// Calls whose body was entered, or was about to be, and whose outcome nobody knows.
    unsettled: Vec<u32>,
    /// Those of them whose body is known not to have been entered.
    not_entered: Vec<u32>,
}

impl Recovered {
    /// Whether there are such calls.
    pub(in crate::function_invoking) const fn has_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Says of each call without an outcome what becomes of it: run with the same key if its
    /// tool is idempotent or its body was not entered, else unknown.
    pub(in crate::function_invoking) fn apply(
        &self,
        batch: &mut OpenBatch,
        again: &OpenBatch,
        tools: &ToolSet,
    ) {
        let calls: Vec<_> = batch.calls().to_vec();
        for call in calls {
            if !self.unsettled.contains(&call.occurrence.position) {
                continue;
            }
            let body = tools.get(call.tool_name()).and_then(|entry| entry.body());
            let not_entered = self.not_entered.contains(&call.occurrence.position);
            let idempotent = body.is_some_and(|tool| tool.tool().limits().idempotent);
            let ready = again
                .calls()
                .iter()
                .find(|other| other.occurrence == call.occurrence);
            let state = match ready {
                Some(ready) if idempotent || not_entered => ready.state.clone(),
                _ => CallState::Settled(SettledCall::new(
                    call.occurrence,
                    &call.call,
                    ToolOutcome::Unknown,
                    None,
                )),
            };
            batch.set(call.occurrence, state);
        }
    }

    /// The record as if no body that has no outcome had been entered.
    pub(in crate::function_invoking) fn not_started(&self, record: &RunRecord) -> RunRecord {
        let mut record = record.clone();
        for call in &mut record.calls {
            if self.unsettled.contains(&call.position) {
                call.status = CallStatus::AwaitingEarlier;
                call.facts.gated = false;
            }
        }
        record
    }
}

/// The open record of the run that the options name, held by the leg.
///
/// # Errors
/// What the store fails with; a typed busy error; misuse if the run is at its end, or of another
/// session.
pub(in crate::function_invoking) async fn named_record(leg: &mut Leg) -> Result<Option<RunRecord>> {
    // It is this run's alone: nothing that it calls may see it.
    let Some(named) = leg.options.extensions.remove::<NamedRun>() else {
        return Ok(None);
    };
    let run_id = named.0.clone();
    let Some(record) = records::claim(leg, &run_id).await? else {
        if leg.input().is_empty() {
            return Err(Error::misuse("there is no run of this id to go on with")
                .with_context("run", run_id.as_str()));
        }
        leg.run.id = run_id;
        return Ok(None);
    };
    let session = leg.options.session_id.as_ref();
    let refusal = if record.closed {
        Some("the run of this id is at its end: begin another one")
    } else if session.is_some()
        && record.session_id.is_some()
        && record.session_id.as_ref() != session
    {
        Some("the run of this id belongs to another session")
    } else {
        None
    };
    if let Some(refusal) = refusal {
        leg.store.release(&run_id, &leg.claim).await?;
        return Err(Error::misuse(refusal).with_context("run", run_id.as_str()));
    }
    if record.session_id.is_some() {
        leg.options.session_id.clone_from(&record.session_id);
    }
    Ok(Some(record))
}

/// Takes from the journal what the record and the caller's conversation lack. What the caller does not
/// show is emitted: input and stream are the transcript (contract B2).
///
/// # Errors
/// What the store fails with; [`ErrorKind::Store`] for a journal of a later version.
pub(in crate::function_invoking) async fn recover(
    leg: &mut Leg,
    record: &mut RunRecord,
) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    if !leg.store.is_durable() {
        return Ok(recovered);
    }
    leg.held.set(record.run_id.clone());
    let key = JournalKey::root(record.run_id.clone());
    let entries = leg.store.journal(&key, 0).await?;
    let was_empty = leg.input().is_empty();
    recovered.interrupted = record.working;
    let mut known = Vec::new();
    let mut outcomes = BTreeMap::new();
    for entry in &entries {
        match entry.kind {
            JournalKind::Step => {
                let step: Recorded = read(entry)?;
                supported(step.is_supported())?;
                if was_empty && known.is_empty() {
                    leg.set_input(step.input.clone());
                }
                known.extend(step.input);
                known.extend(step.messages);
            }
            JournalKind::Settled => {
                let outcome: Outcome = read(entry)?;
                supported(outcome.is_supported())?;
                if let Some(occurrence) = outcome.result.occurrence() {
                    outcomes.insert(occurrence, outcome);
                }
            }
            _ => {}
        }
    }
    let (shown, new) = compare(&known, leg.input());
    let mut journal = Journal {
        base: u64::try_from(entries.len()).unwrap_or(u64::MAX),
        leg: entries.last().map_or(0, |entry| entry.leg + 1),
        input: new,
        ..Journal::default()
    };
    if was_empty || record.working {
        for message in known.drain(shown..) {
            leg.emit(AgentResponseUpdate::Message { message }).await;
        }
    }
    let new = leg.new_messages();
    journal.keep(new.len() - trailing_results(new), new);
    recovered.not_entered = save_first(leg, record, &mut journal, &mut outcomes).await?;
    if record.working {
        journal.uncounted = take_outcomes(leg, record, outcomes).await;
        recovered.unsettled = record
            .calls
            .iter()
            .filter(|call| matches!(call.status, CallStatus::Started))
            .map(|call| call.position)
            .collect();
    }
    leg.journal = Some(journal);
    Ok(recovered)
}

/// Saves what an earlier leg has left in hand, before anything else; says which bodies were not entered.
async fn save_first(
    leg: &Leg,
    record: &RunRecord,
    journal: &mut Journal,
    outcomes: &mut BTreeMap<Occurrence, Outcome>,
) -> Result<Vec<u32>> {
    let Some(mut unsaved) = leg.in_hand.take(&record.run_id, &leg.store) else {
        return Ok(Vec::new());
    };
    let mut not_entered = std::mem::take(&mut unsaved.not_entered);
    if !unsaved.is_next(leg) {
        not_entered.clear();
    }
    // It may have been made although it was said to have failed, or the run has moved on.
    let is_open = |position| {
        let mut calls = record.calls.iter();
        calls.any(|call| {
            call.position == position && !matches!(call.status, CallStatus::Settled { .. })
        })
    };
    let lacking: Vec<(Occurrence, Outcome)> = std::mem::take(&mut unsaved.outcomes)
        .into_iter()
        .filter_map(|outcome| Some((outcome.result.occurrence()?, outcome)))
        .filter(|(place, _)| {
            record.working
                && place.round == record.round
                && is_open(place.position)
                && !outcomes.contains_key(place)
        })
        .collect();
    if !lacking.is_empty() {
        let name = Step::Batch.name(journal.leg, record.round);
        let entries = lacking
            .iter()
            .map(|(_, outcome)| super::entry(journal, name.clone(), JournalKind::Settled, outcome))
            .collect::<Result<Vec<_>>>()?;
        let key = JournalKey::root(record.run_id.clone());
        let written = leg
            .store
            .append(&key, &leg.claim, journal.base, &entries, None)
            .await;
        match written {
            Ok(WriteOutcome::Written(length)) => journal.base = length,
            Ok(WriteOutcome::Conflict | WriteOutcome::ClaimLost) => {
                return Err(records::busy(&record.run_id));
            }
            Err(error) => {
                in_hand::hold(leg, &record.run_id, |unsaved| {
                    unsaved.not_entered = not_entered;
                    unsaved.outcomes = lacking.into_iter().map(|(_, outcome)| outcome).collect();
                });
                return Err(error);
            }
        }
    }
    outcomes.extend(lacking);
    let of_round = not_entered
        .iter()
        .filter(|place| place.round == record.round);
    Ok(of_round.map(|place| place.position).collect())
}

/// Lays the outcomes of a batch in flight over its record; says whether there were any.
async fn take_outcomes(
    leg: &mut Leg,
    record: &mut RunRecord,
    outcomes: BTreeMap<Occurrence, Outcome>,
) -> bool {
    let mut any = false;
    for (occurrence, outcome) in outcomes {
        if occurrence.round != record.round {
            continue;
        }
        let call = record
            .calls
            .iter_mut()
            .find(|call| call.position == occurrence.position);
        if let Some(call) = call.filter(|call| !matches!(call.status, CallStatus::Settled { .. })) {
            *call = outcome.call;
            any = true;
        }
        let is_shown = leg
            .transcript()
            .iter()
            .flat_map(ChatMessage::tool_results)
            .filter_map(ToolResult::occurrence)
            .any(|shown| shown == occurrence);
        if !is_shown {
            leg.emit(AgentResponseUpdate::ToolCalled {
                occurrence,
                result: outcome.result,
            })
            .await;
        }
    }
    any
}

/// How much of the journal's conversation the caller shows, and what the caller shows beyond it.
fn compare(known: &[ChatMessage], input: &[ChatMessage]) -> (usize, Vec<ChatMessage>) {
    let mut shown = 0;
    let mut new = Vec::new();
    for message in input {
        let same = |other: &&ChatMessage| {
            other.role() == message.role() && other.contents() == message.contents()
        };
        match known[shown..].iter().position(|other| same(&other)) {
            Some(place) => shown += place + 1,
            None => new.push(message.clone()),
        }
    }
    (shown, new)
}

fn read<T: DeserializeOwned>(entry: &JournalEntry) -> Result<T> {
    serde_json::from_value(entry.value.clone()).map_err(|error| {
        Error::new(
            ErrorKind::Store,
            "a step of the run's journal cannot be read",
        )
        .with_code("corrupt")
        .with_context("step", &entry.step)
        .with_source(error)
    })
}

fn supported(is_supported: bool) -> Result<()> {
    if is_supported {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Store,
        "a later version wrote a step of the run's journal: update raf to go on with the run",
    )
    .with_code("later_format"))
}
