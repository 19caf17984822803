//! How random cases are drawn.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use raf_core::ToolChoice;

use super::{Act, End, Limits, RandomCase, Say, StopAt, Turn};

/// Names that calls use. `ghost` is unknown, `declared` has no body, the others are registered or
/// hidden.
const NAMES: [&str; 9] = [
    "plain", "plain", "strict", "alone", "narrow", "polling", "hidden", "ghost", "declared",
];

/// Any case.
pub fn cases() -> impl Strategy<Value = RandomCase> {
    (
        vec(turn(), 1..3),
        vec(say(), 0..7),
        vec(act(), 1..6),
        limits(),
    )
        .prop_map(|(turns, replies, acts, limits)| RandomCase {
            turns,
            replies,
            acts,
            limits,
        })
}

fn turn() -> impl Strategy<Value = Turn> {
    let stop = prop_oneof![
        1 => Just(StopAt::Before),
        6 => (0_usize..40).prop_map(StopAt::Item),
        2 => (0_usize..40).prop_map(StopAt::Flag),
        4 => (0_u64..120).prop_map(StopAt::Time),
    ];
    let choice = prop_oneof![
        3 => Just(ToolChoice::Auto),
        1 => Just(ToolChoice::None),
        3 => Just(ToolChoice::Required),
        3 => Just(ToolChoice::Named("plain".to_owned())),
    ];
    let deadline = prop_oneof![4 => Just(100_000), 1 => 0_u64..200];
    (
        option::weighted(0.5, stop),
        option::weighted(0.3, choice),
        deadline.prop_map(Duration::from_millis),
        option::weighted(0.3, Just(20_u32)),
    )
        .prop_map(|(stop, choice, deadline, max_output_tokens)| Turn {
            stop,
            choice,
            deadline,
            max_output_tokens,
        })
}

fn say() -> impl Strategy<Value = Say> {
    let text = prop::sample::select(vec!["Let me ", "look.", "", "é\n"]);
    let id = prop::sample::select(vec!["c1", "c1", "c2", "c3", "", "call_1_0"]);
    let arguments = prop_oneof![
        6 => prop::sample::select(vec!["{}", r#"{"id": 1}"#, r#"{"id": 7, "x": "y"}"#]),
        2 => prop::sample::select(vec!["", "  ", "null"]),
        2 => prop::sample::select(vec![r#"{"id": "no"}"#, "[1]", r#"{"id": "#, "\"x\"", "nope"]),
    ];
    let name = prop::sample::select(NAMES.to_vec());
    let call = (id, name, arguments, prop::bool::weighted(0.05))
        .prop_map(|(id, name, arguments, incomplete)| (id, name, arguments, !incomplete));
    let end = prop_oneof![
        12 => Just(End::Well),
        1 => Just(End::Length),
        1 => Just(End::Filter),
        1 => Just(End::Cut),
        1 => Just(End::OpenCallThenCut),
        1 => Just(End::Error),
        1 => Just(End::ErrorAtStart),
        1 => Just(End::Hang),
    ];
    (
        vec(text, 0..3),
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop_oneof![1 => vec(call.clone(), 0..1), 6 => vec(call, 1..5)],
        any::<bool>(),
        option::weighted(0.7, (0_u64..50, 0_u64..50)),
        end,
    )
        .prop_map(
            |(text, reasoning, reset, calls, interleaved, usage, end)| Say {
                text,
                reasoning,
                reset,
                calls,
                interleaved,
                usage,
                end,
            },
        )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => prop::sample::select(vec!["one", "two"]).prop_map(Act::Text),
        1 => Just(Act::Empty),
        1 => Just(Act::Void),
        1 => Just(Act::Json),
        1 => Just(Act::Long),
        1 => Just(Act::Pieces),
        2 => Just(Act::Progress),
        1 => Just(Act::Invalid),
        2 => Just(Act::Failed),
        1 => Just(Act::TellModel),
        1 => Just(Act::Denied),
        1 => Just(Act::Timeout),
        1 => Just(Act::Fatal),
        1 => Just(Act::GivesUp),
        1 => Just(Act::Panics),
        4 => (0_u64..100).prop_map(Act::Slow),
        1 => (0_u64..100).prop_map(Act::SlowFailure),
        1 => Just(Act::Hangs),
        1 => Just(Act::UntilCancelled),
        1 => Just(Act::IgnoresCancel),
        2 => (0_u64..4_000).prop_map(Act::SlowToStop),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let counts = (
        1_u32..7,
        prop_oneof![Just(0_u32), Just(2), Just(3)],
        option::of(0_u32..4),
        option::weighted(0.2, 0_u32..3),
        option::weighted(0.2, 0_u32..5),
        option::weighted(0.2, 0_u32..3),
        option::weighted(0.2, 0_u64..150),
    );
    let loop_flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let execution = (
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
        prop_oneof![Just(1_usize), Just(2), Just(16)],
        prop_oneof![Just(24_usize), Just(64 * 1024)],
    );
    (counts, loop_flags, execution).prop_map(
        |(
            (rounds, no_progress, failed_rounds, per_tool, calls, per_tool_calls, wall_time),
            (wrap_up, nudge_empty, keep_forcing),
            (sequential, fail_fast, stop_on_unknown, detailed_errors, concurrency, bytes),
        )| Limits {
            max_rounds: rounds,
            wrap_up,
            nudge_empty,
            keep_forcing,
            no_progress_rounds: no_progress,
            max_failed_rounds: failed_rounds,
            per_tool,
            max_calls: calls,
            max_calls_per_tool: per_tool_calls,
            wall_time,
            sequential,
            fail_fast,
            stop_on_unknown,
            detailed_errors,
            max_concurrency: concurrency,
            max_result_bytes: bytes,
        },
    )
}
