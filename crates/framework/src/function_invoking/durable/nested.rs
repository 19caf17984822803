//! A run nested in a call of a durable run: its record is that of the last step in its journal, which the
//! body of the call finds again when it is entered again (steps.md, K5).

use raf_core::{Error, ErrorKind, JournalEntry, JournalKind, Result, RunRecord};

use super::recover::read;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::records;
use crate::function_invoking::steps::{RunEnd, StepValue, emit_message, journal_key, supported};

/// A nested run that was there before.
pub(in crate::function_invoking) enum Nested {
    /// It goes on, from this journal.
    Open(Box<RunRecord>, Vec<JournalEntry>),
    /// It came to its end, and its messages are emitted again.
    Ended(RunEnd),
}

/// The nested run of this leg, if it was there before.
///
/// # Errors
/// What the store fails with; [`ErrorKind::Store`](raf_core::ErrorKind::Store) for a journal of a later
/// version.
pub(in crate::function_invoking) async fn nested_record(leg: &mut Leg) -> Result<Option<Nested>> {
    if leg.root.is_none() || !leg.is_durable() {
        return Ok(None);
    }
    let key = journal_key(leg.root.as_ref(), leg.run.id.clone());
    let entries = leg.store.journal(&key, 0).await?;
    let mut record = None;
    let mut messages = Vec::new();
    let mut end = None;
    for entry in entries
        .iter()
        .filter(|entry| entry.kind == JournalKind::Step)
    {
        let mut step: StepValue = read(entry)?;
        supported(step.format)?;
        record = step.record.take().or(record);
        messages.append(&mut step.messages);
        if entry.step == "end" {
            end = serde_json::from_value::<RunEnd>(step.decided).ok();
        }
    }
    // The record of the call around may be older.
    let Some(record) = record else {
        return Ok(None);
    };
    let told = leg.options.paused_run.take();
    let told = told.map_or(0, |paused| records::calls_of(paused.record()));
    if let Some(allowance) = leg.allowance() {
        // The runs around it heard of its calls up to where it waited last.
        allowance.take(records::calls_of(&record).saturating_sub(told));
    }
    if !record.closed {
        return Ok(Some(Nested::Open(record, entries)));
    }
    let shown = leg.input().len();
    let beyond = |place: &usize| *place >= shown.saturating_sub(1);
    for (_, message) in messages
        .into_iter()
        .enumerate()
        .filter(|(place, _)| beyond(place))
    {
        emit_message(leg, message).await;
    }
    leg.run = records::restore(*record)?;
    leg.run.record = None;
    match end {
        Some(end) => Ok(Some(Nested::Ended(end))),
        None => Err(Error::new(
            ErrorKind::Store,
            "the journal of a nested run does not say how it ended",
        )
        .with_code("corrupt")),
    }
}
