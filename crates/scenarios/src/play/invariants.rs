//! What must hold of every leg, whatever was played: V1 to V6 of the cases, and what the contract says
//! of every leg and every pause (A1, A3, A7, B2, B3, B5, B6, C1, C2, C3, D2, D9, E2, E4, G1, I2, I5).

use std::collections::{BTreeMap, BTreeSet};

use raf_core::{
    AgentResponseUpdate as Update, ChatMessage, FinishReason, Occurrence, ResponseFold,
    ToolErrorClass, ToolOutcome, Usage, WaitsFor, normalise, validate_history,
};
use raf_testing::invariants::{
    check_entries, check_gated_entries, check_prefixes, check_requests, check_updates,
};
use raf_testing::{RecordedCall, ScriptedRequest};

use super::ledger::Ledger;
use super::leg::Leg;
use super::watch::SeenRequest;

/// Everything that is wrong with a leg.
pub(crate) fn check_leg(leg: &Leg, ledger: &Ledger, conversation: &[ChatMessage]) -> Vec<String> {
    let mut faults = Vec::new();
    let requests: Vec<ScriptedRequest> = leg
        .seen
        .requests
        .iter()
        .map(|seen| seen.request.clone())
        .collect();
    faults.extend(check_requests(&requests));
    let nested = leg.seen.nested.iter().map(|seen| seen.request.clone());
    faults.extend(check_requests(&nested.collect::<Vec<_>>()));
    faults.extend(check_prefixes(&requests));
    faults.extend(check_entries(&ledger.entries));
    arguments_are_objects(&requests, &mut faults);
    for log in &ledger.gated_logs {
        let entries = log.calls();
        faults.extend(check_gated_entries(
            &entries,
            &ledger.asked,
            &ledger.answers,
        ));
    }
    let found = validate_history(&normalise(conversation)).err();
    let found = found.unwrap_or_default();
    faults.extend(found.iter().map(|fault| format!("V1, stored: {fault}")));
    if leg.response.is_none() || !leg.seen.opened {
        return faults;
    }
    faults.extend(check_updates(&leg.seen.items));
    settled_in_their_leg(leg, &mut faults);
    messages_end(leg, &mut faults);
    sent_is_emitted(leg, &mut faults);
    said_is_emitted(leg, &mut faults);
    returned_is_emitted(leg, &mut faults);
    usage(leg, ledger, &mut faults);
    pauses(leg, &mut faults);
    outcomes_tell_the_truth(leg, &mut faults);
    bad_replies_run_nothing(leg, &mut faults);
    let abandoned = leg.abandoned().len();
    for (what, count) in &leg.seen.alive {
        if !what.starts_with("bodies") || *count > abandoned {
            faults.push(format!(
                "V5: at the terminal item there are still {count} {what}"
            ));
        }
    }
    faults
}

/// A4: what is sent as arguments is a JSON object.
fn arguments_are_objects(requests: &[ScriptedRequest], faults: &mut Vec<String>) {
    let messages = requests.iter().flat_map(|request| &request.messages);
    for call in messages.flat_map(ChatMessage::tool_calls) {
        let sent: Result<serde_json::Value, _> = serde_json::from_str(call.arguments());
        if !sent.is_ok_and(|sent| sent.is_object()) {
            let sent = call.arguments();
            faults.push(format!("A4: '{}' is sent with '{sent}'", call.id()));
        }
    }
}

/// V1, V2: each call of a reply of this leg has one result in it, or waits.
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
            // What waits within a call is named by its own, inner call.
            let is_last = !messages[index + 1..]
                .iter()
                .any(|next| next.tool_calls().next().is_some());
            let waits = pending.iter().any(|waiting| {
                waiting.occurrence.position == position
                    && (waiting.call == *call
                        || (is_last && !message.tool_calls().any(|own| *own == waiting.call)))
            });
            if settled + usize::from(waits) != 1 {
                faults.push(format!(
                    "V1: the call '{}' at {position} has {settled} results, and waits: {waits}",
                    call.id()
                ));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for result in messages.iter().flat_map(ChatMessage::tool_results) {
        let key = (result.occurrence(), result.call_id());
        if result.occurrence().is_none() {
            faults.push(format!("the result of '{}' has no place", result.call_id()));
        } else if !seen.insert(key) {
            faults.push(format!("V4: a second outcome of '{}'", result.call_id()));
        }
    }
}

