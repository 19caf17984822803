//! What a case says must be possible, and it must say something.

use super::agent;
use super::plan::{Action, LegPlan};
use super::{Impossible, Scenario};
use crate::format::{Does, Expect, ExpectLeg, Located, Mode, Never, Reply, Tool, Visibility};
use crate::notation::{EventPattern, EventRule, LinePattern, outcome_words, stop_words};

pub(super) type Checked = Result<(), Impossible>;

pub(super) fn scenario(case: &Scenario) -> Checked {
    for (name, tool) in case.tools.iter() {
        check_tool(name, tool)?;
        if case.mode == Mode::Executor && tool.agent().is_some() {
            let line = tool.does.as_ref().map_or(1, |does| does.line);
            let text =
                format!("the tool '{name}' runs an agent, and the executor alone has no run");
            return Err(Impossible::new(line, text));
        }
    }
    let mut asserts = says_something(&case.expect);
    for action in &case.actions {
        match action {
            Action::Expect(line, expect) => {
                asserts = true;
                expect_leg(*line, expect)?;
            }
            Action::Leg(leg) => check_leg(case, leg)?,
            Action::Tools(tools) => {
                for (name, tool) in tools.iter() {
                    tool.iter().try_for_each(|tool| check_tool(name, tool))?;
                }
            }
            _ => {}
        }
    }
    if !asserts {
        let text = "nothing is expected: a case without `expect` shows nothing";
        return Err(Impossible::new(1, text));
    }
    expect(case, &case.expect)
}

fn says_something(expect: &Expect) -> bool {
    !expect.exec.is_empty()
        || !expect.request.is_empty()
        || !expect.events.is_empty()
        || !expect.never.is_empty()
        || expect.stop.is_some()
        || expect.usage.is_some()
        || expect.requests.is_some()
        || expect.conversation.is_some()
        || expect.trace.is_some()
}

pub(super) fn check_tool(name: &str, tool: &Tool) -> Checked {
    let line = tool.does.as_ref().map_or(1, |does| does.line);
    if tool.params.is_some() && tool.schema.is_some() {
        let text = format!("the tool '{name}' has both `params` and `schema`: one says it all");
        return Err(Impossible::new(line, text));
    }
    let bodies = tool.first.iter().chain(&tool.does);
    for does in bodies.clone() {
        check_body(name, does.line, &does.value)?;
    }
    agent::check(name, tool)?;
    if bodies.count() > 0 && (tool.given || tool.visible == Visibility::Declared) {
        let text = format!("the tool '{name}' has no body of its own here: `does` has no place");
        return Err(Impossible::new(line, text));
    }
    Ok(())
}

fn check_body(name: &str, line: u64, does: &Does) -> Checked {
    let ends = does.ends();
    if ends.len() > 1 {
        let text = format!(
            "the body of '{name}' ends in one way, and `{}` are {}",
            ends.join("`, `"),
            ends.len()
        );
        return Err(Impossible::new(line, text));
    }
    Ok(())
}

fn check_leg(case: &Scenario, leg: &LegPlan) -> Checked {
    for (line, reply) in &leg.replies {
        if case.mode == Mode::Executor {
            return Err(Impossible::new(*line, "the executor alone asks no model"));
        }
        check_reply(*line, reply)?;
    }
    let names = leg.step.batch_tools.iter().flatten();
    for name in names {
        known_tool(case, leg.line, name)?;
    }
    Ok(())
}

pub(super) fn check_reply(line: u64, reply: &Reply) -> Checked {
    if !reply.parts.is_empty()
        && (reply.text.is_some() || !reply.pieces.is_empty() || !reply.calls.is_empty())
    {
        let text = "`parts` says all in its order: `text`, `pieces` and `calls` exclude it";
        return Err(Impossible::new(line, text));
    }
    Ok(())
}

fn known_tool(case: &Scenario, line: u64, name: &str) -> Checked {
    let mut known: Vec<&str> = Vec::new();
    for (name, tool) in case.tools.iter() {
        agent::names(name, Some(tool), &mut known);
    }
    for action in &case.actions {
        if let Action::Tools(tools) = action {
            for (name, tool) in tools.iter() {
                agent::names(name, tool.as_ref(), &mut known);
            }
        }
    }
    if known.contains(&name) {
        return Ok(());
    }
    let text = format!("there is no tool '{name}'; there are {}", known.join(", "));
    Err(Impossible::new(line, text))
}

fn expect(case: &Scenario, expect: &Expect) -> Checked {
    for (name, entries) in expect.exec.iter() {
        known_tool(case, entries.line, name)?;
    }
    for (number, request) in expect.request.iter() {
        if number
            .parse::<usize>()
            .ok()
            .is_none_or(|number| number == 0)
        {
            let text = format!("'{number}' is no request: they are numbered from 1");
            return Err(Impossible::new(request.line, text));
        }
        let messages = request.value.messages.iter().flatten();
        for (index, line) in messages.enumerate() {
            if index == 0 && line.value == "..." {
                continue;
            }
            check_line(line)?;
        }
    }
    for rule in &expect.events {
        at(rule.line, EventRule::parse(&rule.value))?;
    }
    for never in &expect.never {
        match &never.value {
            Never::Event(event) => at(never.line, EventPattern::parse(event))?,
            Never::Line(line) => at(never.line, LinePattern::parse(line))?,
            Never::EnteredWith(tool, _) => known_tool(case, never.line, tool)?,
            Never::Text(_) | Never::Logged(_) | Never::Entered(_) | Never::MoreRequestsThan(_) => {}
        }
    }
    if let Some(stops) = &expect.stop {
        for stop in &stops.value {
            at(stops.line, stop_words(stop))?;
        }
    }
    if let Some(lines) = &expect.conversation {
        for line in &lines.value {
            at(lines.line, LinePattern::parse(line))?;
        }
    }
    Ok(())
}

fn expect_leg(line: u64, expect: &ExpectLeg) -> Checked {
    if let Some(stop) = &expect.stop {
        at(line, stop_words(stop))?;
    }
    for message in expect.messages.iter().flatten() {
        at(line, LinePattern::parse(message))?;
    }
    for rule in &expect.events {
        at(rule.line, EventRule::parse(&rule.value))?;
    }
    for (_, result) in expect.results.iter() {
        if let Some(outcome) = &result.value.outcome
            && outcome_words(outcome).is_none()
        {
            let text = format!(
                "'{outcome}' is no outcome; expected one of {}",
                crate::notation::OUTCOMES.join(", ")
            );
            return Err(Impossible::new(result.line, text));
        }
    }
    for pending in expect.pending.iter().flatten() {
        let what = pending.split_once(' ').map(|(_, what)| what);
        if what.is_some_and(|what| !["approval", "result", "data", "earlier"].contains(&what)) {
            let text = format!(
                "'{pending}' waits for nothing known; expected `approval`, `result`, `data` or \
                 `earlier` behind the call"
            );
            return Err(Impossible::new(line, text));
        }
    }
    Ok(())
}

fn check_line(line: &Located<String>) -> Checked {
    at(line.line, LinePattern::parse(&line.value))
}

fn at<T>(line: u64, result: Result<T, String>) -> Checked {
    result
        .map(|_| ())
        .map_err(|text| Impossible::new(line, text))
}
