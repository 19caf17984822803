//! Conformance with Microsoft.Extensions.AI's loop, and beyond: batches, errors, limits (fi01 to fi08).

use std::sync::Arc;
use std::time::Duration;

use raf_core::{
    ChatClientRunOptions, ChatMessage, FinishReason, SkipReason, ToolChoice, ToolOutcome, Usage,
};
use raf_core::{ToolErrorClass, ToolResult};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::{Case, in_both_forms};
use raf_tools::{ExecutionMode, ExecutionOptions, ToolOutput};
use serde_json::json;
use tokio::sync::Barrier;

const FAILED: ToolOutcome = ToolOutcome::Error(ToolErrorClass::Failed);

fn executing(execution: ExecutionOptions) -> FunctionInvokingOptions {
    FunctionInvokingOptions::new().with_execution(execution)
}

fn sequential() -> ExecutionOptions {
    ExecutionOptions::new().with_mode(ExecutionMode::Sequential)
}

fn f() -> ScriptedTool {
    ScriptedTool::returning("f", "r1")
}

/// Returns `r2:` and its argument.
fn g() -> ScriptedTool {
    ScriptedTool::new("g")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"i": {"type": "integer"}},
            "required": ["i"],
        }))
        .always(Behaviour::custom(|_, arguments| async move {
            Ok(ToolOutput::text(format!("r2:{}", arguments["i"])))
        }))
}

