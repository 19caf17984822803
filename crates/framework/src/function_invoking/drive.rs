//! The loop, readable as the contract: begin or resume, ask the model, plan, run the tools, go round.
//! Each part is a step: what is decided between them is decided from their values alone.

use std::sync::Arc;

use raf_core::{BudgetLimit, ClosedReason, Error, ErrorKind, FinishReason, PausedRun, Result};
use serde::{Deserialize, Serialize};

use super::FunctionInvokingChatClient;
use super::durable::{self, StoppableStore};
use super::execute::BatchEnd;
use super::leg::Leg;
use super::options::FunctionInvokingOptions;
use super::records;
use super::run::Stop;
use super::steps::{
    Ask, Asked, BatchWork, Before, Begin, Begun, Close, Planned, Planning, RunEnd, Steering, Steps,
    Turn, Way, batch, step, wait,
};

/// How a leg ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LegEnd {
    /// The run ends.
    Finish(FinishReason),
    /// The run waits.
    Pause(FinishReason),
    /// Something said stop.
    Stopped(Stop),
}

/// Drives a leg to its terminal item.
pub(super) async fn drive(client: &FunctionInvokingChatClient, leg: &mut Leg) -> Result<()> {
    match driven(client, leg).await {
        Ok((reason, paused)) => {
            leg.finish(reason, paused).await;
            Ok(())
        }
        Err(error) => {
            let error = durable::told(leg, error);
            Err(leg.failure(error))
        }
    }
}

async fn driven(
    client: &FunctionInvokingChatClient,
    leg: &mut Leg,
) -> Result<(FinishReason, Option<PausedRun>)> {
    let unbounded = Arc::clone(&leg.store);
    if leg.store.is_durable() {
        let grace = client.options().execution.grace;
        leg.store = Arc::new(StoppableStore::new(leg, grace));
    }
    leg.steps = Steps::of(&mut leg.options, &leg.store, &leg.claim)?.map(Box::new);
    let end = if leg.is_durable() {
        let claim = leg.claim.clone();
        let held = leg.held.clone();
        // Boxed: it stands in the state of what waits for it twice, also of runs that are not durable.
        let work = Box::pin(legs_end(client, leg));
        durable::while_held(unbounded, claim, held, work).await
    } else {
        legs_end(client, leg).await
    };
    let end = match end {
        Ok(end) => end,
        Err(error) => return Err(fail(leg, error).await),
    };
    let reason = match end {
        LegEnd::Pause(reason) => return Ok((reason, records::release(leg).await?)),
        LegEnd::Finish(reason) => reason,
        LegEnd::Stopped(Stop::Deadline) => FinishReason::Budget(BudgetLimit::Deadline),
        LegEnd::Stopped(Stop::Cancelled) => {
            let error = Error::new(ErrorKind::Cancelled, "the run was cancelled");
            return Err(fail(leg, error).await);
        }
    };
    let end = RunEnd::Finished(reason.clone());
    close(leg, ClosedReason::Cancelled, end).await?;
    Ok((reason, None))
}

/// Closes the record of the run, if there is one.
async fn close(leg: &mut Leg, reason: ClosedReason, end: RunEnd) -> Result<()> {
    if leg.run.record.is_none() && (leg.steps.is_none() || leg.is_durable()) {
        return Ok(());
    }
    step(leg, Close { reason, end }).await?;
    records::let_go(leg).await
}

/// The terminal error: the run ends, unless calls wait; what keeps its record from being closed is
/// only logged, since the first failure is what the caller must see.
async fn fail(leg: &mut Leg, error: Error) -> Error {
    if leg.pending.is_empty()
        && !durable::leaves_open(leg, &error)
        && let Err(second) = close(leg, ClosedReason::Cancelled, RunEnd::failed(&error)).await
    {
        tracing::warn!(error = %second, "the record of a failed run could not be closed");
    }
    error
}

