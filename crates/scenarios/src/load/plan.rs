//! Steps put in order: each leg with what belongs to it.

use super::Impossible;
use crate::format::{
    At, Config, ExpectLeg, Located, Message, Mode, Ordered, Reply, Step, StoreFault, Tool,
};
use crate::notation::EventPattern;

/// Something that the runner does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Leg(Box<LegPlan>),
    Rule(Reply),
    Expect(u64, Box<ExpectLeg>),
    Reload,
    Append(Message),
    Advance(u64),
    Store(StoreFault),
    Config(Box<Config>),
    Tools(Ordered<Option<Tool>>),
    KeepPausedRun(String),
}

/// A leg with its replies and what happens in it.
#[derive(Clone, Debug)]
pub(crate) struct LegPlan {
    pub(crate) line: u64,
    pub(crate) step: Step,
    pub(crate) replies: Vec<(u64, Reply)>,
    pub(crate) triggers: Vec<Trigger>,
}

/// Something that happens at an event of a leg.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) at: EventPattern,
    pub(crate) after_ms: Option<u64>,
    pub(crate) kind: TriggerKind,
}

/// What happens then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TriggerKind {
    Cancel,
    Drop,
    Open(String),
}

/// What a step may hold besides the leg's own words.
fn words(step: &Step) -> Vec<&'static str> {
    let words = [
        ("model", step.model.is_some()),
        ("cancel", step.cancel.is_some()),
        ("drop", step.drop.is_some()),
        ("open", step.open.is_some()),
        ("expect", step.expect.is_some()),
        ("reload", step.reload.is_some()),
        ("append", step.append.is_some()),
        ("advance_ms", step.advance_ms.is_some()),
        ("store", step.store.is_some()),
        ("config", step.config.is_some()),
        ("tools", step.tools.is_some()),
        ("keep_paused_run", step.keep_paused_run.is_some()),
    ];
    let held = words.into_iter().filter(|(_, held)| *held);
    held.map(|(word, _)| word).collect()
}

fn is_leg(step: &Step) -> bool {
    step.user.is_some()
        || step.decide.is_some()
        || step.results.is_some()
        || step.proceed.is_some()
        || step.batch.is_some()
}

/// Whether a step says how a leg is played, which makes sense in a leg alone.
fn leg_settings(step: &Step) -> bool {
    step.options.is_some()
        || step.posted.is_some()
        || step.posted_behind.is_some()
        || step.posted_arguments.is_some()
        || step.with_paused_run.is_some()
        || step.batch_tools.is_some()
}

pub(crate) fn actions(script: &[Located<Step>], mode: Mode) -> Result<Vec<Action>, Impossible> {
    let mut actions: Vec<Action> = Vec::new();
    for Located { value: step, line } in script {
        let line = *line;
        let held = words(step);
        if is_leg(step) {
            if let Some(word) = held.first() {
                let text = format!(
                    "a leg (`user`, `decide`, `results`, `proceed`, `batch`) and `{word}` are two \
                     steps: put `{word}` into a step of its own behind it"
                );
                return Err(Impossible::new(line, text));
            }
            leg(step, line, mode)?;
            actions.push(Action::Leg(Box::new(LegPlan {
                line,
                step: step.clone(),
                replies: Vec::new(),
                triggers: Vec::new(),
            })));
            continue;
        }
        if leg_settings(step) {
            let text = "`options`, `posted…`, `with_paused_run` and `batch_tools` belong into a leg: \
                        a step with `user`, `decide`, `results`, `proceed` or `batch`";
            return Err(Impossible::new(line, text));
        }
        let [word] = &*held else {
            let text = match held.len() {
                0 => "the step says nothing; expected one of `user`, `decide`, `results`, \
                      `proceed`, `batch`, `model`, `cancel`, `drop`, `open`, `expect`, `reload`, \
                      `append`, `advance_ms`, `store`, `config`, `tools`, `keep_paused_run`"
                    .to_owned(),
                _ => format!(
                    "one step, one thing: this one holds `{}`",
                    held.join("`, `")
                ),
            };
            return Err(Impossible::new(line, text));
        };
        within_leg(step, line, word, &mut actions)?;
    }
    if !actions
        .iter()
        .any(|action| matches!(action, Action::Leg(_)))
    {
        let line = script.first().map_or(1, |step| step.line);
        return Err(Impossible::new(line, "the script plays no leg"));
    }
    Ok(actions)
}

