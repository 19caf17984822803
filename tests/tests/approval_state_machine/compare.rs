//! A leg against what it must have come to: exactly where it ran to its end, within bounds where it
//! was dropped or cancelled.

use raf_core::{AgentResponseUpdate as Update, ErrorKind, RunId, RunRecord, WaitsFor};
use raf_testing::outcome_word;
use raf_tests::Leg;

use crate::dropped;
use crate::history::check_sent;
use crate::reference::{Batch, State};
use crate::terms::{End, Entry, Expected, Settled};
use crate::world::World;

/// What is wrong with a leg; the reference goes on from where the engine stands.
pub(crate) async fn leg(
    world: &mut World,
    leg: &Leg,
    expected: &Expected,
    dropped: bool,
) -> Vec<String> {
    let mut faults = requests_are_valid(leg);
    let cancelled = match &leg.response {
        Err(error) => error.kind() == ErrorKind::Cancelled,
        Ok(_) => false,
    };
    if dropped {
        world.count("dropped");
        bounded(leg, expected, false, &mut faults);
        dropped::after_drop(world, leg, expected, &mut faults).await;
    } else if cancelled {
        world.count("cancelled");
        bounded(leg, expected, true, &mut faults);
        after_cancel(world, leg, expected, &mut faults).await;
    } else {
        exact(world, leg, expected, &mut faults);
        after_end(world, leg, expected, &mut faults);
    }
    faults
}

/// A1: each request is what the reference makes of input and emitted messages.
fn requests_are_valid(leg: &Leg) -> Vec<String> {
    let mut faults = Vec::new();
    for seen in leg.requests() {
        let mut fold = raf_core::ResponseFold::new();
        for update in leg.items().iter().take(seen.items_before).flatten() {
            fold.push(update);
        }
        let mut conversation = leg.input.clone();
        conversation.extend(fold.messages().iter().cloned());
        faults.extend(check_sent(&seen.request.messages, &conversation));
    }
    faults
}

/// What a leg came to, in the reference's words.
struct Seen {
    entries: Vec<Entry>,
    results: Vec<(u32, u32, String)>,
    refusals: Vec<(String, String)>,
    closed: Vec<String>,
}

impl Seen {
    /// Rounds that are new in this leg are counted on from the batch that it resumed, whatever
    /// number they have: after a dropped leg some are skipped.
    fn of(leg: &Leg, expected: &Expected) -> Self {
        let rounds: Vec<u32> = leg.rounds().iter().map(|round| round.round).collect();
        let own = &rounds[rounds.len().saturating_sub(leg.requests().len())..];
        let resumed = expected.answered.as_ref().map(|batch| batch.round);
        let new_run = own.first() == Some(&0);
        let relative = |round: u32| match resumed {
            Some(first) if !new_run && round != first => {
                let place = own.iter().position(|own| *own == round).unwrap_or(99);
                first + 1 + u32::try_from(place).unwrap_or(99)
            }
            _ => round,
        };
        let mut seen = Self {
            entries: Vec::new(),
            results: Vec::new(),
            refusals: Vec::new(),
            closed: Vec::new(),
        };
        for entry in &leg.entries {
            let place = entry.occurrence;
            let n = entry.arguments["n"].as_i64().unwrap_or(-1);
            let round = relative(place.round);
            seen.entries.push((round, place.position, entry.attempt, n));
        }
        for update in leg.items().iter().flatten() {
            match update {
                Update::ToolCalled { occurrence, result } => seen.results.push((
                    relative(occurrence.round),
                    occurrence.position,
                    outcome_word(result.outcome()),
                )),
                Update::ToolApprovalRefused { request_id, reason } => {
                    seen.refusals
                        .push((request_id.to_string(), reason.to_string()));
                }
                Update::ToolApprovalClosed { request_id, .. } => {
                    seen.closed.push(request_id.to_string());
                }
                _ => {}
            }
        }
        seen
    }
}

fn same<T: Ord + std::fmt::Debug>(what: &str, seen: Vec<T>, expected: Vec<T>) -> Option<String> {
    let (mut seen, mut expected) = (seen, expected);
    seen.sort();
    expected.sort();
    (seen != expected).then(|| format!("{what}: {seen:?} instead of {expected:?}"))
}

