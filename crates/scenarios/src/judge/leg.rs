//! Compares one leg, and its results, with what was expected of them.

use raf_core::{
    ChatMessage, Content, MediaSource, MessageRole, MessageStatus, ToolErrorClass, ToolOutcome,
    ToolResult, Usage, WaitsFor,
};

use super::{compare_lines, differ, end, ended_as, events_hold, has_events, tokens};
use crate::format::{ExpectLeg, Ordered, ResultDetail};
use crate::notation::{Line, Pattern, is_outcome, outcome_words};
use crate::play::{Leg, Player, waits};
use crate::report::Fault;

/// What differs of the leg that was played last.
pub(crate) fn leg(player: &Player<'_>, line: u64, expect: &ExpectLeg) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Some(leg) = player.legs.last() else {
        return faults;
    };
    ending(leg, line, expect, &mut faults);
    spent(leg, line, expect, &mut faults);
    let mut fault = |text: String| faults.push(Fault::new(line, text));
    if let Some(expected) = expect.requests
        && leg.seen.requests.len() != expected
    {
        let is = leg.seen.requests.len();
        fault(format!(
            "the leg made {is} model requests, expected {expected}"
        ));
    }
    if let Some(expected) = &expect.entered {
        let mut ids: Vec<String> = leg
            .entries
            .iter()
            .map(|(_, entry)| entry.call_id.clone())
            .collect();
        let mut expected = expected.clone();
        ids.sort();
        expected.sort();
        if ids != expected {
            fault(differ("the bodies that were entered", &ids, &expected));
        }
    }
    if let Some(expected) = &expect.text {
        let messages = leg.messages();
        let mut assistant = messages
            .iter()
            .filter(|message| message.role() == MessageRole::Assistant);
        let text = assistant.next_back().map(ChatMessage::text);
        let text = text.unwrap_or_default();
        if !Pattern::new(expected).fits(&text) {
            fault(format!("the last text is '{text}', expected '{expected}'"));
        }
    }
    if let Some(incomplete) = expect.incomplete {
        let messages = leg.messages();
        let mut assistant = messages
            .iter()
            .filter(|message| message.role() == MessageRole::Assistant);
        let is = assistant
            .next_back()
            .is_some_and(|message| message.status() == MessageStatus::Incomplete);
        if is != incomplete {
            fault(format!(
                "the last message is incomplete: {is}, expected {incomplete}"
            ));
        }
    }
    for (id, expected) in expect.call_arguments.iter() {
        let messages = leg.messages();
        let mut calls = messages.iter().flat_map(ChatMessage::tool_calls);
        let call = calls.find(|call| call.id() == id);
        let own = call.map(|call| call.arguments().to_owned());
        if own.as_ref() != Some(expected) {
            fault(format!(
                "the arguments of '{id}' are kept as {own:?}, expected '{expected}'"
            ));
        }
    }
    if let Some(expected) = &expect.messages {
        let lines = Line::of(&leg.messages());
        compare_lines("the new messages", &lines, expected, line, &mut faults);
    }
    if has_events(player) {
        for rule in &expect.events {
            events_hold(rule, &leg.events, &mut faults);
        }
    }
    for (id, expected) in expect.results.iter() {
        let Some(own) = leg.result(id) else {
            let lines = Line::of(&leg.messages());
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            let text = format!("there is no result of '{id}' in {lines:?}");
            faults.push(Fault::new(expected.line, text));
            continue;
        };
        for text in result(leg, &own, &expected.value) {
            let text = format!("the result of '{id}' {text}");
            faults.push(Fault::new(expected.line, text));
        }
    }
    faults
}

