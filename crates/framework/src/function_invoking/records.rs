//! The leg and its record: kept when a leg pauses, restored when one resumes, closed when the run
//! ends. All effects on the store are here.

use std::time::Duration;

use raf_core::{
    ClaimOutcome, ClosedReason, Error, ErrorKind, FinishReason, PausedRun, Result, RunId,
    RunRecord, WriteOutcome,
};
use raf_tools::{HoldPolicy, OpenBatch};
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::durable;
use super::leg::Leg;
use super::no_progress::NoProgress;
use super::run::Run;

/// The counters of a run, as they stand in its record.
#[derive(Serialize, Deserialize)]
struct KeptCounters {
    counters: Counters,
    no_progress: NoProgress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_end: Option<FinishReason>,
}

/// What the record of a batch is written for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saving {
    /// The bodies that may run under this policy are about to be entered.
    Begin(HoldPolicy),
    /// The batch has its results.
    Done,
    /// What is left of it waits.
    Pause,
}

/// Writes the batch to the record, creating it at the first pause.
///
/// # Errors
/// What the store fails with; a typed busy error if another leg wrote in between.
pub(super) async fn save(leg: &mut Leg, batch: &OpenBatch, saving: Saving) -> Result<()> {
    let mut record = of_batch(leg, batch);
    let is_durable = leg.is_durable();
    // Where steps are kept, each start is, when it happens.
    let about_to_run = match saving {
        Saving::Begin(hold) if leg.steps.is_none() => Some(hold),
        _ => None,
    };
    record.calls = batch.to_records(about_to_run);
    record.working = is_durable && !matches!(saving, Saving::Pause);
    record.reopen_pending();
    write(leg, record).await
}

/// Notes the plan of a batch in the record of a durable run.
pub(super) async fn planned(leg: &mut Leg, batch: &OpenBatch) -> Result<()> {
    if !leg.is_durable() {
        return Ok(());
    }
    let mut record = of_batch(leg, batch);
    record.calls = batch.to_records(None);
    record.working = true;
    write(leg, record).await
}

/// The record of the run, but for the calls of the batch.
fn of_batch(leg: &Leg, batch: &OpenBatch) -> Box<RunRecord> {
    let mut record = leg
        .run
        .record
        .clone()
        .unwrap_or_else(|| Box::new(RunRecord::new(leg.run.id.clone())));
    record.session_id.clone_from(&leg.options.session_id);
    record.round = batch.round();
    record.denied.clone_from(&leg.run.denied);
    if record.prefix_digest.is_empty() {
        record.prefix_digest = prefix_digest(leg);
    }
    count(leg, &mut record, leg.run.counters.clone());
    record
}

/// The run as it stands, for a host that replays steps.
pub(super) fn snapshot(leg: &Leg) -> Box<RunRecord> {
    let mut record = leg
        .run
        .record
        .clone()
        .unwrap_or_else(|| Box::new(RunRecord::new(leg.run.id.clone())));
    record.session_id.clone_from(&leg.options.session_id);
    record.denied.clone_from(&leg.run.denied);
    if let Some(batch) = &leg.open {
        record.round = batch.round();
        record.calls = batch.to_records(None);
    }
    count(leg, &mut record, leg.run.counters.clone());
    record
}

/// Begins the record of a run in a durable store, before its first request.
pub(super) fn open(leg: &mut Leg) {
    if !leg.is_durable() || leg.run.record.is_some() {
        return;
    }
    let mut record = Box::new(RunRecord::new(leg.run.id.clone()));
    record.session_id.clone_from(&leg.options.session_id);
    record.working = true;
    count(leg, &mut record, leg.run.counters.clone());
    change(leg, record);
}

/// Counts a model request that is about to be made in a run that has a record, before it is made:
/// were this leg dropped, a later one numbers its rounds on from there, so that no call gets the
/// place, and the idempotency key, of another one (contract D2).
///
/// # Errors
/// What the store fails with; a typed busy error if another leg wrote in between.
pub(super) async fn begin_round(leg: &mut Leg) -> Result<()> {
    let Some(mut record) = leg.run.record.clone() else {
        return Ok(());
    };
    let mut counters = leg.run.counters.clone();
    if leg.is_durable() {
        // A reply is in the journal before its calls run: one that is not has had no effect.
        if !durable::has_unsaved(leg) {
            return Ok(());
        }
        record.calls.clear();
        record.round = counters.rounds;
        record.working = true;
        count(leg, &mut record, counters);
        change(leg, record);
        return Ok(());
    }
    counters.rounds += 1;
    count(leg, &mut record, counters);
    write(leg, record).await
}

/// Notes in the record of a durable run that its last round came to nothing: the next has a number of its
/// own.
pub(super) fn begin_round_again(leg: &mut Leg) {
    let Some(mut record) = leg.run.record.clone() else {
        return;
    };
    record.calls.clear();
    record.round = leg.run.counters.rounds;
    count(leg, &mut record, leg.run.counters.clone());
    change(leg, record);
}

fn count(leg: &Leg, record: &mut RunRecord, counters: Counters) {
    record.usage.clone_from(&leg.run.usage);
    record.rounds.clone_from(&leg.run.rounds);
    record.worked_ms = u64::try_from(leg.worked_for().as_millis()).unwrap_or(u64::MAX);
    record.counters = serde_json::to_value(KeptCounters {
        counters,
        no_progress: leg.run.no_progress.clone(),
        batch_end: leg.run.batch_end.clone(),
    })
    .unwrap_or_default();
}

