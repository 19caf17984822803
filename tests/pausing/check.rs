//! What must hold of every leg of a case that pauses: V1 to V5 of the cases, and what the contract
//! says of every pause (A1, A7, B2, B3, B6, D2, E2, E4, I2).

use std::collections::BTreeSet;

use raf_core::{
    AgentResponseUpdate as Update, ChatMessage, FinishReason, ResponseFold, Usage, WaitsFor,
    normalise, validate_history,
};
use raf_testing::ScriptedRequest;
use raf_testing::invariants::{
    check_entries, check_gated_entries, check_partial_updates, check_prefixes, check_requests,
    check_updates,
};

use super::ledger::Ledger;
use crate::leg::Leg;
use crate::watch::SeenRequest;

/// Everything that is wrong with a leg.
pub(super) fn check_leg(leg: &Leg, ledger: &Ledger, conversation: &[ChatMessage]) -> Vec<String> {
    let mut faults = Vec::new();
    if !leg.seen.opened {
        return faults;
    }
    let requests: Vec<ScriptedRequest> = leg
        .requests()
        .iter()
        .map(|seen| seen.request.clone())
        .collect();
    faults.extend(check_requests(&requests));
    faults.extend(check_prefixes(&requests));
    faults.extend(updates(leg));
    faults.extend(check_entries(&ledger.entries));
    gated(ledger, &mut faults);
    stored(conversation, &mut faults);
    settled_in_their_leg(leg, &mut faults);
    sent_is_emitted(leg, &mut faults);
    returned_is_emitted(leg, &mut faults);
    usage(leg, ledger, &mut faults);
    pauses(leg, &mut faults);
    if !leg.seen.alive.is_empty() && leg.abandoned().is_empty() {
        faults.push(format!("V5: alive at the end: {:?}", leg.seen.alive));
    }
    faults
}

/// Everything that is wrong with what was seen of a leg that was dropped.
pub(super) fn check_dropped(leg: &Leg, ledger: &Ledger) -> Vec<String> {
    let requests: Vec<ScriptedRequest> = leg
        .requests()
        .iter()
        .map(|seen| seen.request.clone())
        .collect();
    let mut faults = check_requests(&requests);
    faults.extend(check_prefixes(&requests));
    faults.extend(check_partial_updates(leg.items()));
    faults.extend(check_entries(&ledger.entries));
    gated(ledger, &mut faults);
    sent_is_emitted(leg, &mut faults);
    faults
}

/// V4. What comes before the first message belongs to the batch that the leg resumed; behind it may be
/// another run, whose places count from the start again (E7).
fn updates(leg: &Leg) -> Vec<String> {
    let items = leg.items();
    let first = items
        .iter()
        .position(|item| matches!(item, Ok(Update::MessageStart { .. })));
    let Some(first) = first else {
        return check_updates(items);
    };
    let mut faults = check_partial_updates(&items[..first]);
    faults.extend(check_updates(&items[first..]));
    faults
}

/// V3: no gated body without a yes to its own request.
fn gated(ledger: &Ledger, faults: &mut Vec<String>) {
    for log in &ledger.gated_logs {
        faults.extend(check_gated_entries(
            &log.calls(),
            &ledger.asked,
            &ledger.answers,
        ));
    }
}

/// V1, V5: what the caller keeps is valid as soon as the leg has ended.
fn stored(conversation: &[ChatMessage], faults: &mut Vec<String>) {
    let found = validate_history(&normalise(conversation)).err();
    let found = found.unwrap_or_default();
    faults.extend(found.iter().map(|fault| format!("V1, stored: {fault}")));
}

