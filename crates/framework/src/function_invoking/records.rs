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
use super::durable::{self, Step};
use super::leg::{Leg, Run};
use super::no_progress::NoProgress;

/// The counters of a run, as they stand in its record.
#[derive(Serialize, Deserialize)]
struct KeptCounters {
    counters: Counters,
    no_progress: NoProgress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch_end: Option<FinishReason>,
}

/// Writes the batch to the record, creating it at the first pause. With a policy, the bodies that may
/// run under it are about to be entered.
///
/// # Errors
/// What the store fails with; a typed busy error if another leg wrote in between.
pub(super) async fn save(
    leg: &mut Leg,
    batch: &OpenBatch,
    about_to_run: Option<HoldPolicy>,
    step: Step,
) -> Result<()> {
    let mut record = leg
        .run
        .record
        .clone()
        .unwrap_or_else(|| RunRecord::new(leg.run.id.clone()));
    record.session_id.clone_from(&leg.options.session_id);
    record.round = batch.round();
    record.calls = batch.to_records(about_to_run);
    record.working = leg.store.is_durable() && (about_to_run.is_some() || batch.is_done());
    record.reopen_pending();
    record.denied.clone_from(&leg.run.denied);
    if record.prefix_digest.is_empty() {
        record.prefix_digest = prefix_digest(leg);
    }
    count(leg, &mut record, leg.run.counters.clone());
    write(leg, record, step).await
}

/// Begins the record of a run in a durable store, before its first request.
///
/// # Errors
/// What the store fails with; a typed busy error if there is such a run.
pub(super) async fn open(leg: &mut Leg) -> Result<()> {
    if !leg.store.is_durable() || leg.run.record.is_some() {
        return Ok(());
    }
    leg.journal = None;
    let mut record = RunRecord::new(leg.run.id.clone());
    record.session_id.clone_from(&leg.options.session_id);
    record.working = true;
    count(leg, &mut record, leg.run.counters.clone());
    write(leg, record, Step::Begin).await
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
    if leg.journal.is_some() {
        // A reply is in the journal before its calls run: one that is not has had no effect.
        if !durable::has_unsaved(leg) {
            return Ok(());
        }
        record.calls.clear();
        record.round = counters.rounds;
        record.working = true;
        count(leg, &mut record, counters);
        return write(leg, record, Step::Before).await;
    }
    counters.rounds += 1;
    count(leg, &mut record, counters);
    write(leg, record, Step::Before).await
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

async fn write(leg: &mut Leg, mut record: RunRecord, step: Step) -> Result<()> {
    let outcome = if leg.store.is_durable() {
        durable::append(leg, step, &record).await?
    } else if record.revision == 0 {
        leg.store.create(&record, Some(&leg.claim)).await?
    } else {
        leg.store.save(&record).await?
    };
    match outcome {
        WriteOutcome::Written(revision) => {
            record.revision = revision;
            leg.run.record = Some(record);
            Ok(())
        }
        WriteOutcome::Conflict | WriteOutcome::ClaimLost => Err(busy(&leg.run.id)),
    }
}

/// Lets the run go, its record kept: the leg pauses. The record as a value.
///
/// # Errors
/// What the store fails with.
pub(super) async fn release(leg: &mut Leg) -> Result<Option<PausedRun>> {
    leg.store.release(&leg.run.id, &leg.claim).await?;
    Ok(leg.run.record.clone().map(PausedRun::new))
}

/// Closes the record, if there is one: the run ends.
///
/// # Errors
/// What the store fails with.
pub(super) async fn close(leg: &mut Leg, reason: ClosedReason) -> Result<()> {
    let Some(mut record) = leg.run.record.take() else {
        return Ok(());
    };
    record.close(reason);
    write(leg, record, Step::End).await?;
    durable::forget(leg);
    leg.store.release(&leg.run.id, &leg.claim).await?;
    leg.run.record = None;
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
        record: Some(record),
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
