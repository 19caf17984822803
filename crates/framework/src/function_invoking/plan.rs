//! What a reply asks for, and what is to be done with its calls. Pure: a function of the reply, the
//! tools, the options and the counters.

use raf_core::{
    BudgetLimit, Content, FinishReason, Occurrence, RunId, SkipReason, TerminationCause, ToolCall,
    ToolErrorClass, ToolOutcome, Usage,
};
use raf_tools::{BatchCall, CallState, OpenBatch, Preparation, SettledCall, ToolSet, rejection};

use super::counters::{CallBudget, Counters};
use super::options::FunctionInvokingOptions;
use super::policy::{PolicyFacts, Verdict, judge, tightens};

/// What a reply that ended well comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// It is the answer.
    Answer(FinishReason),
    /// It says nothing.
    Empty,
    /// It asks for calls.
    Calls,
    /// It was cut or filtered: none of its calls run.
    Truncated(FinishReason),
}

/// Classes a reply by its contents and the reason it ended with.
pub(super) fn classify(
    contents: &[Content],
    reason: &FinishReason,
    usage: Option<&Usage>,
    max_output_tokens: Option<u32>,
) -> ReplyKind {
    if matches!(reason, FinishReason::Length | FinishReason::ContentFilter) {
        return ReplyKind::Truncated(reason.clone());
    }
    let last_call = contents.iter().rev().find_map(Content::as_tool_call);
    if let Some(last) = last_call {
        let budget_used = match (
            usage.and_then(|usage| usage.output_tokens),
            max_output_tokens,
        ) {
            (Some(used), Some(limit)) => used >= u64::from(limit),
            _ => false,
        };
        let is_unreadable = || last.arguments_fault().is_some() || !last.is_complete();
        return if budget_used && is_unreadable() {
            ReplyKind::Truncated(FinishReason::Length)
        } else {
            ReplyKind::Calls
        };
    }
    let says_something = contents
        .iter()
        .any(|content| !content.is_empty() && !matches!(content, Content::Reasoning(_)));
    if !says_something {
        return ReplyKind::Empty;
    }
    ReplyKind::Answer(match reason {
        FinishReason::ToolCalls => FinishReason::Stop,
        other => other.clone(),
    })
}

/// What is to be done with the calls of a reply.
#[derive(Clone, Debug)]
pub(super) struct BatchPlan {
    pub(super) batch: OpenBatch,
    /// The end that follows behind the batch, whatever comes of it.
    pub(super) end: Option<FinishReason>,
}

/// What holds for the round that a batch belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundFacts<'a> {
    pub(super) run_id: &'a RunId,
    pub(super) round: u32,
    /// It was the last request, which grants words only.
    pub(super) wrap_up: bool,
    /// Its request said that nothing may be called: tool choice `none`.
    pub(super) forbidden: bool,
    /// The run has worked for as long as it may.
    pub(super) out_of_time: bool,
}

/// What the model reads of a call that it made although its request allowed none.
const FORBIDDEN: &str =
    "Not run: no tool may be called in this request (tool choice `none`). Answer without calling.";

/// Plans a batch: what the request forbade is not run, what is unknown or invalid is settled before anybody is asked, what is over a limit
/// is skipped, policies decide before people do, what is gated waits, what is declared only waits for
/// the caller.
pub(super) fn plan(
    calls: &[ToolCall],
    facts: RoundFacts<'_>,
    preparation: Preparation<'_>,
    options: &FunctionInvokingOptions,
    policy: PolicyFacts<'_>,
    counters: &mut Counters,
) -> BatchPlan {
    if facts.wrap_up {
        return all_skipped(calls, facts, None, None);
    }
    if facts.forbidden {
        return all_skipped(calls, facts, Some(FORBIDDEN), None);
    }
    if facts.out_of_time {
        let end = FinishReason::Budget(BudgetLimit::WallTime);
        return all_skipped(calls, facts, None, Some(end));
    }
    let mut prepared: Vec<BatchCall> = numbered(calls, facts.round)
        .map(|(occurrence, call)| preparation.batch_call(occurrence, call))
        .collect();
    let stop_on_unknown = options.execution.unknown_tools.stops()
        && prepared.iter().any(|call| call.state.is_unknown_tool());
    let mut end =
        stop_on_unknown.then_some(FinishReason::Terminated(TerminationCause::UnknownTool));
    for call in &mut prepared {
        let skip =
            |reason| CallState::Settled(SettledCall::skipped(call.occurrence, &call.call, reason));
        call.state = if stop_on_unknown && !call.state.is_unknown_tool() {
            skip(SkipReason::Terminated)
        } else {
            match counters.admit(call.tool_name(), options) {
                CallBudget::Fits => judged(
                    std::mem::replace(&mut call.state, CallState::DeclaredOnly),
                    policy,
                ),
                CallBudget::ToolUsedUp => skip(SkipReason::Limit),
                CallBudget::RunUsedUp => {
                    end.get_or_insert(super::counters::CALLS_USED_UP);
                    skip(SkipReason::Limit)
                }
            }
        };
    }
    BatchPlan {
        batch: OpenBatch::new(facts.run_id.clone(), facts.round, prepared),
        end,
    }
}

