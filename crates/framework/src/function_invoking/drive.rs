//! The loop, readable as the contract: begin or resume, ask the model, plan, run the tools, go round.

use std::sync::Arc;

use raf_core::{
    AgentResponseUpdate, BudgetLimit, ChatMessage, ClosedReason, Content, Error, ErrorKind,
    FinishReason, MessageRole, MessageSource, Result, SkipReason, ToolCall, ToolOutcome,
};
use raf_tools::{ToolOptionsExt, ToolSet};

use super::FunctionInvokingChatClient;
use super::durable;
use super::execute::{self, BatchEnd, execute};
use super::hooks::{self, HooksEnd};
use super::leg::{Leg, Run, Stop};
use super::plan::{self, BatchPlan, ReplyKind, RoundFacts};
use super::policy::PolicyFacts;
use super::records;
use super::resume::{self, Beginning};
use super::round::{self, Reply, ReplyEnd};
use super::steer::{STOPPED_BY_HOOK, append_context, fill, hook_end, take_inbox, veto};

/// What the model is told when it said nothing.
const NUDGE: &str = "Your last reply was empty. Answer, or call a tool.";

/// How a leg ends.
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
    let end = if leg.store.is_durable() {
        let (store, claim) = (Arc::clone(&leg.store), leg.claim.clone());
        let held = leg.held.clone();
        durable::while_held(store, claim, held, legs_end(client, leg)).await
    } else {
        legs_end(client, leg).await
    };
    let end = match end {
        Ok(end) => end,
        Err(error) => return Err(fail(leg, error).await),
    };
    match end {
        LegEnd::Pause(reason) => {
            let paused = match records::release(leg).await {
                Ok(paused) => paused,
                Err(error) => return Err(leg.failure(error)),
            };
            leg.finish(reason, paused).await;
        }
        LegEnd::Finish(reason) => {
            let reason = close(leg, reason).await?;
            leg.finish(reason, None).await;
        }
        LegEnd::Stopped(Stop::Deadline) => {
            let reason = FinishReason::Budget(BudgetLimit::Deadline);
            let reason = close(leg, reason).await?;
            leg.finish(reason, None).await;
        }
        LegEnd::Stopped(Stop::Cancelled) => {
            let error = Error::new(ErrorKind::Cancelled, "the run was cancelled");
            return Err(fail(leg, error).await);
        }
    }
    Ok(())
}

async fn close(leg: &mut Leg, reason: FinishReason) -> Result<FinishReason> {
    match records::close(leg, ClosedReason::Cancelled).await {
        Ok(()) => Ok(reason),
        Err(error) => Err(leg.failure(error)),
    }
}

/// The terminal error: the run ends, unless calls wait; what keeps its record from being closed is
/// only logged, since the first failure is what the caller must see.
async fn fail(leg: &mut Leg, error: Error) -> Error {
    if leg.pending.is_empty()
        && !durable::leaves_open(leg, &error)
        && let Err(second) = records::close(leg, ClosedReason::Cancelled).await
    {
        tracing::warn!(error = %second, "the record of a failed run could not be closed");
    }
    leg.failure(error)
}

async fn legs_end(client: &FunctionInvokingChatClient, leg: &mut Leg) -> Result<LegEnd> {
    let options = client.options();
    if let Some(stop) = leg.stop() {
        // What an earlier leg left open still waits: the caller must see it (C3).
        match resume::waiting(leg).await {
            Ok(waiting) => leg.pending = waiting,
            Err(error) => tracing::warn!(%error, "what waits could not be looked up"),
        }
        return Ok(LegEnd::Stopped(stop));
    }
    let tools = match tools_or_stop(client, leg).await? {
        Ok(tools) => tools,
        Err(stop) => return Ok(LegEnd::Stopped(stop)),
    };
    let mut last_words = None;
    match resume::begin(leg, &tools, options).await? {
        Beginning::Ask => append_context(leg).await,
        Beginning::Continue => {}
        Beginning::StillWaiting(mut batch) => {
            return Ok(LegEnd::Pause(execute::pause(&mut batch, leg).await?));
        }
        Beginning::GoOn { batch, superseded } => {
            let end = leg.run.batch_end.take();
            let plan = BatchPlan { batch, end };
            match run_batch(client, leg, plan, superseded).await? {
                BatchEnd::Stopped(stop) => return Ok(LegEnd::Stopped(stop)),
                BatchEnd::Pause(reason) => return Ok(LegEnd::Pause(reason)),
                // A new turn of the user begins a new run.
                _ if superseded => {
                    records::close(leg, ClosedReason::Superseded).await?;
                    leg.run = Run::new();
                    append_context(leg).await;
                }
                BatchEnd::End(FinishReason::ToolRetryLimit) if options.wrap_up => {
                    last_words = Some(FinishReason::ToolRetryLimit);
                }
                BatchEnd::End(end) => return Ok(LegEnd::Finish(end)),
                BatchEnd::GoOn => {}
            }
        }
    }
    rounds(client, leg, last_words).await
}

