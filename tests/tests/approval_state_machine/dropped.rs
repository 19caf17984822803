//! Where a record may stand after its leg was dropped (contract E2): each call where it was, or moved on
//! by its own answer alone; and the reference goes on from there.

use raf_core::CallStatus;
use raf_tests::Leg;

use crate::compare::{closed, record};
use crate::reference::State;
use crate::terms::{End, Expected, Settled};
use crate::world::World;

/// Goes on from a leg that was dropped, from where its record stands.
pub(crate) async fn after_drop(
    world: &mut World,
    leg: &Leg,
    expected: &Expected,
    faults: &mut Vec<String>,
) {
    let Some(before) = world.reference.open.clone() else {
        return;
    };
    let Some(record) = record(world, &before).await else {
        if !leg.entries.is_empty() {
            faults.push("E2: a body was entered, and its run has no record".to_owned());
        }
        return;
    };
    let answered = expected.answered.clone().unwrap_or_else(|| before.clone());
    if record.closed {
        if expected.end == End::Paused && expected.requests == 0 {
            faults.push("the record of a run that pauses was closed".to_owned());
        }
        closed(world, &before, &record, faults);
        return;
    }
    world.value_is_fresh = false;
    if record.round != before.round {
        world.count("dropped with a pause that nobody saw");
        if expected.requests == 0 {
            faults.push("the record is of another round".to_owned());
        }
        closed(world, &before, &record, faults);
        return;
    }
    let mut after = before.clone();
    let mut moved = Vec::new();
    for (position, call) in after.calls.iter_mut().enumerate() {
        let was = before.calls[position].state.clone();
        let may_move = answered.calls[position].state != was || was == State::Started;
        let entries: Vec<_> = leg
            .entries
            .iter()
            .filter(|entry| {
                entry.occurrence.round == before.round
                    && entry.occurrence.position as usize == position
            })
            .collect();
        let status = &record.calls[position].status;
        call.state = match status {
            CallStatus::AwaitingApproval { request } => State::Yes(request.request_id.clone()),
            CallStatus::AwaitingData { request_id, .. } => State::Data(request_id.clone()),
            CallStatus::AwaitingResult => State::Result,
            CallStatus::Started => State::Started,
            CallStatus::Settled { .. } => State::Done,
            other => {
                faults.push(format!("call {position} is {other:?}"));
                State::Done
            }
        };
        if call.state == was {
            if was.is_open() && !entries.is_empty() {
                faults.push(format!("E2: call {position} was entered while it is open"));
            }
            continue;
        }
        if !may_move {
            let now = &call.state;
            faults.push(format!("E3: call {position} went from {was:?} to {now:?}"));
        }
        if let Some(entry) = entries.first() {
            call.attempts = entry.attempt;
            call.n = entry.arguments["n"].as_i64().unwrap_or(-1);
        }
        match &call.state {
            State::Data(request) if entries.len() == 1 && call.tool.asks() => {
                world.run_of.insert(request.clone(), before.run.clone());
            }
            State::Started | State::Done => {}
            other => faults.push(format!("call {position} went from {was:?} to {other:?}")),
        }
        if let Some(request) = was.request() {
            let settled = record.settlement(request);
            if settled != Some(raf_core::Settlement::Answered) {
                faults.push(format!("E2: call {position} moved on, {settled:?}"));
            }
            let settled = &mut world.reference.settled;
            settled.insert(request.to_owned(), Settled::Answered);
        }
        moved.push(position);
    }
    if !moved.is_empty() {
        after.denied.clone_from(&answered.denied);
    }
    world.reference.open = Some(after);
}