/// V1, V2: each call of a reply of this leg has one result in it, or waits; nothing else has one
/// twice.
fn settled_in_their_leg(leg: &Leg, faults: &mut Vec<String>) {
    let messages = leg.messages();
    let pending = leg.pending();
    for (index, message) in messages.iter().enumerate() {
        let behind: Vec<_> = messages[index + 1..]
            .iter()
            .take_while(|next| next.tool_calls().next().is_none())
            .flat_map(ChatMessage::tool_results)
            .collect();
        for (position, call) in (0..).zip(message.tool_calls()) {
            let settled = behind
                .iter()
                .filter(|result| {
                    result.call_id() == call.id()
                        && result
                            .occurrence()
                            .is_some_and(|own| own.position == position)
                })
                .count();
            let waits = pending
                .iter()
                .any(|waiting| waiting.occurrence.position == position && waiting.call == *call);
            if settled + usize::from(waits) != 1 {
                faults.push(format!(
                    "V1: the call '{}' at {position} has {settled} results, and waits: {waits}",
                    call.id()
                ));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for message in &messages {
        if message.tool_calls().next().is_some() {
            // Places of another run, maybe.
            seen.clear();
        }
        for result in message.tool_results() {
            let id = result.call_id();
            if result.occurrence().is_none() {
                faults.push(format!("the result of '{id}' has no place"));
            } else if !seen.insert(result.occurrence()) {
                faults.push(format!("V4: a second outcome of '{id}'"));
            }
        }
    }
}

/// B2: each request is `normalise` of the input and of what was emitted until then.
fn sent_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    for (index, seen) in leg.requests().iter().enumerate() {
        let mut transcript = leg.input.clone();
        transcript.extend(folded(leg, seen.items_before));
        let expected = normalise(&transcript);
        let sent = &seen.request.messages;
        if expected != *sent {
            faults.push(format!(
                "B2: request {index} is {sent:#?} instead of {expected:#?}"
            ));
        }
        let options = &seen.request.options;
        if !options.tool_approval_responses.is_empty() || options.paused_run.is_some() {
            faults.push(format!("I5: request {index} still holds resume data"));
        }
    }
}

/// The messages that the first so many items fold to.
fn folded(leg: &Leg, items: usize) -> Vec<ChatMessage> {
    let mut fold = ResponseFold::new();
    for update in leg.items().iter().take(items).flatten() {
        fold.push(update);
    }
    fold.messages().to_vec()
}

/// B1, B2: what the caller gets is the fold of what was emitted.
fn returned_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    let emitted = folded(leg, leg.items().len());
    let returned = leg.messages();
    if emitted != returned {
        faults.push(format!(
            "B2: the caller got {returned:#?}, but {emitted:#?} was emitted"
        ));
    }
    if let Some(Err(error)) = leg.items().last()
        && error.leg().is_none()
    {
        faults.push(format!(
            "C3: the error lacks what the leg had done: {error}"
        ));
    }
}

/// B6: the leg's tokens are those of its requests, the run's those of all its legs.
fn usage(leg: &Leg, ledger: &Ledger, faults: &mut Vec<String>) {
    let sum = |spent: &[Usage]| {
        let mut sum = Usage::default();
        for usage in spent {
            sum += usage;
        }
        sum
    };
    let own: Vec<Usage> = leg.requests().iter().map(SeenRequest::usage).collect();
    if leg.usage() != sum(&own) {
        faults.push(format!("B6: the leg's usage is {:?}", leg.usage()));
    }
    let run = match &leg.response {
        Ok(response) => response.run_id.clone(),
        Err(error) => error.leg().and_then(|leg| leg.run_id.clone()),
    };
    let Some(run) = run else {
        faults.push("the end does not name its run".to_owned());
        return;
    };
    let spent = ledger.runs.get(&run).cloned().unwrap_or_default();
    // A leg that failed before it had its run knows nothing of it.
    if !ledger.lost_usage && (leg.response.is_ok() || !own.is_empty()) {
        if leg.run_usage() != sum(&spent) {
            let run = leg.run_usage();
            faults.push(format!(
                "B6: the run's usage is {run:?}, not that of {spent:?}"
            ));
        }
        let rounds: Vec<Usage> = leg.rounds().into_iter().map(|round| round.usage).collect();
        if rounds != spent {
            faults.push(format!("B6: the rounds are {rounds:?}, not {spent:?}"));
        }
    }
}

/// C2, I2, I4: reason, pending list and paused run say the same.
fn pauses(leg: &Leg, faults: &mut Vec<String>) {
    let Ok(response) = &leg.response else { return };
    let decides =
        |waits_for: &WaitsFor| matches!(waits_for, WaitsFor::Approval(_) | WaitsFor::Data { .. });
    let pending = &response.pending;
    let expected = if pending.iter().any(|call| decides(&call.waits_for)) {
        Some(FinishReason::AwaitingApproval)
    } else if pending.is_empty() {
        None
    } else {
        Some(FinishReason::AwaitingToolResults)
    };
    let waits = [
        FinishReason::AwaitingApproval,
        FinishReason::AwaitingToolResults,
    ];
    let reason = &response.finish_reason;
    if expected.as_ref().is_some_and(|expected| expected != reason)
        || (expected.is_none() && waits.contains(reason))
    {
        faults.push(format!("C2: {reason:?} with {pending:?} pending"));
    }
    let kept = response
        .paused_run
        .as_ref()
        .map(raf_core::PausedRun::pending);
    if kept.unwrap_or_default() != *pending {
        faults.push("I2: the paused run does not wait for what is pending".to_owned());
    }
    let terminal = leg.items().iter().flatten().last();
    if let Some(Update::Finish { finish }) = terminal
        && finish.pending != *pending
    {
        faults.push("E4: the finish lists something else than the response".to_owned());
    }
}
