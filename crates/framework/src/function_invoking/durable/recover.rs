//! A leg goes on with a run whose owner died: what the journal has is taken, nothing of it is run
//! again (contract I7).

use raf_core::{
    CallStatus, DurableStepHost, Error, ErrorKind, JournalEntry, JournalKind, Result, RunRecord,
};
use raf_tools::NestedReport;
use serde::de::DeserializeOwned;

use super::compare::{Beyond, Compared, beyond, compare};
use super::in_flight::{InFlight, settle_as_shown};
use super::in_hand;
use super::value::Outcome;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::NamedRun;
use crate::function_invoking::records;
use crate::function_invoking::steps::{
    StepValue, emit_message, journal_key, supported, trailing_results,
};

/// What was found of a leg that did not come to its end.
#[derive(Debug, Default)]
pub(in crate::function_invoking) struct Recovered {
    /// A leg was in flight when its owner died.
    pub(in crate::function_invoking) interrupted: bool,
    /// What its batch came to.
    pub(in crate::function_invoking) in_flight: InFlight,
    /// What runs nested in its calls have used, and the record does not count.
    pub(in crate::function_invoking) used: Vec<NestedReport>,
    /// What the caller shows beyond an interrupted leg.
    pub(in crate::function_invoking) beyond: Beyond,
}

/// Whether the options name the run.
pub(in crate::function_invoking) fn is_named(leg: &Leg) -> bool {
    leg.options.extensions.get::<NamedRun>().is_some()
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
/// show is emitted: input and stream are the transcript (contract B2). `journal`: that of the run, where it was
/// read before.
///
/// # Errors
/// What the store fails with; [`ErrorKind::Store`] for a journal of a later version.
pub(in crate::function_invoking) async fn recover(
    leg: &mut Leg,
    record: &mut RunRecord,
    journal: Option<Vec<JournalEntry>>,
) -> Result<Recovered> {
    let mut recovered = Recovered::default();
    let durable = leg.steps.as_ref().and_then(|steps| steps.durable.clone());
    let Some(durable) = durable else {
        return Ok(recovered);
    };
    leg.held.set(record.run_id.clone());
    let key = journal_key(leg.root.as_ref(), record.run_id.clone());
    let entries = match journal {
        Some(entries) => entries,
        None => leg.store.journal(&key, 0).await?,
    };
    let was_empty = leg.input().is_empty();
    recovered.interrupted = record.working;
    let mut known = Vec::new();
    for entry in &entries {
        match entry.kind {
            JournalKind::Step => {
                let step: StepValue = read(entry)?;
                supported(step.format)?;
                if was_empty && known.is_empty() {
                    leg.set_input(step.input.clone());
                }
                known.extend(step.input);
                known.extend(step.messages);
                recovered.in_flight.clear();
            }
            JournalKind::Started | JournalKind::Settled => {
                recovered.in_flight.note(read(entry)?)?;
            }
            _ => {}
        }
    }
    let Compared { shown, new, end } = compare(&known, leg.input());
    if record.working && shown == known.len() {
        recovered.beyond = beyond(leg.input(), &new, end);
    }
    // A nested run can have come to wait without the run around it having heard of it.
    if was_empty || record.working || leg.root.is_some() {
        for message in known.drain(shown..) {
            emit_message(leg, message).await;
        }
    }
    if let Some((kept, messages)) = leg.kept() {
        kept.input = new.into_iter().map(|(_, message)| message).collect();
        kept.keep(messages.len() - trailing_results(messages), messages);
    }
    let length = u64::try_from(entries.len()).unwrap_or(u64::MAX);
    let number = entries.last().map_or(0, |entry| entry.leg + 1);
    durable
        .resume_at(key, number, length, record.revision)
        .await;
    save_first(leg, &durable, record, &mut recovered.in_flight).await?;
    if record.working {
        recovered.used = recovered.in_flight.lay_over(leg, record);
        settle_as_shown(leg, record);
    } else {
        recovered.in_flight.clear();
    }
    Ok(recovered)
}

/// Saves what an earlier leg has left in hand, before anything else.
async fn save_first(
    leg: &Leg,
    durable: &DurableStepHost,
    record: &RunRecord,
    in_flight: &mut InFlight,
) -> Result<()> {
    let Some(mut unsaved) = in_hand::take(leg, &record.run_id) else {
        return Ok(());
    };
    let mut not_entered = std::mem::take(&mut unsaved.not_entered);
    if !unsaved.is_next(leg) {
        not_entered.clear();
    }
    not_entered.retain(|place| place.round == record.round);
    // It may have been made although it was said to have failed, or the run has moved on.
    let is_open = |position| {
        let mut calls = record.calls.iter();
        calls.any(|call| {
            call.position == position && !matches!(call.status, CallStatus::Settled { .. })
        })
    };
    let lacking: Vec<Outcome> = std::mem::take(&mut unsaved.outcomes)
        .into_iter()
        .filter(|(round, outcome)| {
            record.working
                && *round == record.round
                && is_open(outcome.position)
                && !in_flight.outcomes.contains_key(&outcome.position)
        })
        .map(|(_, outcome)| outcome)
        .collect();
    let name = format!("round/{}/batch", record.round);
    let values = lacking
        .iter()
        .map(|outcome| Ok((outcome.position, outcome.to_json()?)))
        .collect::<Result<Vec<_>>>()?;
    if let Err(error) = durable.append_ended(&name, values).await {
        if error.kind() == ErrorKind::Store {
            in_hand::hold(leg, &record.run_id, |unsaved| {
                unsaved.not_entered = not_entered;
                let round = record.round;
                unsaved.outcomes = lacking
                    .into_iter()
                    .map(|outcome| (round, outcome))
                    .collect();
            });
        }
        return Err(error);
    }
    for outcome in lacking {
        in_flight.settle(outcome);
    }
    in_flight.not_entered = not_entered.iter().map(|place| place.position).collect();
    Ok(())
}

pub(super) fn read<T: DeserializeOwned>(entry: &JournalEntry) -> Result<T> {
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
