//! Compares what came out with what was expected.

mod leg;
mod never;
mod request;

use std::time::Duration;

use raf_core::Usage;

pub(crate) use self::leg::leg;
use crate::format::{Entries, Expect, Located, Mode};
use crate::load::Action;
use crate::notation::{Event, EventRule, Line, LinePattern, is_stop, show, stop_words};
use crate::play::{Leg, Player, is_model_error};
use crate::report::Fault;
use crate::way::Form;

/// What differs of a whole case.
pub(crate) fn case(player: &Player<'_>, expect: &Expect, elapsed: Duration) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (tool, entries) in expect.exec.iter() {
        executions(player, tool, entries, &mut faults);
    }
    if let Some(expected) = &expect.requests
        && player.requests.len() != expected.value
    {
        let is = player.requests.len();
        let text = format!("{is} model requests were made, expected {}", expected.value);
        faults.push(Fault::new(expected.line, text));
    }
    for (number, expected) in expect.request.iter() {
        request::request(player, number, expected, &mut faults);
    }
    if has_events(player) {
        let events: Vec<Event> = all_events(player);
        for rule in &expect.events {
            events_hold(rule, &events, &mut faults);
        }
    }
    if let Some(expected) = &expect.stop {
        stops(player, expected, &mut faults);
    }
    refusals_are_expected(player, &mut faults);
    if let Some(expected) = &expect.usage {
        let mut usage = Usage::default();
        for leg in &player.legs {
            usage += &leg.usage();
        }
        tokens(
            "the tokens of all legs",
            &usage,
            expected.value,
            expected.line,
            &mut faults,
        );
    }
    if let Some(expected) = &expect.conversation {
        let lines = Line::of(&player.conversation);
        compare_lines(
            "the conversation",
            &lines,
            &expected.value,
            expected.line,
            &mut faults,
        );
    }
    for (name, expected) in expect.counters.iter() {
        let is = player.outside.counter(name);
        if is != expected.value {
            let text = format!("the counter '{name}' is {is}, expected {}", expected.value);
            faults.push(Fault::new(expected.line, text));
        }
    }
    if let Some(expected) = &expect.trace {
        let traced = player.outside.traced();
        if traced != expected.value {
            let text = differ("the trace", &traced, &expected.value);
            faults.push(Fault::new(expected.line, text));
        }
    }
    if let Some(expected) = &expect.trace_counts {
        let traced = player.outside.traced();
        for (wanted, count) in expected.value.iter() {
            let is = traced.iter().filter(|line| *line == wanted).count();
            if is != *count {
                let text =
                    format!("the trace holds `{wanted}` {is} times, expected {count}: {traced:?}");
                faults.push(Fault::new(expected.line, text));
            }
        }
    }
    if let Some(most) = &expect.elapsed_ms_at_most
        && elapsed > Duration::from_millis(most.value)
    {
        let text = format!(
            "{} ms passed, expected {} at most",
            elapsed.as_millis(),
            most.value
        );
        faults.push(Fault::new(most.line, text));
    }
    for never in &expect.never {
        if let Some(text) = never::happened(player, &never.value) {
            faults.push(Fault::new(never.line, text));
        }
    }
    faults
}

/// Whether the way shows events: the executor alone does in its stream only.
pub(crate) fn has_events(player: &Player<'_>) -> bool {
    player.scenario.mode == Mode::Loop || player.way.form == Form::Stream
}

fn all_events(player: &Player<'_>) -> Vec<Event> {
    let events = player.legs.iter().flat_map(|leg| &leg.events);
    events.cloned().collect()
}

/// A rule about events, which was found to be one when the file was read.
fn events_hold(rule: &Located<String>, events: &[Event], faults: &mut Vec<Fault>) {
    let fault = match EventRule::parse(&rule.value) {
        Ok(rule) => rule.fault(events),
        Err(text) => Some(text),
    };
    if let Some(text) = fault {
        let shown: Vec<String> = events.iter().map(|event| show(event)).collect();
        let text = format!("{text}\n    the events were: {}", shown.join(", "));
        faults.push(Fault::new(rule.line, text));
    }
}