/// What is not among the expected.
fn beyond<T: PartialEq + std::fmt::Debug>(
    what: &str,
    seen: &[T],
    expected: &[T],
) -> Option<String> {
    let mut left: Vec<&T> = expected.iter().collect();
    let mut beyond = Vec::new();
    for item in seen {
        match left.iter().position(|other| *other == item) {
            Some(place) => {
                left.remove(place);
            }
            None => beyond.push(item),
        }
    }
    (!beyond.is_empty()).then(|| format!("{what}: {beyond:?} is not among {expected:?}"))
}

fn words<T: Clone>(pairs: &[(T, &'static str)]) -> Vec<(T, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, word)| (key.clone(), (*word).to_owned()))
        .collect()
}

fn results(expected: &Expected) -> Vec<(u32, u32, String)> {
    let results = expected.results.iter();
    results
        .map(|(round, place, word)| (*round, *place, (*word).to_owned()))
        .collect()
}

/// A leg that ran to its end.
fn exact(world: &mut World, leg: &Leg, expected: &Expected, faults: &mut Vec<String>) {
    let seen = Seen::of(leg, expected);
    let end = match &leg.response {
        Ok(response) if response.pending.is_empty() => End::Stop,
        Ok(_) => End::Paused,
        Err(error) if error.kind() == ErrorKind::ApprovalRefused => {
            world.count("refused");
            match &expected.end {
                End::Refused(reasons) if reasons.iter().any(|one| error.code() == Some(one)) => {
                    expected.end.clone()
                }
                _ => End::Refused(Vec::new()),
            }
        }
        Err(error) => {
            faults.push(format!("the leg failed: {error:?}"));
            return;
        }
    };
    if end != expected.end {
        faults.push(format!("it ended {end:?}, not {:?}", expected.end));
    }
    faults.extend(same("D2, entries", seen.entries, expected.entries.clone()));
    faults.extend(same("outcomes", seen.results, results(expected)));
    faults.extend(same("E3", seen.refusals, words(&expected.refusals)));
    // A request that was made in this very leg has an id that the reference does not know.
    let mut closed = seen.closed;
    for request in &mut closed {
        if !world.run_of.contains_key(request) {
            request.clear();
        }
    }
    faults.extend(same("E7, closed", closed, expected.closed.clone()));
    let requests = leg.requests().len();
    if requests != expected.requests {
        faults.push(format!(
            "{requests} requests instead of {}",
            expected.requests
        ));
    }
    let pending: Vec<_> = leg
        .pending()
        .iter()
        .map(|call| (call.occurrence.position, waits(&call.waits_for).to_owned()))
        .collect();
    faults.extend(same("E4, pending", pending, words(&expected.pending)));
}

fn waits(waits_for: &WaitsFor) -> &'static str {
    match waits_for {
        WaitsFor::Approval(_) => "yes",
        WaitsFor::Data { .. } => "data",
        WaitsFor::ToolResult => "result",
        _ => "something else",
    }
}

/// Nothing happened in a leg that was stopped which would not have happened in a whole one; what a
/// cancel cuts off is cancelled.
fn bounded(leg: &Leg, expected: &Expected, cancelled: bool, faults: &mut Vec<String>) {
    let resumed = expected.answered.as_ref().map(|batch| batch.round);
    // Of a dropped leg the numbers of its new rounds are not known: only the resumed one counts.
    let of_batch = |round: u32| Some(round) == resumed;
    let entries: Vec<_> = leg
        .entries
        .iter()
        .filter(|entry| of_batch(entry.occurrence.round))
        .map(|entry| {
            let n = entry.arguments["n"].as_i64().unwrap_or(-1);
            let place = entry.occurrence;
            (place.round, place.position, entry.attempt, n)
        })
        .collect();
    faults.extend(beyond("D2, entries", &entries, &expected.entries));
    if leg.entries.len() > expected.entries.len() {
        faults.push(format!("D2, too many entries: {:?}", leg.entries));
    }
    if leg.requests().len() > expected.requests {
        faults.push(format!("{} requests", leg.requests().len()));
    }
    let seen = Seen::of(leg, expected);
    faults.extend(beyond("E3", &seen.refusals, &words(&expected.refusals)));
    let mut results = seen.results;
    results.retain(|(round, _, word)| {
        of_batch(*round) && !(cancelled && (word == "cancelled" || word == "skipped limit"))
    });
    faults.extend(beyond("outcomes", &results, &self::results(expected)));
}

/// Goes on from a leg that ended: the ids of new requests are learned.
fn after_end(world: &mut World, leg: &Leg, expected: &Expected, faults: &mut Vec<String>) {
    world.reference = expected.after.clone();
    let Some(batch) = &mut world.reference.open else {
        return;
    };
    let run = match &leg.response {
        Ok(response) => response.run_id.clone(),
        Err(_) => None,
    };
    if let Some(run) = run {
        if !batch.run.is_empty() && batch.run != run.as_str() {
            faults.push("the run has another id than before".to_owned());
        }
        run.as_str().clone_into(&mut batch.run);
        world.value_is_fresh = true;
    }
    for waiting in leg.pending() {
        let Some(call) = batch.calls.get_mut(waiting.occurrence.position as usize) else {
            continue;
        };
        batch.round = waiting.occurrence.round;
        let request = match &waiting.waits_for {
            WaitsFor::Approval(request) => request.request_id.clone(),
            WaitsFor::Data { request_id, .. } => request_id.clone(),
            _ => continue,
        };
        if let State::Yes(known) | State::Data(known) = &mut call.state {
            if known.is_empty() {
                if world.run_of.contains_key(&request) {
                    faults.push("a new request has an id that was there before".to_owned());
                }
                known.clone_from(&request);
            } else if *known != request {
                faults.push("a request has another id than before".to_owned());
            }
        }
        world.run_of.insert(request, batch.run.clone());
    }
}

pub(crate) async fn record(world: &World, batch: &Batch) -> Option<RunRecord> {
    let store = world.case.store_now();
    let run = RunId::from(batch.run.as_str());
    store.load(&run).await.expect("the store can be read")
}

/// The requests of a batch whose run is over: each is settled, as the reference says.
pub(crate) fn closed(
    world: &mut World,
    batch: &Batch,
    record: &RunRecord,
    faults: &mut Vec<String>,
) {
    for request in batch.calls.iter().filter_map(|call| call.state.request()) {
        match record.settlement(request) {
            Some(raf_core::Settlement::Answered) => {
                let settled = &mut world.reference.settled;
                settled.insert(request.to_owned(), Settled::Answered);
            }
            Some(_) => {
                let settled = &mut world.reference.settled;
                settled.insert(request.to_owned(), Settled::Closed);
            }
            None => faults.push("E2: a closed record has an open request".to_owned()),
        }
    }
    world.reference.open = None;
}

/// Goes on from a leg that was cancelled: all is settled and the record closed, or nothing happened.
async fn after_cancel(world: &mut World, leg: &Leg, expected: &Expected, faults: &mut Vec<String>) {
    let Some(batch) = world.reference.open.clone() else {
        return;
    };
    match record(world, &batch).await {
        Some(record) if record.closed => {
            if !leg.pending().is_empty() {
                faults.push("calls wait after a cancel".to_owned());
            }
            for (position, call) in (0..).zip(&batch.calls) {
                let settled = leg.items().iter().flatten().any(|update| {
                    matches!(update, Update::ToolCalled { occurrence, .. }
                        if occurrence.position == position && occurrence.round == batch.round)
                });
                let given = expected.answered.as_ref().is_some_and(|answered| {
                    call.state == State::Result
                        && answered.calls[position as usize].state == State::Done
                });
                if call.state.is_open() && !settled && !given {
                    faults.push(format!("A2: call {position} has no outcome after a cancel"));
                }
            }
            closed(world, &batch, &record, faults);
        }
        _ => {
            if !leg.entries.is_empty() || !leg.messages().is_empty() {
                faults.push("H2: a cancelled run is still open".to_owned());
            }
        }
    }
}
