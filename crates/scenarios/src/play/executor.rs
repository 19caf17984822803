//! Plays one batch of the executor alone: an assistant message in, results out, or a resume of it.

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate as Update, ChatMessage, Error, Finish, FinishReason, ResponseFold,
    ToolCall, ToolCallHead, WaitsFor,
};
use raf_tools::{
    BatchEvent, ExecuteOptions, Execution, ExecutionUpdate, RegisteredTool, ToolExecutor,
};

use super::answers::answers;
use super::config::execution_options;
use super::leg::Leg;
use super::legs::{entries_since, entry_counts};
use super::player::{CannotGoOn, Player};
use super::watch::{Item, Seen};
use crate::format::Visibility;
use crate::load::LegPlan;
use crate::way::Form;

/// Plays a batch, or resumes the one that waits.
pub(crate) async fn play(player: &mut Player<'_>, plan: &LegPlan) -> Result<(), CannotGoOn> {
    let (answers, _) = answers(player, plan)?;
    let (executor, options) = match parts(player, plan) {
        Ok(parts) => parts,
        Err(text) => {
            player.fault(plan.line, text);
            return Err(CannotGoOn);
        }
    };
    let entered = entry_counts(player);
    let mut items: Vec<Item> = Vec::new();
    let paused = player.paused_run.clone();
    let ended = match (&plan.step.batch, paused) {
        (Some(calls), _) => {
            let calls = calls
                .iter()
                .map(|call| ToolCall::new(&call.0, &call.1, &call.2));
            let message = ChatMessage::assistant_calls(calls);
            match player.way.form {
                Form::Fold => executor.execute(&message, options).await,
                Form::Stream => match executor.stream(&message, options) {
                    Ok(updates) => read(updates, &mut items).await,
                    Err(error) => Err(error),
                },
            }
        }
        (None, Some(paused)) => match player.way.form {
            Form::Fold => executor.resume(paused, &answers, options).await,
            Form::Stream => match executor.resume_stream(paused, &answers, options) {
                Ok(updates) => read(updates, &mut items).await,
                Err(error) => Err(error),
            },
        },
        (None, None) => {
            player.fault(
                plan.line,
                "there is no batch that waits: nothing to decide about",
            );
            return Err(CannotGoOn);
        }
    };
    let mut leg = Leg {
        line: plan.line,
        input: Vec::new(),
        seen: Seen::default(),
        response: None,
        entries: entries_since(player, &entered),
        events: Vec::new(),
        results: Some(Vec::new()),
    };
    finish(player, &mut leg, ended, items);
    let mut faults = player.ledger.take(&mut leg, &answers);
    faults.extend(raf_testing::invariants::check_entries(
        &player.ledger.entries,
    ));
    for (tool, log) in &player.logs {
        if log.running() > leg.abandoned().len() {
            faults.push(format!("V5: a body of '{tool}' runs on"));
        }
    }
    for text in faults {
        player.fault(plan.line, text);
    }
    let pauses = player.paused_run.is_some();
    player.note(leg);
    if pauses {
        player.reload();
    }
    Ok(())
}

fn parts(player: &Player<'_>, plan: &LegPlan) -> Result<(ToolExecutor, ExecuteOptions), String> {
    let registry = player.registry(Visibility::Offered)?;
    let options = execution_options(&player.config, &player.outside);
    let executor = ToolExecutor::with_options(registry, options);
    let mut options = ExecuteOptions::new().with_declared(player.declared());
    if let Some(names) = &plan.step.batch_tools {
        let mut tools = Vec::new();
        for (name, _, tool) in &player.tools {
            if names.contains(name) {
                let tool = RegisteredTool::from_shared(std::sync::Arc::clone(tool));
                tools.push(tool.map_err(|error| error.to_string())?);
            }
        }
        options = options.with_tools(tools);
    }
    Ok((executor, options))
}

/// Reads a batch's stream: its events as items, then its end.
async fn read(
    mut updates: futures::stream::BoxStream<'static, ExecutionUpdate>,
    items: &mut Vec<Item>,
) -> Result<Execution, Error> {
    let mut end = None;
    while let Some(update) = updates.next().await {
        match update {
            ExecutionUpdate::Event(event) => items.extend(item(event).map(Ok)),
            ExecutionUpdate::End(execution) => end = Some(*execution),
            _ => {}
        }
    }
    end.ok_or_else(|| Error::misuse("the batch ended without its end"))
}

fn item(event: BatchEvent) -> Option<Update> {
    Some(match event {
        BatchEvent::Started { occurrence, call } => Update::ToolStarted {
            occurrence,
            call: Box::new(ToolCallHead::new(call.id(), call.name())),
        },
        BatchEvent::Progress {
            occurrence,
            content,
        } => Update::ToolProgress {
            occurrence,
            content: Box::new(content),
        },
        BatchEvent::Finished(finished) => Update::ToolCalled {
            occurrence: finished.occurrence,
            result: finished.result,
        },
        _ => return None,
    })
}

/// Puts the end of a batch into the leg, in the words of the loop.
fn finish(
    player: &mut Player<'_>,
    leg: &mut Leg,
    ended: Result<Execution, Error>,
    mut items: Vec<Item>,
) {
    let execution = match ended {
        Ok(execution) => execution,
        Err(error) => {
            items.push(Err(error.clone()));
            leg.seen.items = items;
            leg.response = Some(Err(error));
            return;
        }
    };
    player.paused_run.clone_from(&execution.paused);
    for pending in &execution.pending {
        let known = player.ledger.request_of(pending.call.id());
        let is_new = |id: &String| known.as_ref() != Some(id);
        match &pending.waits_for {
            WaitsFor::Approval(request) if is_new(&request.request_id) => {
                let request = request.clone();
                items.push(Ok(Update::ToolApprovalRequest { request }));
            }
            WaitsFor::Data {
                request_id,
                address,
                information,
            } if is_new(request_id) => items.push(Ok(Update::ToolInterrupted {
                occurrence: pending.occurrence,
                interrupt: Box::new(raf_core::InterruptNotice {
                    request_id: request_id.clone(),
                    address: address.clone(),
                    information: information.clone(),
                }),
            })),
            _ => {}
        }
    }
    for (request_id, reason) in &execution.refusals {
        let request_id = request_id.as_str().into();
        let reason = *reason;
        items.push(Ok(Update::ToolApprovalRefused { request_id, reason }));
    }
    let reason = match execution.termination {
        Some(cause) => FinishReason::Terminated(cause),
        None if execution.pending.is_empty() => FinishReason::Stop,
        None => {
            let decides = execution.pending.iter().any(|pending| {
                matches!(
                    pending.waits_for,
                    WaitsFor::Approval(_) | WaitsFor::Data { .. }
                )
            });
            if decides {
                FinishReason::AwaitingApproval
            } else {
                FinishReason::AwaitingToolResults
            }
        }
    };
    let mut end = Finish::new(reason);
    end.pending.clone_from(&execution.pending);
    end.abandoned.clone_from(&execution.abandoned);
    end.paused_run.clone_from(&execution.paused);
    let end = Update::finish(end);
    let mut fold = ResponseFold::new();
    fold.push(&end);
    items.push(Ok(end));
    leg.results = Some(
        execution
            .results
            .iter()
            .cloned()
            .map(ChatMessage::tool)
            .collect(),
    );
    leg.seen.items = items;
    leg.response = Some(fold.finish());
}