/// A leg by itself: what it says fits together.
fn leg(step: &Step, line: u64, mode: Mode) -> Result<(), Impossible> {
    let alone = step.batch.is_some();
    if alone != (mode == Mode::Executor) && step.decide.is_none() {
        let text = match mode {
            Mode::Executor => "the executor alone plays `batch` and `decide` steps only",
            Mode::Loop => "`batch` is for the executor alone: say `mode: executor`",
        };
        return Err(Impossible::new(line, text));
    }
    if step.proceed == Some(false) {
        return Err(Impossible::new(line, "`proceed` is `true` or is left out"));
    }
    let posted = [
        step.posted.is_some(),
        step.posted_behind.is_some(),
        step.posted_arguments.is_some(),
    ];
    if posted.iter().filter(|posted| **posted).count() > 1 {
        let text = "`posted`, `posted_behind` and `posted_arguments` exclude each other";
        return Err(Impossible::new(line, text));
    }
    Ok(())
}

fn within_leg(
    step: &Step,
    line: u64,
    word: &str,
    actions: &mut Vec<Action>,
) -> Result<(), Impossible> {
    if let Some(reply) = &step.model
        && reply.when.is_some()
    {
        // It holds for the whole case, and parts no leg from what belongs to it.
        actions.insert(0, Action::Rule(reply.clone()));
        return Ok(());
    }
    let belongs = matches!(word, "model" | "cancel" | "drop" | "open");
    if belongs {
        let trigger = trigger(step).transpose();
        let trigger = trigger.map_err(|text| Impossible::new(line, text))?;
        let Some(Action::Leg(leg)) = actions.last_mut() else {
            let text = format!(
                "`{word}` belongs to a leg: it stands directly behind `user`, `decide`, `results`, \
                 `proceed` or `batch`, or behind another `model`, `cancel`, `drop` or `open` of it"
            );
            return Err(Impossible::new(line, text));
        };
        if let Some(reply) = &step.model {
            leg.replies.push((line, reply.clone()));
        }
        leg.triggers.extend(trigger);
        return Ok(());
    }
    if let Some(expect) = &step.expect {
        if !actions
            .iter()
            .any(|action| matches!(action, Action::Leg(_)))
        {
            let text = "`expect` looks at the leg before it, and there is none";
            return Err(Impossible::new(line, text));
        }
        actions.push(Action::Expect(line, expect.clone()));
    } else if step.reload.is_some() {
        actions.push(Action::Reload);
    } else if let Some(message) = &step.append {
        actions.push(Action::Append(message.clone()));
    } else if let Some(time) = step.advance_ms {
        actions.push(Action::Advance(time));
    } else if let Some(fault) = step.store {
        actions.push(Action::Store(fault));
    } else if let Some(config) = &step.config {
        actions.push(Action::Config(config.clone()));
    } else if let Some(tools) = &step.tools {
        actions.push(Action::Tools(tools.clone()));
    } else if let Some(name) = &step.keep_paused_run {
        actions.push(Action::KeepPausedRun(name.clone()));
    }
    Ok(())
}

fn trigger(step: &Step) -> Option<Result<Trigger, String>> {
    let of = |at: &At, kind: TriggerKind| {
        EventPattern::parse(&at.at).map(|pattern| Trigger {
            at: pattern,
            after_ms: at.after_ms,
            kind,
        })
    };
    if let Some(at) = &step.cancel {
        return Some(of(at, TriggerKind::Cancel));
    }
    if let Some(at) = &step.drop {
        return Some(of(at, TriggerKind::Drop));
    }
    let open = step.open.as_ref()?;
    let at = At {
        at: open.at.clone(),
        after_ms: None,
    };
    Some(of(&at, TriggerKind::Open(open.latch.clone())))
}
