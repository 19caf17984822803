//! Plays one leg of the loop: its input, its answers, what happens in it, what it came to.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use raf_core::{
    AgentResponse, Cancellation, ChatClientExt, ChatClientRunOptions, ChatMessage, IChatClient,
    ResponseFold, Result, ToolApprovalResponse, ToolCall, ToolOutcome, normalise,
};
use raf_testing::{Latch, RecordedCall};
use raf_tools::ToolOptionsExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Duration;

use super::answers::answers;
use super::config::run_options;
use super::invariants::check_leg;
use super::leg::{Labels, Leg, words};
use super::model::scripted;
use super::player::{CannotGoOn, Player, built};
use crate::format::{Messages, Visibility};
use crate::load::{LegPlan, Trigger, TriggerKind};
use crate::notation::show;
use crate::way::{Form, Reload};

/// Plays a leg.
pub(crate) async fn play(
    player: &mut Player<'_>,
    plan: &LegPlan,
) -> std::result::Result<(), CannotGoOn> {
    let line = plan.line;
    for (_, reply) in &plan.replies {
        player.model.push(scripted(reply, &player.outside));
        player.pushed += 1;
    }
    let (answers, results) = answers(player, plan)?;
    player.conversation.extend(results);
    if let Some(text) = &plan.step.user {
        player.conversation.push(ChatMessage::user(text));
    }
    let input = input(player, plan);
    let is_own = plan.step.posted.is_none()
        && plan.step.posted_behind.is_none()
        && plan.step.posted_arguments.is_none();
    let options = options(player, plan, &answers)?;
    let client = match player.client() {
        Ok(client) => client,
        Err(text) => {
            player.fault(line, text);
            return Err(CannotGoOn);
        }
    };

    let cancellation = Cancellation::new();
    let options = options.with_cancellation(cancellation.clone());
    let dropped = Latch::new();
    let (delayed, due) = unbounded_channel();
    let unfired = hook(player, &plan.triggers, &cancellation, &dropped, delayed);
    let entered = entry_counts(player);
    let before = known(&input);
    let said = described(&options);
    let mut faults = Vec::new();
    let response = {
        let form = player.way.form;
        let driven = drive(form, &*client, &input, options.clone(), &mut faults);
        let mut driven = pin!(driven);
        tokio::select! {
            biased;
            response = &mut driven => Some(response),
            () = dropped.wait() => {
                // What the drop itself does comes too late for a process that is killed.
                if let Err(text) = player.store.kill() {
                    player.fault(line, text);
                }
                None
            }
            () = cancel_when_due(due, &cancellation) => None,
        }
    };
    drop(client);
    if response.is_none() {
        after_drop(player, &mut faults).await;
    }
    if known(&input) != before {
        faults.push("A3: the caller's messages were changed".to_owned());
    }
    if described(&options) != said {
        faults.push("A3: the caller's options were changed".to_owned());
    }

    let mut leg = Leg {
        line,
        input,
        seen: player.watch.take(),
        response,
        entries: entries_since(player, &entered),
        events: Vec::new(),
        results: None,
    };
    faults.extend(player.ledger.take(&mut leg, &answers));
    let conversation = if is_own {
        player.conversation.extend(leg.messages());
        player.conversation.clone()
    } else {
        [leg.input.clone(), leg.messages()].concat()
    };
    faults.extend(check_leg(&leg, &player.ledger, &conversation));
    if is_own && leg.response.is_some() {
        // Whatever waits within a call, one call waits.
        let pending = leg.pending();
        let pending = pending.iter().map(|call| call.occurrence);
        let pending = pending.collect::<BTreeSet<_>>().len();
        let open = fillers(&conversation);
        // A caller may have given results that are still to be refused.
        let given = conversation
            .iter()
            .flat_map(ChatMessage::tool_results)
            .any(|result| result.occurrence().is_none());
        if leg.seen.opened && (open > pending || (open < pending && !given)) {
            faults.push(format!(
                "A2: {open} calls have no result, and {pending} are pending"
            ));
        }
    }
    faults.extend(player.model.violations());
    for (_, model, _) in &player.agents {
        faults.extend(model.violations());
    }
    for trigger in unfired
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        faults.push(format!(
            "`{}` never came, so nothing happened at it",
            trigger.at
        ));
    }
    let events: Vec<String> = leg.events.iter().map(|event| show(event)).collect();
    for text in &faults {
        player.fault(
            line,
            format!("{text}\n    the events were: {}", events.join(", ")),
        );
    }
    if let Some(response) = leg.ended() {
        player.paused_run.clone_from(&response.paused_run);
    }
    let pauses = leg
        .ended()
        .is_some_and(|response| !response.pending.is_empty());
    player.note(leg);
    if pauses || player.way.reload.durable().is_some() {
        player.reload();
    }
    player.check_kept(is_own);
    replies_are_used(player, plan)
}

