//! The loop, readable as the contract: ask the model, plan, run the tools, go round.

use raf_core::{
    AgentResponseUpdate, ChatMessage, Content, Error, FinishReason, MessageRole, MessageSource,
    Result, SkipReason, ToolOutcome,
};
use raf_tools::{ToolOptionsExt, ToolSet};

use super::FunctionInvokingChatClient;
use super::execute::{BatchEnd, execute};
use super::leg::Leg;
use super::plan::{self, ReplyKind, RoundFacts};
use super::round::{self, ReplyEnd};

/// What the model is told when it said nothing.
const NUDGE: &str = "Your last reply was empty. Answer, or call a tool.";

/// Drives a leg to its terminal item.
pub(super) async fn drive(client: &FunctionInvokingChatClient, leg: &mut Leg) -> Result<()> {
    let options = client.options();
    // A failure limit that still grants one request without tools.
    let mut last_words: Option<FinishReason> = None;
    loop {
        if let Some(stop) = leg.stop() {
            return leg.end_stopped(stop).await;
        }
        if let Some(end) = leg.counters.round_end(options) {
            return leg.end(last_words.unwrap_or(end)).await;
        }
        if options
            .max_wall_time
            .is_some_and(|limit| leg.worked_for() >= limit)
        {
            let limit = raf_core::BudgetLimit::WallTime;
            return leg.end(FinishReason::Budget(limit)).await;
        }
        let tools = match visible_tools(client, leg).await {
            Ok(tools) => tools,
            Err(error) => return Err(leg.failure(error)),
        };

        // Ask the model.
        let last_round = options.wrap_up && leg.counters.is_last_round(options);
        let facts = RoundFacts {
            round: leg.counters.rounds,
            wrap_up: last_round || last_words.is_some(),
            out_of_time: false,
        };
        let choice = round::tool_choice(
            leg.options.tool_choice.as_ref(),
            facts.wrap_up,
            leg.first_request,
            options.keep_forcing,
        );
        let request = round::request_options(&leg.options, &tools, choice);
        let reply = round::request(client.inner(), leg, request).await;
        let calls = reply.calls();

        // Look at how the reply ended.
        let (reason, usage) = match reply.end {
            ReplyEnd::Whole { reason, usage } => (reason, usage),
            ReplyEnd::Failed(error) => {
                fill(
                    leg,
                    &calls,
                    facts.round,
                    ToolOutcome::skipped(SkipReason::Truncated),
                )
                .await;
                return Err(leg.failure(error));
            }
            ReplyEnd::Stopped(stop) => {
                fill(leg, &calls, facts.round, stop.not_started()).await;
                return leg.end_stopped(stop).await;
            }
        };
        let limit_reached = || match &last_words {
            Some(end) => Some(end.clone()),
            None => last_round.then_some(FinishReason::MaxRounds),
        };
        let kind = plan::classify(
            &reply.contents,
            &reason,
            usage.as_ref(),
            leg.options.max_output_tokens,
        );
        match kind {
            ReplyKind::Truncated(end) => {
                fill(
                    leg,
                    &calls,
                    facts.round,
                    ToolOutcome::skipped(SkipReason::Truncated),
                )
                .await;
                return leg.end(end).await;
            }
            ReplyKind::Answer(end) => return leg.end(limit_reached().unwrap_or(end)).await,
            ReplyKind::Empty if options.nudge_empty && !leg.nudged => {
                leg.nudged = true;
                nudge(leg).await;
                continue;
            }
            ReplyKind::Empty => {
                let end = limit_reached().unwrap_or(FinishReason::EmptyResponse);
                return leg.end(end).await;
            }
            ReplyKind::Calls => {}
        }

        // Run the tools.
        let facts = RoundFacts {
            out_of_time: options
                .max_wall_time
                .is_some_and(|limit| leg.worked_for() >= limit),
            ..facts
        };
        let planned = plan::plan(&calls, facts, &tools, options, &mut leg.counters);
        match execute(client.executor(), options, leg, planned).await {
            BatchEnd::Stopped(stop) => return leg.end_stopped(stop).await,
            _ if facts.wrap_up => {
                let end = limit_reached().unwrap_or(FinishReason::MaxRounds);
                return leg.end(end).await;
            }
            BatchEnd::End(FinishReason::ToolRetryLimit) if options.wrap_up => {
                last_words = Some(FinishReason::ToolRetryLimit);
            }
            BatchEnd::End(end) => return leg.end(end).await,
            BatchEnd::GoOn => {}
        }
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
    let set = set
        .with_declared(&leg.options.tools)?
        .with_hidden_source("the additional tools", options.additional_tools.tools())?;
    Ok(set.build())
}

/// Gives every call of a reply that did not end well its outcome (contract A2).
async fn fill(leg: &mut Leg, calls: &[raf_core::ToolCall], round: u32, outcome: ToolOutcome) {
    for settled in plan::unfinished_reply(calls, round, outcome) {
        leg.settle(settled).await;
    }
}

async fn nudge(leg: &mut Leg) {
    let message = ChatMessage::builder(MessageRole::User)
        .content(Content::text(NUDGE))
        .source(MessageSource::Framework)
        .build();
    leg.emit(AgentResponseUpdate::Message { message }).await;
}

/// What a leg ends with where no tokio runtime runs.
pub(super) fn no_runtime() -> Error {
    Error::misuse(
        "the stream was polled outside a tokio runtime: tools and timers need one. Poll it from \
         inside `#[tokio::main]` or `Runtime::block_on`",
    )
}