/// How it ended, and what waits.
fn ending(leg: &Leg, line: u64, expect: &ExpectLeg, faults: &mut Vec<Fault>) {
    let mut fault = |text: String| faults.push(Fault::new(line, text));
    if let Some(expected) = &expect.stop
        && !ended_as(leg, expected)
    {
        fault(format!(
            "the leg ended `{}`, expected `{expected}`",
            end(leg)
        ));
    }
    let pending = leg.pending();
    if let Some(expected) = &expect.pending {
        let own: Vec<String> = pending.iter().map(waits).collect();
        let fit = own.len() == expected.len()
            && own.iter().zip(expected).all(|(own, wanted)| {
                own == wanted || own.rsplit_once(' ').is_some_and(|(id, _)| id == wanted)
            });
        if !fit {
            fault(differ("the pending calls", &own, expected));
        }
    }
    if let Some(expected) = &expect.addresses {
        let own: Vec<String> = pending
            .iter()
            .map(|call| match &call.waits_for {
                WaitsFor::Data { address, .. } => address.clone(),
                _ => String::new(),
            })
            .collect();
        let fit = own.len() == expected.len()
            && own
                .iter()
                .zip(expected)
                .all(|(own, wanted)| Pattern::new(wanted).fits(own));
        if !fit {
            fault(differ("the addresses", &own, expected));
        }
    }
    if let Some(expected) = &expect.refused {
        let refused = leg
            .events
            .iter()
            .filter(|event| event[0] == "approval_refused");
        let own: Vec<String> = refused.map(|event| event[1..].join(" ")).collect();
        let mut left = own.clone();
        // Those without alternatives choose first.
        let mut wanted: Vec<&String> = expected.iter().collect();
        wanted.sort_by_key(|wanted| wanted.split('|').count());
        for wanted in wanted {
            let found = left
                .iter()
                .position(|own| wanted.split('|').any(|one| own == one.trim()));
            if let Some(place) = found {
                left.remove(place);
            }
        }
        let fit = own.len() == expected.len() && left.is_empty();
        if !fit {
            fault(differ("the refused answers", &own, expected));
        }
    }
    for (id, expected) in expect.information.iter() {
        let own = pending.iter().find(|call| call.call.id() == id);
        let own = own.and_then(|call| match &call.waits_for {
            WaitsFor::Data { information, .. } => Some(information),
            _ => None,
        });
        if own != Some(expected) {
            fault(format!(
                "'{id}' says {own:?} to the outside, expected {expected}"
            ));
        }
    }
    if let Some(expected) = &expect.parts {
        let messages = leg.messages();
        let assistant = messages
            .iter()
            .filter(|message| message.role() == MessageRole::Assistant);
        let own: Vec<String> = assistant.map(kinds).collect();
        let expected: Vec<String> = expected.iter().map(|kinds| kinds.join(" ")).collect();
        if own != expected {
            fault(differ("the parts of the messages", &own, &expected));
        }
    }
    if let Some(expected) = &expect.abandoned
        && leg.abandoned() != *expected
    {
        fault(differ("the abandoned calls", &leg.abandoned(), expected));
    }
}

/// The kinds of a message's parts, in order. Which parts a provider adds for itself is no matter of a
/// case: they are the same turn on another wire.
fn kinds(message: &ChatMessage) -> String {
    let is_the_providers = |part: &&Content| match part {
        Content::Unknown(part) => part.value.get("raf_provider").is_some(),
        _ => false,
    };
    let parts = message.contents().iter();
    let kinds = parts.filter(|part| !is_the_providers(part));
    let kinds = kinds.map(|part| match part {
        Content::Text(_) => "text",
        Content::Reasoning(_) => "reasoning",
        Content::ToolCall(_) => "call",
        Content::Refusal(_) => "refusal",
        Content::Image(_) => "image",
        Content::Audio(_) => "audio",
        Content::File(_) => "file",
        _ => "other",
    });
    kinds.collect::<Vec<_>>().join(" ")
}

/// Its tokens.
fn spent(leg: &Leg, line: u64, expect: &ExpectLeg, faults: &mut Vec<Fault>) {
    if let Some(expected) = expect.usage {
        tokens(
            "the tokens of the leg",
            &leg.usage(),
            expected,
            line,
            faults,
        );
    }
    if let Some(expected) = expect.run_usage {
        tokens(
            "the tokens of the run",
            &leg.run_usage(),
            expected,
            line,
            faults,
        );
    }
    for (name, expected) in expect.counters.iter() {
        let is = leg.usage().extra.get(name).copied().unwrap_or_default();
        if is != *expected {
            let text = format!("the counter '{name}' of the leg is {is}, expected {expected}");
            faults.push(Fault::new(line, text));
        }
    }
    if let Some(expected) = &expect.nested_rounds {
        nested(leg, line, expected, faults);
    }
    if let Some(expected) = &expect.rounds {
        let own: Vec<String> = leg
            .rounds()
            .iter()
            .filter(|round| round.nested.is_none())
            .map(|round| pair(&round.usage))
            .collect();
        let expected: Vec<String> = expected.iter().map(|pair| format!("{pair:?}")).collect();
        if own != expected {
            let text = differ("the tokens of the rounds", &own, &expected);
            faults.push(Fault::new(line, text));
        }
    }
}