/// Goes round until the run ends or waits. `last_words`: a failure limit ended the run, which grants
/// one more request without tools.
async fn rounds(
    client: &FunctionInvokingChatClient,
    leg: &mut Leg,
    mut last_words: Option<FinishReason>,
) -> Result<LegEnd> {
    let options = client.options();
    records::open(leg).await?;
    loop {
        if let Some(stop) = leg.stop() {
            return Ok(LegEnd::Stopped(stop));
        }
        if let Some(end) = leg.run.counters.round_end(options) {
            return Ok(LegEnd::Finish(last_words.unwrap_or(end)));
        }
        if leg.is_out_of_time(options) {
            let limit = FinishReason::Budget(BudgetLimit::WallTime);
            return Ok(LegEnd::Finish(limit));
        }
        take_inbox(leg).await;
        let tools = match tools_or_stop(client, leg).await? {
            Ok(tools) => tools,
            Err(stop) => return Ok(LegEnd::Stopped(stop)),
        };
        records::begin_round(leg).await?;

        // Ask the model.
        let last_round = options.wrap_up && leg.run.counters.is_last_round(options);
        let wrap_up = last_round || last_words.is_some();
        let round = leg.run.counters.rounds;
        let choice = round::tool_choice(
            leg.options.tool_choice.as_ref(),
            wrap_up,
            leg.first_request,
            options.keep_forcing,
        );
        let mut request = round::request_options(&leg.options, &tools, choice.clone());
        let mut messages = leg.request_messages();
        match hooks::before_request(&options.hooks, leg, &mut messages, &mut request).await {
            HooksEnd::GoOn => {}
            end => return Ok(hook_end(leg, &[], round, end).await),
        }
        let forbidden = round::forbids_calls(&request, choice.as_ref());
        let reply = round::request(client.inner(), leg, messages, request).await;
        let calls = reply.calls();
        if let ReplyEnd::Whole { usage, .. } = &reply.end {
            let contents = &reply.contents;
            match hooks::after_reply(&options.hooks, leg, round, contents, usage.as_ref()).await {
                HooksEnd::GoOn => {}
                end => return Ok(hook_end(leg, &calls, round, end).await),
            }
        }
        let limit_reached = match &last_words {
            Some(end) => Some(end.clone()),
            None => last_round.then_some(FinishReason::MaxRounds),
        };

        // Look at how the reply ended.
        match reply_kind(leg, reply, &calls, round).await? {
            Ok(ReplyKind::Calls) => {}
            Ok(ReplyKind::Truncated(end)) => return Ok(LegEnd::Finish(end)),
            // A message came meanwhile: it is answered too, if a request is left.
            Ok(ReplyKind::Answer(_))
                if leg.has_mail()
                    && limit_reached.is_none()
                    && leg.run.counters.round_end(options).is_none() => {}
            Ok(ReplyKind::Answer(end)) => {
                return Ok(LegEnd::Finish(limit_reached.unwrap_or(end)));
            }
            Ok(ReplyKind::Empty) if options.nudge_empty && !leg.nudged => {
                leg.nudged = true;
                nudge(leg).await;
                continue;
            }
            Ok(ReplyKind::Empty) => {
                let end = limit_reached.unwrap_or(FinishReason::EmptyResponse);
                return Ok(LegEnd::Finish(end));
            }
            Err(stop) => return Ok(LegEnd::Stopped(stop)),
        }

        // Run the tools.
        if calls.is_empty() {
            continue;
        }
        let (end, vetoes) = hooks::before_batch(&options.hooks, leg, round, &calls).await;
        if end != HooksEnd::GoOn {
            return Ok(hook_end(leg, &calls, round, end).await);
        }
        let told = (wrap_up, forbidden);
        let planned = plan_batch(client, leg, &tools, &calls, round, told).await;
        let mut plan = match planned {
            Ok(plan) => plan,
            Err(error) => {
                fill(
                    leg,
                    &calls,
                    round,
                    ToolOutcome::Cancelled { started: false },
                )
                .await;
                return Err(error);
            }
        };
        veto(&mut plan, round, vetoes);
        match run_batch(client, leg, plan, false).await? {
            BatchEnd::Stopped(stop) => return Ok(LegEnd::Stopped(stop)),
            BatchEnd::Pause(reason) => return Ok(LegEnd::Pause(reason)),
            _ if wrap_up => {
                let end = limit_reached.unwrap_or(FinishReason::MaxRounds);
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

/// Runs a batch, and shows the hooks what came of it.
async fn run_batch(
    client: &FunctionInvokingChatClient,
    leg: &mut Leg,
    plan: BatchPlan,
    superseded: bool,
) -> Result<BatchEnd> {
    let options = client.options();
    let round = plan.batch.round();
    let end = execute(client.executor(), options, leg, plan, superseded).await?;
    if !matches!(end, BatchEnd::GoOn) || superseded {
        return Ok(end);
    }
    Ok(match hooks::after_batch(&options.hooks, leg, round).await {
        HooksEnd::GoOn => end,
        HooksEnd::Stop => BatchEnd::End(STOPPED_BY_HOOK),
        HooksEnd::Stopped(stop) => BatchEnd::Stopped(stop),
    })
}

/// What a reply comes to; the calls of one that did not end well get their outcome here (A2, G1).
async fn reply_kind(
    leg: &mut Leg,
    reply: Reply,
    calls: &[ToolCall],
    round: u32,
) -> Result<std::result::Result<ReplyKind, Stop>> {
    let truncated = ToolOutcome::skipped(SkipReason::Truncated);
    match reply.end {
        ReplyEnd::Whole { reason, usage } => {
            let limit = leg.options.max_output_tokens;
            let kind = plan::classify(&reply.contents, &reason, usage.as_ref(), limit);
            if matches!(kind, ReplyKind::Truncated(_)) {
                fill(leg, calls, round, truncated).await;
            }
            Ok(Ok(kind))
        }
        ReplyEnd::Failed(error) => {
            fill(leg, calls, round, truncated).await;
            Err(error)
        }
        ReplyEnd::Stopped(stop) => {
            fill(leg, calls, round, stop.not_started()).await;
            Ok(Err(stop))
        }
    }
}

async fn plan_batch(
    client: &FunctionInvokingChatClient,
    leg: &mut Leg,
    tools: &ToolSet,
    calls: &[ToolCall],
    round: u32,
    (wrap_up, forbidden): (bool, bool),
) -> Result<BatchPlan> {
    let options = client.options();
    let rules = leg
        .store
        .remembered(&resume::scope(leg, &leg.run.id))
        .await?;
    let policy = PolicyFacts {
        policy: options.approval_policy.as_deref(),
        rules: &rules,
        denied: &leg.run.denied,
        session_id: leg.options.session_id.as_deref(),
        untrusted_context: options.approval_policy.is_some() && leg.has_untrusted_text(),
    };
    let facts = RoundFacts {
        run_id: &leg.run.id,
        round,
        wrap_up,
        forbidden,
        out_of_time: leg.is_out_of_time(options),
    };
    let mut counters = leg.run.counters.clone();
    // The runs around this one lend calls; what is not used goes back.
    let wanted = u32::try_from(calls.len()).unwrap_or(u32::MAX);
    counters.allow(leg.allowance().map(|allowance| allowance.take(wanted)));
    let preparation = client
        .executor()
        .preparation(tools, &leg.run.id, &leg.options.extensions);
    let plan = plan::plan(calls, facts, preparation, options, policy, &mut counters);
    if let Some(allowance) = leg.allowance() {
        allowance.give_back(counters.allowed());
    }
    counters.allow(None);
    leg.run.counters = counters;
    Ok(plan)
}

/// The tools of the next request, unless something says stop while a source is asked.
async fn tools_or_stop(
    client: &FunctionInvokingChatClient,
    leg: &Leg,
) -> Result<std::result::Result<ToolSet, Stop>> {
    tokio::select! {
        biased;
        stop = leg.stopped() => Ok(Err(stop)),
        tools = visible_tools(client, leg) => Ok(Ok(tools?)),
    }
}

/// The tools of the next request, asked of every source afresh (contract D10).
async fn visible_tools(client: &FunctionInvokingChatClient, leg: &Leg) -> Result<ToolSet> {
    let options = client.options();
    let mut set = ToolSet::builder()
        .with_source("the registered tools", client.executor().registry().tools())?;
    for source in &options.tool_sources {
        set = set.with_source("a tool source of the agent", &source.tools().await?)?;
    }
    for source in leg.options.provider_tools() {
        set = set.with_source("the tools given with the run", &source.tools().await?)?;
    }
    set = set.with_declared(&leg.options.tools)?;
    for source in leg.context.iter().flat_map(|context| &context.tools) {
        set = set.with_source("the tools of a context provider", &source.tools().await?)?;
    }
    let set = set.with_hidden_source("the additional tools", options.additional_tools.tools())?;
    Ok(set.build())
}

async fn nudge(leg: &mut Leg) {
    let message = ChatMessage::builder(MessageRole::User)
        .content(Content::text(NUDGE))
        .source(MessageSource::Framework)
        .build();
    leg.emit(AgentResponseUpdate::Message { message }).await;
}