/// A reply that nobody asked for would answer the next leg: the case ends here.
fn replies_are_used(
    player: &mut Player<'_>,
    plan: &LegPlan,
) -> std::result::Result<(), CannotGoOn> {
    let Some(asked) = player.model.requests() else {
        return Ok(());
    };
    if asked >= player.pushed {
        return Ok(());
    }
    let left = player.pushed - asked;
    let unused = plan.replies.len().saturating_sub(left);
    let line = plan
        .replies
        .get(unused)
        .map_or(plan.line, |(line, _)| *line);
    let text = format!("the model was not asked for this reply: {left} of the leg's are left");
    player.fault(line, text);
    Err(CannotGoOn)
}

/// The messages of a leg.
fn input(player: &Player<'_>, plan: &LegPlan) -> Vec<ChatMessage> {
    let written = |messages: &Messages| -> Vec<ChatMessage> {
        messages
            .iter()
            .map(|message| built(&message.value))
            .collect()
    };
    if let Some(posted) = &plan.step.posted {
        return written(posted);
    }
    let mut input = player.conversation.clone();
    if let Some(posted) = &plan.step.posted_behind {
        input.extend(written(posted));
    }
    if let Some(changes) = &plan.step.posted_arguments {
        for message in &mut input {
            let changed = message.contents().iter().map(|content| {
                let call = content.as_tool_call();
                match call.and_then(|call| Some((call, changes.get(call.id())?))) {
                    Some((call, arguments)) => {
                        ToolCall::new(call.id(), call.name(), arguments).into()
                    }
                    None => content.clone(),
                }
            });
            let changed = changed.collect();
            *message = message.to_builder().replace_contents(changed).build();
        }
    }
    input
}

fn options(
    player: &mut Player<'_>,
    plan: &LegPlan,
    answers: &[ToolApprovalResponse],
) -> std::result::Result<ChatClientRunOptions, CannotGoOn> {
    let own = plan.step.options.as_ref();
    let mut options = run_options(own.unwrap_or(&player.scenario.options))
        .with_tools(player.declared())
        .with_tool_approval_responses(answers.iter().cloned());
    let per_run = match player.registry(Visibility::PerRun) {
        Ok(registry) => registry,
        Err(text) => {
            player.fault(plan.line, text);
            return Err(CannotGoOn);
        }
    };
    if !per_run.is_empty() {
        options = options.with_provider_tools(per_run);
    }
    let by_value = matches!(
        player.way.reload,
        Reload::NewProcess | Reload::StoreAndValue
    );
    options.paused_run = match plan.step.with_paused_run.as_deref() {
        Some("none") => None,
        Some(name) => {
            let kept = player.kept.get(name).cloned();
            if kept.is_none() {
                player.fault(plan.line, format!("no paused run was kept as '{name}'"));
                return Err(CannotGoOn);
            }
            kept
        }
        None if by_value => player.paused_run.clone(),
        None => None,
    };
    Ok(options)
}

type Unfired = Arc<Mutex<Vec<Trigger>>>;

