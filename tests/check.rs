//! What must hold of every leg, whatever was played: V1 to V6 of the cases, contract A1, A3, A7, B2,
//! B3, B5, B6, C1, C3, D2, D9 and G1.

use std::collections::{BTreeMap, BTreeSet};

use raf_core::{
    AgentResponseUpdate, ChatMessage, FinishReason, MessageRole, Occurrence, ResponseFold,
    ToolOutcome, Usage, normalise,
};
use raf_testing::ScriptedRequest;
use raf_testing::invariants::{
    check_entries, check_prefixes, check_requests, check_transcript, check_updates,
};

use crate::leg::Leg;
use crate::watch::{Alive, SeenRequest};

/// Everything that is wrong with a leg.
pub fn check_leg(leg: &Leg) -> Vec<String> {
    let mut faults = Vec::new();
    if !leg.seen.opened {
        // The request was wrong by itself: there was no leg.
        return faults;
    }
    let requests: Vec<ScriptedRequest> = leg
        .requests()
        .iter()
        .map(|seen| seen.request.clone())
        .collect();
    faults.extend(check_requests(&requests));
    faults.extend(check_prefixes(&requests));
    faults.extend(check_updates(leg.items()));
    faults.extend(check_entries(&leg.entries));
    let messages = leg.messages();
    let own = &messages[results_of_earlier_legs(leg, &messages)..];
    faults.extend(check_transcript(own, &leg.pending()));
    messages_end(leg, &mut faults);
    sent_is_emitted(leg, &mut faults);
    results_stand_in_their_places(leg, &mut faults);
    said_is_emitted(leg, &mut faults);
    returned_is_emitted(leg, &mut faults);
    usage_is_reported(leg, &mut faults);
    nothing_is_alive(leg, &mut faults);
    outcomes_tell_the_truth(leg, &mut faults);
    bad_replies_run_nothing(leg, &mut faults);
    faults
}

/// How many messages a leg begins with that settle calls which an earlier leg had left open.
fn results_of_earlier_legs(leg: &Leg, messages: &[ChatMessage]) -> usize {
    let open = fillers(&leg.input);
    let results = messages
        .iter()
        .take_while(|message| message.role() == MessageRole::Tool);
    results.count().min(open)
}

/// How many calls have no result of their own: `normalise` fills it.
fn fillers(messages: &[ChatMessage]) -> usize {
    let sent = normalise(messages);
    let results = sent.iter().flat_map(ChatMessage::tool_results);
    let cancelled = ToolOutcome::Cancelled { started: true };
    results
        .filter(|result| result.outcome() == cancelled && result.occurrence().is_none())
        .count()
}

/// B3: a message that started ends, or is reset, before the terminal item, a failure too.
fn messages_end(leg: &Leg, faults: &mut Vec<String>) {
    let mut open = false;
    for update in leg.items().iter().flatten() {
        match update {
            AgentResponseUpdate::MessageStart { .. } => open = true,
            AgentResponseUpdate::MessageEnd { .. } | AgentResponseUpdate::AttemptReset { .. } => {
                open = false;
            }
            _ => {}
        }
    }
    if open {
        faults.push("the last message does not end".to_owned());
    }
}

/// B2: each request is `normalise` of the input and of what was emitted until then.
fn sent_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    let mut fold = ResponseFold::new();
    let mut items = leg.items().iter();
    let mut read = 0;
    for (index, seen) in leg.requests().iter().enumerate() {
        for update in items.by_ref().take(seen.items_before - read).flatten() {
            fold.push(update);
        }
        read = seen.items_before;
        let mut transcript = leg.input.clone();
        transcript.extend_from_slice(fold.messages());
        let expected = normalise(&transcript);
        let sent = &seen.request.messages;
        if expected != *sent {
            faults.push(format!(
                "request {index} is not what was emitted: {sent:#?} instead of {expected:#?}"
            ));
        }
    }
}

/// A1, A6: in each request the n-th result behind an assistant message is that of its n-th call,
/// whatever the ids are.
fn results_stand_in_their_places(leg: &Leg, faults: &mut Vec<String>) {
    for (index, seen) in leg.requests().iter().enumerate() {
        let mut position = 0;
        for message in &seen.request.messages {
            if message.role() == MessageRole::Assistant {
                position = 0;
            }
            for result in message.tool_results() {
                let own = result.occurrence().map(|place| place.position);
                if own.is_some_and(|own| own != position) {
                    faults.push(format!(
                        "request {index}: behind '{}' stands the result of call {own:?}, not of \
                         call {position}",
                        result.call_id()
                    ));
                }
                position += 1;
            }
        }
    }
}

/// B4, B7: all that the model says is passed on, as it is and in its order.
fn said_is_emitted(leg: &Leg, faults: &mut Vec<String>) {
    let replies = leg.requests().iter().flat_map(|seen| &seen.updates);
    let said: Vec<&AgentResponseUpdate> = replies.filter(|update| is_said(update)).collect();
    let emitted: Vec<&AgentResponseUpdate> = leg
        .items()
        .iter()
        .flatten()
        .filter(|update| is_said(update))
        .collect();
    if said != emitted {
        faults.push(format!(
            "the model said {said:#?}, but {emitted:#?} was emitted"
        ));
    }
}

/// Whether a model says this within a reply; empty pieces say nothing.
fn is_said(update: &AgentResponseUpdate) -> bool {
    use AgentResponseUpdate as Update;
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
    let emitted = leg.folded();
    let returned = leg.messages();
    if emitted != returned {
        faults.push(format!(
            "the caller got {returned:#?}, but {emitted:#?} was emitted"
        ));
    }
    if let Some(Err(error)) = leg.items().last()
        && error.leg().is_none()
    {
        faults.push(format!(
            "the terminal error lacks what the leg had done: {error}"
        ));
    }
}