/// The tokens of nested runs, by where they are nested.
fn nested(leg: &Leg, line: u64, expected: &Ordered<Vec<(u64, u64)>>, faults: &mut Vec<Fault>) {
    let run = leg.run_id();
    let run = run.as_ref().map_or("", |run| run.as_str());
    let rounds = leg.rounds();
    let own = rounds.iter().filter_map(|round| {
        let id = round.nested.as_ref()?.run_id.as_str();
        let place = id.strip_prefix(run).unwrap_or(id).trim_start_matches('/');
        Some(format!("{place}: {}", pair(&round.usage)))
    });
    let mut own: Vec<String> = own.collect();
    let mut expected: Vec<String> = expected
        .iter()
        .flat_map(|(place, pairs)| pairs.iter().map(move |pair| format!("{place}: {pair:?}")))
        .collect();
    // Runs side by side report in any order; those of one run in their own.
    let place = |line: &String| line.split(':').next().unwrap_or_default().to_owned();
    own.sort_by_key(place);
    expected.sort_by_key(place);
    if own != expected {
        let text = differ("the tokens of nested rounds", &own, &expected);
        faults.push(Fault::new(line, text));
    }
}

fn pair(usage: &Usage) -> String {
    let number = |count: Option<u64>| count.unwrap_or_default();
    let pair = (number(usage.input_tokens), number(usage.output_tokens));
    format!("{pair:?}")
}

fn result(leg: &Leg, own: &ToolResult, wanted: &ResultDetail) -> Vec<String> {
    let mut faults = Vec::new();
    let text = own.text();
    if let Some(outcome) = &wanted.outcome {
        let is = raf_testing::outcome_word(own.outcome());
        let words = outcome_words(outcome).unwrap_or_default();
        if !is_outcome(&is, &words) {
            faults.push(format!("is `{is}` ('{text}'), expected `{outcome}`"));
        }
    }
    if let Some(pattern) = &wanted.text
        && !Pattern::new(pattern).fits(&text)
    {
        faults.push(format!("says '{text}', expected '{pattern}'"));
    }
    for part in wanted
        .contains
        .iter()
        .filter(|part| !text.contains(part.as_str()))
    {
        faults.push(format!("says '{text}', which lacks '{part}'"));
    }
    for part in wanted
        .lacks
        .iter()
        .filter(|part| text.contains(part.as_str()))
    {
        faults.push(format!("says '{text}', which holds '{part}'"));
    }
    if let Some(most) = wanted.bytes_at_most
        && text.len() > most
    {
        faults.push(format!("has {} bytes, expected {most} at most", text.len()));
    }
    if wanted.names_correlation_id && !own.correlation_id().is_some_and(|id| text.contains(id)) {
        faults.push(format!("says '{text}', and names no correlation id"));
    }
    if let Some(started) = wanted.started {
        let is = match own.outcome() {
            ToolOutcome::Cancelled { started }
            | ToolOutcome::Error(ToolErrorClass::TimedOut { started }) => Some(started),
            _ => None,
        };
        if is != Some(started) {
            faults.push(format!(
                "says that its body had started: {is:?}, expected {started}"
            ));
        }
    }
    if let Some(arguments) = &wanted.ran_with
        && own.executed_arguments() != Some(arguments)
    {
        let is = own.executed_arguments();
        faults.push(format!("says that {is:?} ran, expected {arguments}"));
    }
    if let Some(parts) = &wanted.parts {
        let is: Vec<String> = own.content().iter().map(part_words).collect();
        if is != *parts {
            faults.push(differ("has parts that", &is, parts));
        }
    }
    for other in &wanted.unlike {
        if leg.result(other).is_some_and(|other| other.text() == text) {
            faults.push(format!("says '{text}', as that of '{other}' does"));
        }
    }
    faults
}

/// A typed part in words.
fn part_words(part: &Content) -> String {
    let (what, media) = match part {
        Content::Text(text) => return format!("text '{}'", text.text),
        Content::Image(media) => ("image", media),
        Content::Audio(media) => ("audio", media),
        Content::File(media) => ("file", media),
        _ => return "something else".to_owned(),
    };
    match &media.source {
        MediaSource::Url(url) => format!("{what} '{url}'"),
        _ => format!("{what} of data"),
    }
}
