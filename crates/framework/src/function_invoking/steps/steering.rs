//! The options that steer a leg, as plain data: a leg that is taken up is steered by those it began with
//! (steps.md, K9).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::function_invoking::options::FunctionInvokingOptions;

/// Limits and switches of a leg.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each of which is a key of the JSON form"
)]
pub(in crate::function_invoking) struct Steering {
    max_rounds: u32,
    max_failed_rounds: Option<u32>,
    max_invalid_calls_per_tool: Option<u32>,
    max_unknown_calls_per_tool: Option<u32>,
    max_failed_calls_per_tool: Option<u32>,
    max_calls: Option<u32>,
    max_calls_per_turn: Option<u32>,
    max_calls_per_tool: Option<u32>,
    max_wall_time_ms: Option<u64>,
    no_progress_rounds: u32,
    wrap_up: bool,
    nudge_empty: bool,
    keep_forcing: bool,
    hold_whole_batch: bool,
}

impl Default for Steering {
    fn default() -> Self {
        Self::of(&FunctionInvokingOptions::default())
    }
}

impl Steering {
    /// Those of these options.
    pub(super) fn of(options: &FunctionInvokingOptions) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            max_rounds: options.max_rounds,
            max_failed_rounds: options.max_failed_rounds,
            max_invalid_calls_per_tool: options.max_invalid_calls_per_tool,
            max_unknown_calls_per_tool: options.max_unknown_calls_per_tool,
            max_failed_calls_per_tool: options.max_failed_calls_per_tool,
            max_calls: options.max_calls,
            max_calls_per_turn: options.max_calls_per_turn,
            max_calls_per_tool: options.max_calls_per_tool,
            max_wall_time_ms: options.max_wall_time.map(milliseconds),
            no_progress_rounds: options.no_progress_rounds,
            wrap_up: options.wrap_up,
            nudge_empty: options.nudge_empty,
            keep_forcing: options.keep_forcing,
            hold_whole_batch: options.hold_whole_batch,
        }
    }

    /// The options of a loop with these in their place, if that makes a difference.
    pub(in crate::function_invoking) fn steer(
        recorded: Option<&Self>,
        options: &FunctionInvokingOptions,
    ) -> Option<Box<FunctionInvokingOptions>> {
        let recorded = recorded.filter(|recorded| **recorded != Self::of(options))?;
        let mut steered = Box::new(options.clone());
        steered.max_rounds = recorded.max_rounds;
        steered.max_failed_rounds = recorded.max_failed_rounds;
        steered.max_invalid_calls_per_tool = recorded.max_invalid_calls_per_tool;
        steered.max_unknown_calls_per_tool = recorded.max_unknown_calls_per_tool;
        steered.max_failed_calls_per_tool = recorded.max_failed_calls_per_tool;
        steered.max_calls = recorded.max_calls;
        steered.max_calls_per_turn = recorded.max_calls_per_turn;
        steered.max_calls_per_tool = recorded.max_calls_per_tool;
        steered.max_wall_time = recorded.max_wall_time_ms.map(Duration::from_millis);
        steered.no_progress_rounds = recorded.no_progress_rounds;
        steered.wrap_up = recorded.wrap_up;
        steered.nudge_empty = recorded.nudge_empty;
        steered.keep_forcing = recorded.keep_forcing;
        steered.hold_whole_batch = recorded.hold_whole_batch;
        Some(steered)
    }
}