fn executions(
    player: &Player<'_>,
    tool: &str,
    expected: &Located<crate::format::Shorthand<Entries>>,
    faults: &mut Vec<Fault>,
) {
    let logs: Vec<_> = player
        .logs
        .iter()
        .filter(|(name, _)| name == tool)
        .map(|(_, log)| log)
        .collect();
    let calls: Vec<_> = logs.iter().flat_map(|log| log.calls()).collect();
    let mut fault = |text: String| faults.push(Fault::new(expected.line, text));
    let wanted = &expected.value.0;
    let ids: Vec<String> = calls.iter().map(|call| call.call_id.clone()).collect();
    let is = calls.len();
    if let Some(count) = wanted.count
        && is != count
    {
        fault(format!(
            "'{tool}' was entered {is} times, expected {count}: for {ids:?}"
        ));
    }
    if let Some(most) = wanted.at_most
        && is > most
    {
        fault(format!(
            "'{tool}' was entered {is} times, expected {most} at most: for {ids:?}"
        ));
    }
    if let Some(expected) = &wanted.calls
        && ids != *expected
    {
        fault(differ(&format!("the entries of '{tool}'"), &ids, expected));
    }
    if let Some(expected) = &wanted.arguments {
        let arguments: Vec<String> = calls
            .iter()
            .map(|call| serde_json::Value::Object(call.arguments.clone()).to_string())
            .collect();
        let same = calls.len() == expected.len()
            && calls
                .iter()
                .zip(expected)
                .all(|(call, expected)| expected.as_object() == Some(&call.arguments));
        if !same {
            let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
            fault(differ(
                &format!("the arguments of '{tool}'"),
                &arguments,
                &expected,
            ));
        }
    }
    if let Some(most) = wanted.at_once {
        let is = logs.iter().map(|log| log.max_concurrent()).max();
        let is = is.unwrap_or_default();
        if is != most {
            fault(format!(
                "{is} bodies of '{tool}' ran at once, expected {most}"
            ));
        }
    }
    if let Some(expected) = wanted.completed {
        let is: usize = logs.iter().map(|log| log.completions()).sum();
        if is != expected {
            fault(format!(
                "{is} bodies of '{tool}' came to their end, expected {expected}"
            ));
        }
    }
    if let Some(expected) = &wanted.rounds {
        let rounds: Vec<u32> = calls.iter().map(|call| call.occurrence.round + 1).collect();
        if rounds != *expected {
            fault(format!(
                "'{tool}' was entered in the rounds {rounds:?}, expected {expected:?}"
            ));
        }
    }
    if let Some(expected) = &wanted.attempts {
        let attempts: Vec<u32> = calls.iter().map(|call| call.attempt).collect();
        if attempts != *expected {
            fault(format!(
                "the attempts of '{tool}' are {attempts:?}, expected {expected:?}"
            ));
        }
    }
    for log in logs {
        for violation in log.violations() {
            fault(violation);
        }
    }
}

/// The ends of the legs, those that were refused or dropped left out.
fn stops(player: &Player<'_>, expected: &Located<Vec<String>>, faults: &mut Vec<Fault>) {
    let legs: Vec<&Leg> = player
        .legs
        .iter()
        .filter(|leg| leg.response.is_some() && !leg.is_refusal())
        .collect();
    let fit = legs.len() == expected.value.len()
        && legs
            .iter()
            .zip(&expected.value)
            .all(|(leg, wanted)| ended_as(leg, wanted));
    if !fit {
        let ends: Vec<String> = legs.iter().map(|leg| end(leg)).collect();
        faults.push(Fault::new(
            expected.line,
            differ("the ends of the legs", &ends, &expected.value),
        ));
    }
}

/// Whether a leg ended as these words say.
fn ended_as(leg: &Leg, wanted: &str) -> bool {
    let Ok(words) = stop_words(wanted) else {
        return false;
    };
    leg.stop()
        .is_some_and(|stop| is_stop(&stop, &words, is_model_error(leg)))
}

/// How a leg ended, with what its error says.
fn end(leg: &Leg) -> String {
    let Some(stop) = leg.stop() else {
        return "dropped".to_owned();
    };
    match leg.error() {
        Some(error) => format!("{} ({})", show(&stop), error.message()),
        None => show(&stop),
    }
}

/// A leg whose answers were all refused is said so by the step behind it.
fn refusals_are_expected(player: &Player<'_>, faults: &mut Vec<Fault>) {
    let refused = player.legs.iter().filter(|leg| leg.is_refusal());
    for leg in refused {
        let mut actions = player.scenario.actions.iter();
        actions.find(|action| matches!(action, Action::Leg(plan) if plan.line == leg.line));
        let said = actions
            .take_while(|action| !matches!(action, Action::Leg(_)))
            .any(|action| matches!(action, Action::Expect(_, expect) if expect.stop.is_some()));
        if !said {
            let text = format!(
                "the answers of this leg were refused, and nobody expected it: {}",
                end(leg)
            );
            faults.push(Fault::new(leg.line, text));
        }
    }
}

fn tokens(what: &str, is: &Usage, expected: (u64, u64), line: u64, faults: &mut Vec<Fault>) {
    let own = (
        is.input_tokens.unwrap_or_default(),
        is.output_tokens.unwrap_or_default(),
    );
    if own != expected {
        let text = format!(
            "{what} are {} in and {} out, expected {} in and {} out",
            own.0, own.1, expected.0, expected.1
        );
        faults.push(Fault::new(line, text));
    }
}

/// Compares lines one by one; `...` at the beginning leaves out what stands before.
fn compare_lines(
    what: &str,
    lines: &[Line],
    expected: &[String],
    line: u64,
    faults: &mut Vec<Fault>,
) {
    let (tail, wanted) = match expected.first() {
        Some(first) if first == "..." => (true, &expected[1..]),
        _ => (false, expected),
    };
    let skipped = lines.len().saturating_sub(wanted.len());
    let shown = if tail { &lines[skipped..] } else { lines };
    let fit = shown.len() == wanted.len()
        && shown.iter().zip(wanted).all(|(line, wanted)| {
            LinePattern::parse(wanted).is_ok_and(|pattern| pattern.fits(line))
        });
    if !fit {
        let lines: Vec<String> = shown.iter().map(ToString::to_string).collect();
        faults.push(Fault::new(line, differ(what, &lines, wanted)));
    }
}

/// Two lists, one under the other.
fn differ(what: &str, is: &[String], expected: &[String]) -> String {
    let list = |items: &[String]| {
        if items.is_empty() {
            return "(nothing)".to_owned();
        }
        items.join("\n      ")
    };
    format!(
        "{what}:\n    expected:\n      {}\n    actual:\n      {}",
        list(expected),
        list(is)
    )
}
