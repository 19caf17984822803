//! What comes in from outside while a run goes on: messages, what context providers want kept, and the
//! hooks' word.

use std::collections::BTreeMap;

use raf_core::{
    AgentResponseUpdate, ChatMessage, Content, FinishReason, MessageRole, MessageSource,
    Occurrence, SkipReason, TerminationCause, ToolCall, ToolOutcome,
};
use raf_tools::{CallState, SettledCall, rejection};

use super::drive::LegEnd;
use super::hooks::HooksEnd;
use super::leg::Leg;
use super::plan::{self, BatchPlan};

/// What the model is told when it said nothing.
const NUDGE: &str = "Your last reply was empty. Answer, or call a tool.";

/// The end of a run that a hook stops.
pub(super) const STOPPED_BY_HOOK: FinishReason = FinishReason::Terminated(TerminationCause::Hook);

/// The end that a hook brings about, the open calls of the reply settled.
pub(super) async fn hook_end(
    leg: &mut Leg,
    calls: &[ToolCall],
    round: u32,
    end: HooksEnd,
) -> LegEnd {
    if let HooksEnd::Stopped(stop) = end {
        fill(leg, calls, round, stop.not_started()).await;
        return LegEnd::Stopped(stop);
    }
    let outcome = ToolOutcome::skipped(SkipReason::Terminated);
    fill(leg, calls, round, outcome).await;
    LegEnd::Finish(STOPPED_BY_HOOK)
}

/// Denies the calls that hooks keep from running.
pub(super) fn veto(plan: &mut BatchPlan, round: u32, vetoes: BTreeMap<u32, String>) {
    for (position, reason) in vetoes {
        let occurrence = Occurrence::new(round, position);
        let calls = plan.batch.calls();
        let call = calls.iter().find(|call| call.occurrence == occurrence);
        let Some(call) = call.filter(|call| !matches!(call.state, CallState::Settled(_))) else {
            continue;
        };
        let text = Some(rejection(Some(&reason)));
        let settled = SettledCall::new(occurrence, &call.call, ToolOutcome::Denied, text);
        plan.batch.set(occurrence, CallState::Settled(settled));
    }
}

/// Appends what has come in meanwhile (contract A5).
pub(super) async fn take_inbox(leg: &mut Leg) {
    for message in leg.take_mail() {
        if message.role() == MessageRole::User {
            leg.run.counters.begin_turn();
        }
        leg.emit(AgentResponseUpdate::Message { message }).await;
    }
}

/// Appends what context providers want kept with the conversation: a new turn begins.
pub(super) async fn append_context(leg: &mut Leg) {
    let Some(context) = leg.context.clone() else {
        return;
    };
    for message in &context.stored {
        let message = message.clone();
        leg.emit(AgentResponseUpdate::Message { message }).await;
    }
}

/// Gives every call of a reply that did not end well its outcome (contract A2).
pub(super) async fn fill(leg: &mut Leg, calls: &[ToolCall], round: u32, outcome: ToolOutcome) {
    for settled in plan::unfinished_reply(calls, round, outcome) {
        leg.settle(settled).await;
    }
}

/// Asks a model again that said nothing.
pub(super) async fn nudge(leg: &mut Leg) {
    let message = ChatMessage::builder(MessageRole::User)
        .content(Content::text(NUDGE))
        .source(MessageSource::Framework)
        .build();
    leg.emit(AgentResponseUpdate::Message { message }).await;
}
