//! The options that steer a leg, as plain data: a leg that is taken up is steered by those it began with
//! (steps.md, K9).

use std::time::Duration;

use raf_tools::ExecutionMode;
use serde::{Deserialize, Serialize};

use crate::function_invoking::options::FunctionInvokingOptions;

/// The table: each key of the JSON form, and the option that it is. Behind `since`: keys that older values lack,
/// where the option of the process that takes the leg up holds.
macro_rules! steering {
    (
        $($key:ident: $kind:ty = $($option:ident).+,)*;
        since: $($later:ident: $later_kind:ty = $($at:ident).+,)*
    ) => {
        /// Limits and switches of a leg.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub(in crate::function_invoking) struct Steering {
            $($key: $kind,)*
            max_wall_time_ms: Option<u64>,
            $(#[serde(default, skip_serializing_if = "Option::is_none")] $later: Option<$later_kind>,)*
        }

        impl Steering {
            /// Those of these options.
            pub(super) fn of(options: &FunctionInvokingOptions) -> Self {
                Self {
                    $($key: options.$($option).+,)*
                    max_wall_time_ms: options.max_wall_time.map(milliseconds),
                    $($later: Some(options.$($at).+),)*
                }
            }

            fn lay_over(&self, options: &mut FunctionInvokingOptions) {
                $(options.$($option).+ = self.$key;)*
                options.max_wall_time = self.max_wall_time_ms.map(Duration::from_millis);
                $(if let Some(recorded) = self.$later {
                    options.$($at).+ = recorded;
                })*
            }
        }
    };
}

steering! {
    max_rounds: u32 = max_rounds,
    max_failed_rounds: Option<u32> = max_failed_rounds,
    max_invalid_calls_per_tool: Option<u32> = max_invalid_calls_per_tool,
    max_unknown_calls_per_tool: Option<u32> = max_unknown_calls_per_tool,
    max_failed_calls_per_tool: Option<u32> = max_failed_calls_per_tool,
    max_calls: Option<u32> = max_calls,
    max_calls_per_turn: Option<u32> = max_calls_per_turn,
    max_calls_per_tool: Option<u32> = max_calls_per_tool,
    no_progress_rounds: u32 = no_progress_rounds,
    wrap_up: bool = wrap_up,
    nudge_empty: bool = nudge_empty,
    keep_forcing: bool = keep_forcing,
    hold_whole_batch: bool = hold_whole_batch,;
    since:
    mode: ExecutionMode = execution.mode,
    max_concurrency: usize = execution.max_concurrency,
}

impl Default for Steering {
    fn default() -> Self {
        Self::of(&FunctionInvokingOptions::default())
    }
}

impl Steering {
    /// The options of a loop with these in their place, if that makes a difference.
    pub(in crate::function_invoking) fn steer(
        recorded: Option<&Self>,
        options: &FunctionInvokingOptions,
    ) -> Option<Box<FunctionInvokingOptions>> {
        let recorded = recorded.filter(|recorded| **recorded != Self::of(options))?;
        let mut steered = Box::new(options.clone());
        recorded.lay_over(&mut steered);
        Some(steered)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use raf_tools::{ExecutionMode, ExecutionOptions};
    use serde_json::json;

    use super::Steering;
    use crate::function_invoking::options::FunctionInvokingOptions;

    fn options(mode: ExecutionMode, bound: usize) -> FunctionInvokingOptions {
        let execution = ExecutionOptions::new()
            .with_mode(mode)
            .with_max_concurrency(bound);
        FunctionInvokingOptions::new().with_execution(execution)
    }

    #[test]
    fn k9_what_was_recorded_comes_back_and_steers() {
        let began = options(ExecutionMode::Sequential, 3)
            .with_max_rounds(7)
            .with_max_calls(9)
            .with_max_wall_time(Duration::from_millis(1_500));
        let json = serde_json::to_value(Steering::of(&began)).unwrap();
        assert_eq!(json["mode"], "sequential");
        assert_eq!(json["max_concurrency"], 3);
        assert_eq!(json["max_wall_time_ms"], 1_500);
        let recorded: Steering = serde_json::from_value(json).unwrap();
        assert!(Steering::steer(Some(&recorded), &began).is_none());
        let other = FunctionInvokingOptions::default();
        let steered = Steering::steer(Some(&recorded), &other).unwrap();
        assert_eq!(Steering::of(&steered), recorded);
    }

    #[test]
    fn k13_a_value_of_before_steers_by_what_it_has() {
        let mut json = serde_json::to_value(Steering::default()).unwrap();
        let members = json.as_object_mut().unwrap();
        assert!(members.remove("mode").is_some() && members.remove("max_concurrency").is_some());
        members.insert("max_rounds".to_owned(), json!(2));
        let recorded: Steering = serde_json::from_value(json).unwrap();
        let steered = Steering::steer(Some(&recorded), &options(ExecutionMode::Sequential, 3));
        let steered = steered.unwrap();
        assert_eq!(steered.max_rounds, 2);
        assert_eq!(steered.execution.mode, ExecutionMode::Sequential);
        assert_eq!(steered.execution.max_concurrency, 3);
    }
}
