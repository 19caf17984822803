//! A leg over a durable store: each step is in the run's journal, with the record as it stands behind
//! it, before what follows from it begins (contract I6, steps.md K1, K2, K13).
//!
//! The record says where the run stands: counters, requests, the open batch. The journal holds what the
//! record leaves out: messages, and starts and outcomes of a batch in flight.

mod compare;
mod heartbeat;
mod in_flight;
mod in_hand;
mod nested;
mod recorder;
mod recover;
mod stoppable;
mod value;

use raf_core::{Error, ErrorKind, IStepHost, Result, Step};

pub(super) use self::compare::{Beyond, is_conversation_of};
pub(super) use self::heartbeat::{Held, while_held};
pub(super) use self::in_flight::{InFlight, report_again};
pub(super) use self::in_hand::{InHand, forget, keep_in_hand, not_entered};
pub(super) use self::nested::{Nested, nested_record};
pub(super) use self::recorder::{OutcomeRecorder, lost, lost_question};
pub(super) use self::recover::{Recovered, is_named, named_record, recover};
pub(super) use self::stoppable::{StoppableStore, told};
use super::leg::Leg;
use super::steps::value_now;

/// Writes a change of the record at once, within a step.
///
/// # Errors
/// What the store fails with.
pub(super) async fn write_now(leg: &mut Leg, name: &str) -> Result<()> {
    let durable = leg.steps.as_ref().and_then(|steps| steps.durable.clone());
    let Some(durable) = durable else {
        return Ok(());
    };
    let value = value_now(leg)?;
    let step = Step::new(leg.run.id.clone(), name);
    let body = Box::pin(std::future::ready(Ok(value)));
    durable.step(&step, body).await.map(drop)
}

/// Whether something of the run is not written.
pub(super) fn has_unsaved(leg: &mut Leg) -> bool {
    let durable = leg.steps.as_ref().and_then(|steps| steps.durable.as_ref());
    let waits = durable.is_some_and(raf_core::DurableStepHost::has_waiting);
    waits || leg.kept().is_some_and(|(kept, new)| kept.lacks(new))
}

/// Whether a failure leaves the run open, for another leg to go on with.
pub(super) fn leaves_open(leg: &Leg, error: &Error) -> bool {
    leg.is_durable() && is_unkept(error)
}

/// Whether what failed is the keeping of a run, and not the run.
pub(crate) fn is_unkept(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store | ErrorKind::BusySession)
}