#[tokio::test(start_paused = true)]
async fn fi01_two_sequential_calls() {
    in_both_forms(async |case| {
        let (f, g) = (case.tool(f()), case.tool(g()));
        let usage = |input, output, own| Usage::new(input, output).with_extra("own", own);
        case.replies([
            Reply::calls([("1", "f", "{}")]).usage_report(usage(1, 2, 3)),
            Reply::calls([("2", "g", r#"{"i":42}"#)]).usage_report(usage(10, 20, 30)),
            Reply::text("done").usage_report(usage(100, 200, 300)),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_lines(&case.request(1).lines(), &["U:go"]);
        assert_lines(
            &case.request(2).lines(),
            &["U:go", "A:[1]", "R(1, ok: 'r1')"],
        );
        let out = [
            "A:[1]",
            "R(1, ok: 'r1')",
            "A:[2]",
            "R(2, ok: 'r2:42')",
            "A:done",
        ];
        assert_lines(&case.request(3).lines()[1..], &out[..4]);
        assert_lines(&leg.lines(), &out);
        assert_eq!(leg.usage(), usage(111, 222, 333));
        assert_eq!((f.entries(), g.entries()), (1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi02_batch_in_one_turn() {
    for execution in [ExecutionOptions::new(), sequential()] {
        in_both_forms(async |case| {
            let (f, g) = (case.tool(f()), case.tool(g()));
            case.options(executing(execution.clone()));
            case.replies([
                Reply::calls([
                    ("1", "f", "{}"),
                    ("2", "g", r#"{"i":34}"#),
                    ("3", "g", r#"{"i":56}"#),
                ]),
                Reply::text("done"),
            ]);
            let leg = case.say("go").await;
            assert_eq!(leg.reason(), &FinishReason::Stop);
            // One tool message per result: compared flattened.
            let results = ["R(1, ok: 'r1')", "R(2, ok: 'r2:34')", "R(3, ok: 'r2:56')"];
            assert_lines(&case.request(2).lines()[2..], &results);
            assert_lines(&case.request(2).lines()[..2], &["U:go", "A:[1,2,3]"]);
            assert_eq!((f.entries(), g.entries()), (1, 2));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn fi03_concurrency_switch() {
    let calls = || Reply::calls([("1", "f", "{}"), ("2", "f", "{}")]);
    // Two bodies that wait for one another.
    in_both_forms(async |case| {
        let barrier = Arc::new(Barrier::new(2));
        let waiting = Behaviour::text("met").after_barrier(&barrier);
        let f = case.tool(ScriptedTool::new("f").always(waiting));
        case.replies([calls(), Reply::text("done")]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_lines(&leg.lines()[1..3], &["R(1, ok: 'met')", "R(2, ok: 'met')"]);
        assert_eq!((f.entries(), f.max_concurrent()), (2, 2));
    })
    .await;
    in_both_forms(async |case| {
        let slow = Behaviour::text("slept").after_sleep(Duration::from_millis(20));
        let f = case.tool(ScriptedTool::new("f").always(slow));
        case.options(executing(sequential()));
        case.replies([calls(), Reply::text("done")]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_eq!((f.entries(), f.max_concurrent()), (2, 1));
        leg.assert_order(&["tool_start 1", "tool_end 1", "tool_start 2", "tool_end 2"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi04_void_result() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::new("f").always(Behaviour::void()));
        case.replies([Reply::calls([("1", "f", "{}")]), Reply::text("done")]);
        let leg = case.say("go").await;
        assert_eq!(leg.outcome("1"), ToolOutcome::Ok);
        assert_lines(&leg.lines(), &["A:[1]", "R(1, ok: 'Done.*", "A:done"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi05_tool_fails_hidden_then_detailed() {
    for detailed in [false, true] {
        in_both_forms(async |case| {
            let failing = Behaviour::execution_failed("Oh no");
            let f = case.tool(ScriptedTool::new("f").always(failing));
            let execution = ExecutionOptions::new().with_detailed_errors(detailed);
            case.options(executing(execution));
            case.replies([Reply::calls([("1", "f", "{}")]), Reply::text("sorry")]);
            let leg = case.say("go").await;
            assert_eq!((leg.reason(), &*leg.text()), (&FinishReason::Stop, "sorry"));
            let request = case.request(2);
            let sent = request.messages[2].tool_results().next().unwrap();
            assert_eq!(sent.outcome(), FAILED);
            assert_eq!(sent.text().contains("Oh no"), detailed, "{}", sent.text());
            assert_lines(&leg.lines(), &["A:[1]", "R(1, error failed: '*", "A:sorry"]);
            assert_eq!(f.entries(), 1);
        })
        .await;
    }
}

/// A reply whose calls end well or fail as said.
fn turn(number: usize, calls: &[bool]) -> Reply {
    calls
        .iter()
        .enumerate()
        .fold(Reply::new(), |reply, (index, ok)| {
            let id = format!("t{number}_{index}");
            reply.call(
                &id,
                if *ok { "ok" } else { "bad" },
                &format!("{{\"n\":{number}}}"),
            )
        })
}

fn outcomes(results: &[ToolResult], turn: usize) -> Vec<ToolOutcome> {
    let begins = format!("t{turn}_");
    let of_turn = results
        .iter()
        .filter(|result| result.call_id().starts_with(&begins));
    of_turn.map(ToolResult::outcome).collect()
}

const FIVE_TURNS: [&[bool]; 5] = [
    &[false, true],
    &[true, true, true],
    &[true, false, true],
    &[false, false, false],
    &[false, false],
];

/// Plays the five turns with limit 2; the last results are compared by the caller.
async fn five_turns(case: &mut Case, execution: ExecutionOptions) -> Vec<ToolResult> {
    let good = case.tool(ScriptedTool::returning("ok", "fine"));
    case.tool(ScriptedTool::new("bad").always(Behaviour::execution_failed("no")));
    case.options(executing(execution).with_max_failed_rounds(2));
    let replies = (1..).zip(FIVE_TURNS);
    case.replies(replies.map(|(number, calls)| turn(number, calls).usage(10, 1)));
    let leg = case.say("go").await;
    // N is tolerated, N + 1 ends: the counter was 1, 0, 1, 2, and then 3.
    assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
    assert_eq!(case.request_count(), 5);
    assert_eq!(good.entries(), 6);
    assert_eq!(leg.usage(), Usage::new(50, 5));
    let results: Vec<ToolResult> = leg
        .messages()
        .iter()
        .flat_map(ChatMessage::tool_results)
        .cloned()
        .collect();
    // The whole transcript: five replies and a result for each of their calls, in call order.
    assert_eq!(leg.messages().len(), 5 + 13);
    for (number, calls) in (1..).zip(&FIVE_TURNS[..3]) {
        let expected: Vec<ToolOutcome> = calls
            .iter()
            .map(|ok| if *ok { ToolOutcome::Ok } else { FAILED })
            .collect();
        assert_eq!(outcomes(&results, number), expected);
    }
    assert_eq!(outcomes(&results, 4), [FAILED; 3]);
    results
}

#[tokio::test(start_paused = true)]
async fn fi06_consecutive_error_limit() {
    in_both_forms(async |case| {
        let results = five_turns(case, ExecutionOptions::new()).await;
        assert_eq!(outcomes(&results, 5), [FAILED, FAILED]);
    })
    .await;
    // In a row the sibling of the failure that ends the run is not run.
    in_both_forms(async |case| {
        let results = five_turns(case, sequential()).await;
        let skipped = ToolOutcome::skipped(SkipReason::Limit);
        assert_eq!(outcomes(&results, 5), [FAILED, skipped]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi07_error_limit_zero() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::new("f").always(Behaviour::tell_model("itself")));
        case.options(FunctionInvokingOptions::new().with_max_failed_rounds(0));
        case.replies([Reply::calls([("1", "f", "{}")])]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
        assert_lines(&leg.lines(), &["A:[1]", "R(1, error failed: 'itself')"]);
        assert_eq!((case.request_count(), f.entries()), (1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi08_iteration_limit() {
    in_both_forms(async |case| {
        let f = case.tool(f());
        let options = FunctionInvokingOptions::new().with_max_rounds(3);
        case.options(options.with_wrap_up(true));
        let _ = case
            .model()
            .clone()
            .with_fallback(Reply::from_fn(|request| {
                Reply::calls([(&*format!("c{}", request.index), "f", "{}")])
            }));
        // That the caller's options are unchanged is checked of every leg.
        let options = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Auto);
        let leg = case.say_with("go", options).await;
        assert_eq!(leg.reason(), &FinishReason::MaxRounds);
        assert_eq!((case.request_count(), f.entries()), (3, 2));
        for n in [1, 2] {
            assert_eq!(case.request(n).options.tool_choice, Some(ToolChoice::Auto));
        }
        let last = case.request(3);
        assert_eq!(last.options.tool_choice, Some(ToolChoice::None));
        assert_eq!(last.tool_names(), ["f"]);
        assert_lines(
            &leg.lines(),
            &[
                "A:[c0]",
                "R(c0, ok: 'r1')",
                "A:[c1]",
                "R(c1, ok: 'r1*",
                "A:[c2]",
                "R(c2, skipped limit: '*",
            ],
        );
    })
    .await;
}