/// B3: a message that started ends, or is reset, before the terminal item.
fn messages_end(leg: &Leg, faults: &mut Vec<String>) {
    let mut open = false;
    for update in leg.seen.items.iter().flatten() {
        match update {
            Update::MessageStart { .. } => open = true,
            Update::MessageEnd { .. } | Update::AttemptReset { .. } => open = false,
            _ => {}
        }
    }
    if open {
        faults.push("B3: the last message does not end".to_owned());
    }
}

/// The messages that the first so many items fold to.
fn folded(leg: &Leg, items: usize) -> Vec<ChatMessage> {
    let mut fold = ResponseFold::new();
    for update in leg.seen.items.iter().take(items).flatten() {
        fold.push(update);
    }
    fold.messages().to_vec()
}

/// B2: each request is `normalise` of the input and of what was emitted until then; I5: nothing of a
/// resume is left in it.
fn sent_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    for (index, seen) in leg.seen.requests.iter().enumerate() {
        let mut transcript = leg.input.clone();
        transcript.extend(folded(leg, seen.items_before));
        let expected = normalise(&transcript);
        let sent = &seen.request.messages;
        if expected != *sent {
            faults.push(format!(
                "B2: request {index} is {sent:?} instead of {expected:?}"
            ));
        }
        let options = &seen.request.options;
        if !options.tool_approval_responses.is_empty() || options.paused_run.is_some() {
            faults.push(format!("I5: request {index} still holds resume data"));
        }
    }
}

/// B4, B7: all that the model says is passed on, as it is and in its order.
fn said_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    let replies = leg.seen.requests.iter().flat_map(|seen| &seen.updates);
    let said: Vec<&Update> = replies.filter(|update| is_said(update)).collect();
    let items = leg.seen.items.iter().flatten();
    let emitted: Vec<&Update> = items.filter(|update| is_said(update)).collect();
    if said != emitted {
        faults.push(format!(
            "B7: the model said {said:?}, but {emitted:?} was emitted"
        ));
    }
}

/// Whether a model says this within a reply; empty pieces say nothing.
fn is_said(update: &Update) -> bool {
    match update {
        Update::TextDelta { text } | Update::ReasoningDelta { text } => !text.is_empty(),
        Update::ReasoningData { .. }
        | Update::Content { .. }
        | Update::ToolCallStart { .. }
        | Update::ToolCallArgs { .. }
        | Update::ToolCallEnd { .. }
        | Update::Usage { .. }
        | Update::ResponseMetadata { .. }
        | Update::AttemptReset { .. } => true,
        _ => false,
    }
}

/// B1, B2, C3: what the caller gets is the fold of what was emitted, in success and in failure.
fn returned_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    let emitted = folded(leg, leg.seen.items.len());
    let returned = leg.messages();
    if emitted != returned {
        faults.push(format!(
            "B2: the caller got {returned:?}, but {emitted:?} was emitted"
        ));
    }
    if let Some(Err(error)) = leg.seen.items.last()
        && error.leg().is_none()
    {
        faults.push(format!(
            "C3: the error lacks what the leg had done: {error}"
        ));
    }
}

fn sum(spent: &[Usage]) -> Usage {
    let mut sum = Usage::default();
    for usage in spent {
        sum += usage;
    }
    sum
}

/// B6: the leg's tokens are those of its requests, the run's those of all its legs.
fn usage(leg: &Leg, ledger: &Ledger, faults: &mut Vec<String>) {
    let nested = leg.seen.nested.iter();
    let own = leg.seen.requests.iter().chain(nested);
    let own: Vec<Usage> = own.map(SeenRequest::usage).collect();
    if leg.usage() != sum(&own) {
        faults.push(format!(
            "B6: the leg's usage is {:?}, that of its replies {:?}",
            leg.usage(),
            sum(&own)
        ));
    }
    let Some(run) = leg.run_id() else {
        faults.push("the end does not name its run".to_owned());
        return;
    };
    // A leg that failed before it had its run knows nothing of it.
    if leg.ended().is_none() && own.is_empty() {
        return;
    }
    let spent = ledger.runs.get(&run).cloned().unwrap_or_default();
    let nested = ledger.nested.get(&run).cloned().unwrap_or_default();
    if leg.run_usage() != sum(&[spent.clone(), nested.clone()].concat()) {
        let run = leg.run_usage();
        faults.push(format!(
            "B6: the run's usage is {run:?}, not that of {spent:?}"
        ));
    }
    let (within, rounds): (Vec<_>, Vec<_>) = leg
        .rounds()
        .into_iter()
        .partition(|round| round.nested.is_some());
    let rounds: Vec<Usage> = rounds.into_iter().map(|round| round.usage).collect();
    if rounds != spent {
        faults.push(format!("B6: the rounds are {rounds:?}, not {spent:?}"));
    }
    // Runs that are nested side by side report in any order.
    let sorted = |spent: Vec<Usage>| {
        let mut words: Vec<String> = spent
            .iter()
            .filter(|usage| !usage.is_empty())
            .map(|usage| format!("{usage:?}"))
            .collect();
        words.sort();
        words
    };
    let within = sorted(within.into_iter().map(|round| round.usage).collect());
    let nested = sorted(nested);
    if within != nested {
        faults.push(format!(
            "B6: the nested rounds are {within:?}, not {nested:?}"
        ));
    }
}

