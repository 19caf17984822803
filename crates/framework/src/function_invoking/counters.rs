//! What the limits count, and when they end a run. Pure.

use std::collections::BTreeMap;

use raf_core::{BudgetLimit, FinishReason, ToolErrorClass, ToolOutcome};
use serde::{Deserialize, Serialize};

use super::options::FunctionInvokingOptions;

/// The counters of a run. They live as long as the run: across pauses, and shared with nested runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// Model requests.
    pub(super) rounds: u32,
    /// Calls of the run, those that were skipped not counted.
    calls: u32,
    calls_of_turn: u32,
    failed_rounds: u32,
    tools: BTreeMap<String, ToolCounters>,
    /// The last round whose results were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted: Option<u32>,
    /// What the runs around this one allow it just now; no part of the record.
    #[serde(skip)]
    allowed: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ToolCounters {
    calls: u32,
    invalid: u32,
    unknown: u32,
    failed: u32,
}

/// Whether one more call fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallBudget {
    Fits,
    /// This tool was called often enough; the run goes on.
    ToolUsedUp,
    /// The run has made its calls: it ends behind this batch.
    RunUsedUp,
}

impl Counters {
    /// Counts a call that is about to run or be asked about, if it fits.
    pub(super) fn admit(&mut self, tool: &str, options: &FunctionInvokingOptions) -> CallBudget {
        let full = |count: u32, limit: Option<u32>| limit.is_some_and(|limit| count >= limit);
        if full(self.calls, options.max_calls)
            || full(self.calls_of_turn, options.max_calls_per_turn)
            || self.allowed == Some(0)
        {
            return CallBudget::RunUsedUp;
        }
        let counters = counters_of(&mut self.tools, tool);
        if full(counters.calls, options.max_calls_per_tool) {
            return CallBudget::ToolUsedUp;
        }
        counters.calls += 1;
        self.calls += 1;
        self.calls_of_turn += 1;
        self.allowed = self.allowed.map(|allowed| allowed - 1);
        CallBudget::Fits
    }

    /// Sets how many calls the runs around this one allow it.
    pub(super) fn allow(&mut self, calls: Option<u32>) {
        self.allowed = calls;
    }

    /// How many of the calls that were allowed are left.
    pub(super) fn allowed(&self) -> u32 {
        self.allowed.unwrap_or_default()
    }

    /// How many calls nested runs may make.
    pub(super) fn calls_left(&self, options: &FunctionInvokingOptions) -> Option<u32> {
        let of_run = options.max_calls.map(|max| max.saturating_sub(self.calls));
        let of_turn = options.max_calls_per_turn;
        let of_turn = of_turn.map(|max| max.saturating_sub(self.calls_of_turn));
        of_run.into_iter().chain(of_turn).min()
    }

    /// Counts the calls that nested runs made.
    pub(super) fn add_nested_calls(&mut self, calls: u32) {
        self.calls = self.calls.saturating_add(calls);
        self.calls_of_turn = self.calls_of_turn.saturating_add(calls);
    }

    /// A message of the user begins a new turn.
    pub(super) fn begin_turn(&mut self) {
        self.calls_of_turn = 0;
    }

    /// The calls that were made.
    pub(super) fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether the results of this round are counted.
    pub(super) fn has_counted(&self, round: u32) -> bool {
        self.counted == Some(round)
    }

    /// The results of this round are.
    pub(super) fn set_counted(&mut self, round: u32) {
        self.counted = Some(round);
    }

    /// Counts the results of a round, in call order: tool and outcome each.
    pub(super) fn count_round<'a>(
        &mut self,
        results: impl IntoIterator<Item = (&'a str, ToolOutcome)>,
    ) {
        let mut failed = false;
        let mut any = false;
        for (tool, outcome) in results {
            any = true;
            failed |= outcome.is_error();
            let counters = counters_of(&mut self.tools, tool);
            match outcome {
                ToolOutcome::Ok => {
                    counters.invalid = 0;
                    counters.unknown = 0;
                    counters.failed = 0;
                }
                ToolOutcome::Error(ToolErrorClass::InvalidArguments) => counters.invalid += 1,
                ToolOutcome::Error(ToolErrorClass::UnknownTool) => counters.unknown += 1,
                ToolOutcome::Error(_) => counters.failed += 1,
                _ => {}
            }
        }
        if failed {
            self.failed_rounds += 1;
        } else if any {
            self.failed_rounds = 0;
        }
    }

    /// The end that the failures so far call for.
    pub(super) fn failure_end(&self, options: &FunctionInvokingOptions) -> Option<FinishReason> {
        let over = |count: u32, limit: Option<u32>| limit.is_some_and(|limit| count > limit);
        let tool_over = self.tools.values().any(|tool| {
            over(tool.invalid, options.max_invalid_calls_per_tool)
                || over(tool.unknown, options.max_unknown_calls_per_tool)
                || over(tool.failed, options.max_failed_calls_per_tool)
        });
        (tool_over || over(self.failed_rounds, options.max_failed_rounds))
            .then_some(FinishReason::ToolRetryLimit)
    }

    /// Whether the results of a round so far already call for an end, so that what has not started
    /// need not run.
    pub(super) fn would_end<'a>(
        &self,
        results: impl IntoIterator<Item = (&'a str, ToolOutcome)>,
        options: &FunctionInvokingOptions,
    ) -> bool {
        let mut after = self.clone();
        after.count_round(results);
        after.failure_end(options).is_some()
    }

    /// The end that the rounds made so far call for, before another request.
    pub(super) fn round_end(&self, options: &FunctionInvokingOptions) -> Option<FinishReason> {
        (self.rounds >= options.max_rounds).then_some(FinishReason::MaxRounds)
    }

    /// Whether the next request is the last one.
    pub(super) fn is_last_round(&self, options: &FunctionInvokingOptions) -> bool {
        self.rounds + 1 >= options.max_rounds
    }
}

/// Those of a tool. Its name is copied once, and not for each call.
fn counters_of<'a>(
    tools: &'a mut BTreeMap<String, ToolCounters>,
    tool: &str,
) -> &'a mut ToolCounters {
    if !tools.contains_key(tool) {
        tools.insert(tool.to_owned(), ToolCounters::default());
    }
    tools.get_mut(tool).expect("it was inserted")
}

/// The end that follows when calls were over the run's budget.
pub(super) const CALLS_USED_UP: FinishReason = FinishReason::Budget(BudgetLimit::Calls);

#[cfg(test)]
mod tests;