/// A call's state after policies, rules and earlier denials were asked.
fn judged(state: CallState, policy: PolicyFacts<'_>) -> CallState {
    let (ready, gated) = match state {
        CallState::Ready(ready) => (ready, false),
        CallState::Gated { ready, .. } => (ready, true),
        other => return other,
    };
    let settled = |outcome, text| {
        CallState::Settled(SettledCall::new(
            ready.occurrence,
            &ready.call,
            outcome,
            text,
        ))
    };
    match judge(&ready, gated, policy) {
        Verdict::Run => {
            let mut ready = ready;
            ready.decided |= gated || policy.policy.is_some();
            CallState::Ready(ready)
        }
        Verdict::Ask(reason) => CallState::Gated {
            ready,
            request: None,
            reason,
        },
        Verdict::Deny(reason) => settled(ToolOutcome::Denied, Some(rejection(reason.as_deref()))),
        Verdict::Panicked => settled(ToolOutcome::Error(ToolErrorClass::Panicked), None),
    }
}

/// Looks again at a call that was held back and that nobody was asked about: its tool may have a gate
/// by now, or a policy may deny it (contract D10, E3). One that was approved can only be denied.
pub(super) fn judged_again(
    state: CallState,
    tools: &ToolSet,
    policy: PolicyFacts<'_>,
) -> CallState {
    let CallState::Ready(ready) = state else {
        return state;
    };
    let denied = |text| {
        let outcome = ToolOutcome::Denied;
        let settled = SettledCall::new(ready.occurrence, &ready.call, outcome, Some(text));
        CallState::Settled(settled)
    };
    let arguments = serde_json::Value::Object(ready.arguments.clone());
    if !ready.tool.schema().faults(&arguments).is_empty() {
        return denied("Rejected: the recorded arguments no longer fit the tool.".to_owned());
    }
    if ready.approved {
        return match tightens(&ready, policy) {
            Some(text) => denied(text),
            None => CallState::Ready(ready),
        };
    }
    let gated = tools
        .get(ready.tool.name())
        .is_some_and(|entry| entry.gated);
    let state = if gated {
        CallState::Gated {
            ready,
            request: None,
            reason: None,
        }
    } else {
        CallState::Ready(ready)
    };
    judged(state, policy)
}

/// The calls of a reply none of which may run, each settled: by the limit that forbids them, with this
/// text or the outcome's own.
fn all_skipped(
    calls: &[ToolCall],
    facts: RoundFacts<'_>,
    text: Option<&str>,
    end: Option<FinishReason>,
) -> BatchPlan {
    let calls = numbered(calls, facts.round)
        .map(|(occurrence, call)| {
            let outcome = ToolOutcome::skipped(SkipReason::Limit);
            let skipped = SettledCall::new(occurrence, call, outcome, text.map(str::to_owned));
            BatchCall::new(occurrence, call.clone(), CallState::Settled(skipped))
        })
        .collect();
    BatchPlan {
        batch: OpenBatch::new(facts.run_id.clone(), facts.round, calls),
        end,
    }
}

/// The outcome of calls that stand whole in a reply which did not end well.
pub(super) fn unfinished_reply(
    calls: &[ToolCall],
    round: u32,
    outcome: ToolOutcome,
) -> Vec<SettledCall> {
    numbered(calls, round)
        .map(|(occurrence, call)| SettledCall::new(occurrence, call, outcome, None))
        .collect()
}

fn numbered(calls: &[ToolCall], round: u32) -> impl Iterator<Item = (Occurrence, &ToolCall)> {
    (0..)
        .map(move |position| Occurrence::new(round, position))
        .zip(calls)
}

#[cfg(test)]
mod tests;