/// C2, I2, I4: reason, pending list and paused run say the same.
fn pauses(leg: &Leg, faults: &mut Vec<String>) {
    let Some(response) = leg.ended() else { return };
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
    let reason = &response.finish_reason;
    if expected.as_ref().is_some_and(|expected| expected != reason)
        || (expected.is_none() && reason.is_pause())
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
}

/// The entries that belong to calls of the run itself, not to those of runs nested in it.
fn own_entries(leg: &Leg) -> impl Iterator<Item = &(String, RecordedCall)> {
    let nested = |entry: &RecordedCall| entry.run_id.as_str().contains('/');
    leg.entries.iter().filter(move |(_, entry)| !nested(entry))
}

/// C1, D2, D9: an outcome says whether the body was entered, and is never an empty text.
fn outcomes_tell_the_truth(leg: &Leg, faults: &mut Vec<String>) {
    let entered: BTreeSet<Occurrence> = own_entries(leg)
        .map(|(_, entry)| entry.occurrence)
        .collect();
    let mut started = BTreeMap::new();
    for update in leg.seen.items.iter().flatten() {
        match update {
            Update::ToolStarted { occurrence, call } => {
                started.insert(*occurrence, call.id.as_str());
            }
            Update::ToolCalled { occurrence, result } => {
                let was = entered.contains(occurrence);
                if must_have_entered(result.outcome()).is_some_and(|must| must != was) {
                    faults.push(format!(
                        "C1: {occurrence} is {:?}, and its body was entered: {was}",
                        result.outcome()
                    ));
                }
                let blank = result
                    .content()
                    .iter()
                    .all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()));
                if blank {
                    faults.push(format!("D9: the result of {occurrence} is blank"));
                }
            }
            _ => {}
        }
    }
    for (_, entry) in own_entries(leg) {
        match started.get(&entry.occurrence) {
            Some(id) if *id == entry.call_id => {}
            _ => faults.push(format!(
                "V4: {} was entered as '{}' without such a start",
                entry.occurrence, entry.call_id
            )),
        }
    }
}

/// Whether a body must, must not, or may have been entered for this outcome.
fn must_have_entered(outcome: ToolOutcome) -> Option<bool> {
    match outcome {
        ToolOutcome::Cancelled { started: true }
        | ToolOutcome::Error(ToolErrorClass::TimedOut { started: true }) => Some(true),
        ToolOutcome::Denied
        | ToolOutcome::Skipped { .. }
        | ToolOutcome::Cancelled { started: false }
        | ToolOutcome::Error(
            ToolErrorClass::UnknownTool | ToolErrorClass::TimedOut { started: false },
        ) => Some(false),
        // Middleware answers in the place of a body, and a body may refuse what the schema let
        // through.
        _ => None,
    }
}

/// G1: a reply that was cut, filtered or failed executes none of its calls.
fn bad_replies_run_nothing(leg: &Leg, faults: &mut Vec<String>) {
    let replies = leg.seen.requests.iter();
    for reply in replies {
        let bad = matches!(
            reply.ended,
            None | Some(FinishReason::Length | FinishReason::ContentFilter)
        );
        let ids = reply.updates.iter().filter_map(|update| match update {
            Update::ToolCallEnd { call, .. } => Some(call.id()),
            _ => None,
        });
        for id in ids {
            let ran = leg.entries.iter().any(|(_, entry)| entry.call_id == id);
            if bad && ran && !id.is_empty() {
                faults.push(format!(
                    "G1: '{id}' was entered, and its reply ended {:?}",
                    reply.ended
                ));
            }
        }
    }
}