/// Lets the triggers of a leg happen; what has not happened stays in the list.
fn hook(
    player: &Player<'_>,
    triggers: &[Trigger],
    cancellation: &Cancellation,
    dropped: &Latch,
    delayed: UnboundedSender<Duration>,
) -> Unfired {
    let unfired: Unfired = Arc::new(Mutex::new(triggers.to_vec()));
    let waiting = Arc::clone(&unfired);
    let (outside, watch) = (player.outside.clone(), player.watch.clone());
    let (cancellation, dropped) = (cancellation.clone(), dropped.clone());
    let labels: Labels = player.ledger.labels.clone();
    player.watch.on_item(move |item| {
        let event = words(item, &labels);
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (due, rest) = waiting
            .drain(..)
            .partition(|trigger: &Trigger| trigger.at.fits(&event));
        *waiting = rest;
        for trigger in Vec::from_iter::<Vec<Trigger>>(due) {
            match (trigger.kind, trigger.after_ms) {
                (TriggerKind::Cancel, None) => cancellation.cancel(),
                (TriggerKind::Cancel, Some(time)) => {
                    let _ = delayed.send(Duration::from_millis(time));
                }
                (TriggerKind::Drop, _) => {
                    watch.hold();
                    dropped.open();
                }
                (TriggerKind::Open(latch), _) => outside.latch(&latch).open(),
            }
        }
    });
    unfired
}

/// Cancels a while after an event; never ends.
async fn cancel_when_due(mut due: UnboundedReceiver<Duration>, cancellation: &Cancellation) {
    while let Some(time) = due.recv().await {
        tokio::time::sleep(time).await;
        cancellation.cancel();
    }
    std::future::pending::<()>().await;
}

async fn drive(
    form: Form,
    client: &dyn IChatClient,
    input: &[ChatMessage],
    options: ChatClientRunOptions,
    faults: &mut Vec<String>,
) -> Result<AgentResponse> {
    if form == Form::Fold {
        return client.get_response(input, options).await;
    }
    let mut stream = client.run(input, options).await?;
    let mut fold = ResponseFold::new();
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(update) => fold.push(&update),
            Err(error) => failure = Some(error),
        }
    }
    for _ in 0..3 {
        if stream.next().await.is_some() {
            faults.push("B3: an item came after the stream's end".to_owned());
        }
    }
    match failure {
        Some(error) => Err(fold.fail(error)),
        None => fold.finish(),
    }
}

/// B5: after a drop no task of the run outlives it.
async fn after_drop(player: &Player<'_>, faults: &mut Vec<String>) {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    for (tool, log) in &player.logs {
        if log.running() > 0 {
            faults.push(format!("B5: after the drop a body of '{tool}' runs on"));
        }
    }
    if player.model.probe().is_some_and(|probe| probe.live() > 0) {
        faults.push("B5: after the drop a stream of the model is alive".to_owned());
    }
}

pub(crate) fn entry_counts(player: &Player<'_>) -> Vec<usize> {
    player.logs.iter().map(|(_, log)| log.entries()).collect()
}

/// The entries of bodies since they were counted.
pub(crate) fn entries_since(player: &Player<'_>, counts: &[usize]) -> Vec<(String, RecordedCall)> {
    let logs = player.logs.iter().zip(counts);
    logs.flat_map(|((tool, log), before)| {
        let new = log.calls().split_off(*before);
        new.into_iter().map(move |entry| (tool.clone(), entry))
    })
    .collect()
}

/// Messages as JSON: calls remember that they were parsed, which changes nothing.
fn known(messages: &[ChatMessage]) -> String {
    serde_json::to_string(messages).unwrap_or_default()
}

/// Options in words, without the cancellation, which is meant to change.
fn described(options: &ChatClientRunOptions) -> String {
    let mut options = options.clone().with_cancellation(Cancellation::new());
    let paused = serde_json::to_string(&options.paused_run.take()).unwrap_or_default();
    format!("{options:?} {paused}")
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