/// B6: one entry per request, each what its reply reported, and their sum.
fn usage_is_reported(leg: &Leg, faults: &mut Vec<String>) {
    let reported: Vec<Usage> = leg.requests().iter().map(SeenRequest::usage).collect();
    let rounds: Vec<Usage> = leg.rounds().into_iter().map(|round| round.usage).collect();
    let mut sum = Usage::default();
    for usage in &reported {
        sum += usage;
    }
    let mut of_run = sum.clone();
    if reported.is_empty() {
        // A leg that asked for nothing may tell of a run that waits, whose requests came before.
        of_run = Usage::default();
        for usage in &rounds {
            of_run += usage;
        }
    } else if rounds != reported {
        faults.push(format!(
            "the rounds say {rounds:?}, the replies {reported:?}"
        ));
    }
    for (what, usage, sum) in [("leg", leg.usage(), sum), ("run", leg.run_usage(), of_run)] {
        if usage != sum {
            faults.push(format!("the {what}'s usage is {usage:?}, not {sum:?}"));
        }
    }
}

/// V5: at the terminal item no body and no model stream is alive, abandoned bodies excepted.
fn nothing_is_alive(leg: &Leg, faults: &mut Vec<String>) {
    let abandoned = leg.abandoned().len();
    for alive in &leg.seen.alive {
        if !matches!(alive, Alive::Bodies(_, count) if *count <= abandoned) {
            faults.push(format!("at the terminal item there is still {alive:?}"));
        }
    }
}

/// C1, D2, D9: an outcome says whether the body was entered, and is never an empty text.
fn outcomes_tell_the_truth(leg: &Leg, faults: &mut Vec<String>) {
    let entered: BTreeSet<Occurrence> = leg.entries.iter().map(|entry| entry.occurrence).collect();
    let mut started = BTreeSet::new();
    let mut labels: BTreeMap<Occurrence, &str> = BTreeMap::new();
    let mut asked = false;
    for update in leg.items().iter().flatten() {
        match update {
            AgentResponseUpdate::ToolCallEnd { .. } => asked = true,
            // Settled for an earlier leg, whose occurrences may be those of this one's calls.
            AgentResponseUpdate::ToolCalled { .. } if !asked => {}
            AgentResponseUpdate::ToolStarted { occurrence, call } => {
                started.insert(*occurrence);
                labels.insert(*occurrence, &call.id);
            }
            AgentResponseUpdate::ToolCalled { occurrence, result } => {
                let was_entered = entered.contains(occurrence);
                if must_have_entered(result.outcome()).is_some_and(|must| must != was_entered) {
                    faults.push(format!(
                        "{occurrence} is {:?}, yet its body was {}",
                        result.outcome(),
                        if was_entered {
                            "entered"
                        } else {
                            "not entered"
                        }
                    ));
                }
                let blank = result
                    .content()
                    .iter()
                    .all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()));
                if blank {
                    faults.push(format!("the result of {occurrence} is blank"));
                }
            }
            _ => {}
        }
    }
    for entry in &leg.entries {
        if !started.contains(&entry.occurrence) {
            faults.push(format!("{} was entered without a start", entry.occurrence));
        }
        if labels
            .get(&entry.occurrence)
            .is_some_and(|id| *id != entry.call_id)
        {
            faults.push(format!(
                "{} was entered as '{}'",
                entry.occurrence, entry.call_id
            ));
        }
    }
}

/// Whether a body must, must not, or may have been entered for this outcome.
fn must_have_entered(outcome: ToolOutcome) -> Option<bool> {
    use raf_core::ToolErrorClass as Class;
    match outcome {
        ToolOutcome::Ok
        | ToolOutcome::Cancelled { started: true }
        | ToolOutcome::Error(
            Class::Failed
            | Class::Panicked
            | Class::PermissionDenied
            | Class::TimedOut { started: true },
        ) => Some(true),
        ToolOutcome::Denied
        | ToolOutcome::Skipped { .. }
        | ToolOutcome::Cancelled { started: false }
        | ToolOutcome::Error(Class::UnknownTool | Class::TimedOut { started: false }) => {
            Some(false)
        }
        // A body may find the arguments senseless that the schema let through.
        _ => None,
    }
}

/// G1: a reply that was cut, filtered or failed executes none of its calls.
fn bad_replies_run_nothing(leg: &Leg, faults: &mut Vec<String>) {
    for entry in &leg.entries {
        let round = entry.occurrence.round as usize;
        let ended = leg
            .requests()
            .get(round)
            .and_then(|seen| seen.ended.as_ref());
        if matches!(
            ended,
            None | Some(FinishReason::Length | FinishReason::ContentFilter)
        ) {
            faults.push(format!(
                "{} was entered, and its reply ended {ended:?}",
                entry.occurrence
            ));
        }
    }
}

/// A1, A2 over a whole conversation, as the caller keeps it after a leg: valid to send, and no call
/// without a result but those that are pending.
pub fn check_conversation(messages: &[ChatMessage], pending: usize) -> Vec<String> {
    let sendable = raf_core::validate_history(&normalise(messages));
    let faults = sendable.err().unwrap_or_default();
    let mut faults: Vec<String> = faults
        .iter()
        .map(|fault| format!("the conversation after normalise: {fault}"))
        .collect();
    let open = fillers(messages);
    if open != pending {
        faults.push(format!(
            "{open} calls have no result, and {pending} are pending"
        ));
    }
    faults
}