async fn legs_end(client: &FunctionInvokingChatClient, leg: &mut Leg) -> Result<LegEnd> {
    let (way, steered) = {
        let Begun { way, steering } = step(leg, Begin { client }).await?;
        let steered = Steering::steer(steering.as_ref(), client.options());
        (way, steered)
    };
    let options = steered.as_deref().unwrap_or(client.options());
    let mut last_words = None;
    match way {
        Way::Ask => {}
        Way::Stopped(stop) => return Ok(LegEnd::Stopped(stop)),
        Way::Ended(RunEnd::Failed(error)) => return Err(error.into()),
        Way::Ended(RunEnd::Finished(reason)) => return Ok(LegEnd::Finish(reason)),
        Way::Ended(RunEnd::Superseded) => {
            return Err(Error::misuse("the run was superseded by a new message"));
        }
        Way::StillWaiting => {
            return Ok(LegEnd::Pause(wait(leg, client, options).await?));
        }
        Way::GoOn { superseded } => {
            let work = BatchWork::resumed(client, options, superseded);
            match batch(leg, work).await? {
                BatchEnd::Stopped(stop) => return Ok(LegEnd::Stopped(stop)),
                BatchEnd::Pause(reason) => return Ok(LegEnd::Pause(reason)),
                // A new turn of the user begins a new run.
                _ if superseded => {
                    close(leg, ClosedReason::Superseded, RunEnd::Superseded).await?;
                    step(leg, Turn).await?;
                }
                BatchEnd::End(FinishReason::ToolRetryLimit) if options.wrap_up => {
                    last_words = Some(FinishReason::ToolRetryLimit);
                }
                BatchEnd::End(end) => return Ok(LegEnd::Finish(end)),
                BatchEnd::GoOn => {}
            }
        }
    }
    rounds(client, options, leg, last_words).await
}

/// Goes round until the run ends or waits. `last_words`: a failure limit ended the run, which grants
/// one more request without tools.
async fn rounds(
    client: &FunctionInvokingChatClient,
    options: &FunctionInvokingOptions,
    leg: &mut Leg,
    mut last_words: Option<FinishReason>,
) -> Result<LegEnd> {
    loop {
        let before = Before {
            client,
            options,
            last_words: last_words.as_ref(),
        };
        if let Some(end) = step(leg, before).await? {
            return Ok(end);
        }

        // Ask the model, and look at how the reply ended.
        let last_round = options.wrap_up && leg.run.counters.is_last_round(options);
        let wrap_up = last_round || last_words.is_some();
        let limit = match &last_words {
            Some(end) => Some(end.clone()),
            None => last_round.then_some(FinishReason::MaxRounds),
        };
        let ask = Ask {
            client,
            options,
            wrap_up,
            limit: limit.as_ref(),
        };
        let forbidden = match step(leg, ask).await? {
            Asked::Calls { forbidden } => forbidden,
            Asked::Again => continue,
            Asked::End(end) => return Ok(end),
            Asked::Failed(error) => {
                let entered = leg.error.take();
                return Err(entered.unwrap_or_else(|| error.into()));
            }
        };

        // Run the tools.
        let planning = Planning {
            client,
            options,
            wrap_up,
            forbidden,
        };
        let end = match step(leg, planning).await? {
            Planned::Run { end } => end,
            Planned::End(end) => return Ok(end),
        };
        match batch(leg, BatchWork::planned(client, options, end)).await? {
            BatchEnd::Stopped(stop) => return Ok(LegEnd::Stopped(stop)),
            BatchEnd::Pause(reason) => return Ok(LegEnd::Pause(reason)),
            _ if wrap_up => {
                let end = limit.unwrap_or(FinishReason::MaxRounds);
                return Ok(LegEnd::Finish(end));
            }
            BatchEnd::End(FinishReason::ToolRetryLimit) if options.wrap_up => {
                last_words = Some(FinishReason::ToolRetryLimit);
            }
            BatchEnd::End(end) => return Ok(LegEnd::Finish(end)),
            BatchEnd::GoOn => {}
        }
    }
}