/// How many calls a run has made.
pub(super) fn calls_of(record: &RunRecord) -> u32 {
    let kept = KeptCounters::deserialize(&record.counters);
    kept.map_or(0, |kept| kept.counters.calls())
}

/// The record is written with the value of the step.
fn change(leg: &mut Leg, record: Box<RunRecord>) {
    leg.run.record = Some(record);
    if let Some((kept, _)) = leg.kept() {
        kept.changed = true;
    }
}

async fn write(leg: &mut Leg, mut record: Box<RunRecord>) -> Result<()> {
    if leg.is_durable() {
        change(leg, record);
        return Ok(());
    }
    record.writer.clone_from(&leg.writer);
    let mut outcome = if record.revision == 0 {
        leg.store.create(&record, Some(&leg.claim)).await?
    } else {
        leg.store.save(&record).await?
    };
    if outcome == WriteOutcome::Conflict && leg.writer.is_some() {
        outcome = write_again(leg, &mut record).await?;
    }
    match outcome {
        WriteOutcome::Written(revision) => {
            record.revision = revision;
            leg.run.record = Some(record);
            Ok(())
        }
        WriteOutcome::Conflict | WriteOutcome::ClaimLost => Err(busy(&leg.run.id)),
    }
}

/// Writes over what this leg has written itself, in a step whose value was not kept.
async fn write_again(leg: &Leg, record: &mut RunRecord) -> Result<WriteOutcome> {
    let stored = leg.store.load(&record.run_id).await?;
    let own = stored.filter(|stored| stored.writer == record.writer);
    let Some(own) = own.filter(|own| !own.closed || record.closed) else {
        return Ok(WriteOutcome::Conflict);
    };
    if own.closed {
        return Ok(WriteOutcome::Written(own.revision));
    }
    record.revision = own.revision;
    leg.store.save(record).await
}

/// Lets the run go, its record kept: the leg pauses. The record as a value.
///
/// # Errors
/// What the store fails with.
pub(super) async fn release(leg: &mut Leg) -> Result<Option<PausedRun>> {
    leg.store.release(&leg.run.id, &leg.claim).await?;
    let record = leg.run.record.as_deref().cloned();
    Ok(record.map(PausedRun::new))
}

/// Closes the record, if there is one: the run ends.
///
/// # Errors
/// What the store fails with.
pub(super) async fn close(leg: &mut Leg, reason: ClosedReason) -> Result<()> {
    let Some(mut record) = leg.run.record.take() else {
        return Ok(());
    };
    // A nested run is told of by its record alone if the run around it did not hear of its end.
    count(leg, &mut record, leg.run.counters.clone());
    record.close(reason);
    write(leg, record).await
}

/// Lets a run go whose record is closed.
///
/// # Errors
/// What the store fails with.
pub(super) async fn let_go(leg: &mut Leg) -> Result<()> {
    durable::forget(leg);
    if leg.run.record.take().is_some() {
        leg.store.release(&leg.run.id, &leg.claim).await?;
    }
    Ok(())
}

/// Takes hold of a run's record.
///
/// # Errors
/// What the store fails with; a typed busy error if another leg holds it.
pub(super) async fn claim(leg: &Leg, run_id: &RunId) -> Result<Option<RunRecord>> {
    match leg.store.claim(run_id, &leg.claim).await? {
        ClaimOutcome::Claimed(record) => Ok(Some(*record)),
        ClaimOutcome::Missing => Ok(None),
        ClaimOutcome::Busy => Err(busy(run_id)),
    }
}

/// The run of a record, to go on with.
///
/// # Errors
/// [`ErrorKind::Misuse`] if the record's counters are of a form that this version cannot read.
pub(super) fn restore(record: RunRecord) -> Result<Run> {
    let kept: KeptCounters = serde_json::from_value(record.counters.clone()).map_err(|error| {
        Error::misuse(
            "the record of the paused run has counters of a form that this version cannot read",
        )
        .with_source(error)
    })?;
    Ok(Run {
        id: record.run_id.clone(),
        counters: kept.counters,
        no_progress: kept.no_progress,
        batch_end: kept.batch_end,
        denied: record.denied.clone(),
        usage: record.usage.clone(),
        rounds: record.rounds.clone(),
        worked: Duration::from_millis(record.worked_ms),
        record: Some(Box::new(record)),
    })
}

pub(super) fn busy(run_id: &RunId) -> Error {
    Error::new(
        ErrorKind::BusySession,
        "another leg of this run is in flight: wait for its end, then give the answers again",
    )
    .with_context("run", run_id.as_str())
}

/// A digest of the conversation up to the open batch, for stores and people to tell conversations
/// apart. Nothing is decided by it: a caller may trim what came before.
fn prefix_digest(leg: &Leg) -> String {
    let mut text = String::new();
    for message in leg.transcript() {
        text.push_str(&serde_json::to_string(&message).unwrap_or_default());
        text.push('\n');
    }
    let digest = raf_tools::ResultDigest::of(raf_core::ToolOutcome::Ok, &text);
    format!("{:016x}", digest.value())
}
