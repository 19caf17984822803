//! When limits end a run.

use raf_core::{FinishReason, ToolErrorClass, ToolOutcome};

use super::CallBudget::{Fits, RunUsedUp, ToolUsedUp};
use super::Counters;
use crate::FunctionInvokingOptions;

const OK: ToolOutcome = ToolOutcome::Ok;
const FAILED: ToolOutcome = ToolOutcome::Error(ToolErrorClass::Failed);
const INVALID: ToolOutcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);
const UNKNOWN: ToolOutcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);

/// Which round, from 1, ends a run of these rounds.
fn ends(options: &FunctionInvokingOptions, rounds: &[&[(&str, ToolOutcome)]]) -> Option<usize> {
    let mut counters = Counters::default();
    for (index, round) in rounds.iter().enumerate() {
        counters.count_round(round.iter().copied());
        if let Some(end) = counters.failure_end(options) {
            assert_eq!(end, FinishReason::ToolRetryLimit);
            return Some(index + 1);
        }
    }
    None
}

#[test]
fn f1_n_failed_rounds_are_tolerated_and_one_more_ends() {
    let two = FunctionInvokingOptions::new().with_max_failed_rounds(2);
    let ok: &[_] = &[("f", OK)];
    let mixed: &[_] = &[("f", OK), ("g", FAILED)];
    let denied: &[_] = &[("f", ToolOutcome::Denied)];
    assert_eq!(ends(&two, &[mixed, ok, mixed, mixed, mixed]), Some(5));
    assert_eq!(ends(&two, &[mixed, mixed, ok, mixed, mixed]), None);
    assert_eq!(ends(&two, &[denied, denied, denied, denied]), None);
    let none = FunctionInvokingOptions::new().with_max_failed_rounds(0);
    assert_eq!(ends(&none, &[ok, mixed]), Some(2));
    let off = FunctionInvokingOptions::new().with_max_failed_rounds(None);
    assert_eq!(ends(&off, &[mixed; 40]), None);
}

#[test]
fn f1_failures_of_a_tool_are_counted_apart_by_class() {
    let base = FunctionInvokingOptions::new().with_max_failed_rounds(None);
    let invalid = base.clone().with_max_invalid_calls_per_tool(2);
    let f_invalid: &[_] = &[("f", INVALID)];
    let f_failed: &[_] = &[("f", FAILED)];
    let f_ok: &[_] = &[("f", OK)];
    let g_invalid: &[_] = &[("g", INVALID)];
    assert_eq!(ends(&invalid, &[f_invalid; 3]), Some(3));
    assert_eq!(
        ends(&invalid, &[f_invalid, f_failed, f_invalid, f_invalid]),
        Some(4)
    );
    assert_eq!(
        ends(&invalid, &[f_invalid, f_ok, f_invalid, f_invalid]),
        None
    );
    assert_eq!(
        ends(&invalid, &[f_invalid, g_invalid, f_invalid, g_invalid]),
        None
    );
    let unknown = base.clone().with_max_unknown_calls_per_tool(1);
    assert_eq!(
        ends(&unknown, &[&[("x", UNKNOWN)], &[("x", UNKNOWN)]]),
        Some(2)
    );
    let failed = base.with_max_failed_calls_per_tool(0);
    assert_eq!(ends(&failed, &[f_invalid, f_failed]), Some(2));
}

#[test]
fn f1_calls_over_a_limit_do_not_fit() {
    let options = FunctionInvokingOptions::new()
        .with_max_calls(3)
        .with_max_calls_per_tool(2);
    let mut counters = Counters::default();
    let admitted: Vec<_> = ["f", "f", "f", "g", "g"]
        .into_iter()
        .map(|tool| counters.admit(tool, &options))
        .collect();
    assert_eq!(admitted, [Fits, Fits, ToolUsedUp, Fits, RunUsedUp]);

    let options = FunctionInvokingOptions::new().with_max_calls_per_turn(1);
    let mut counters = Counters::default();
    assert_eq!(counters.admit("f", &options), Fits);
    assert_eq!(counters.admit("f", &options), RunUsedUp);
    counters.begin_turn();
    assert_eq!(counters.admit("f", &options), Fits);
}
