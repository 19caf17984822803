//! Public bug reports as scripts: unknown, failing and parallel tools (C12, C13, C17).

use std::collections::BTreeSet;
use std::time::Duration;

use raf_core::{FinishReason, ToolErrorClass, ToolOutcome, normalise};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::{Case, Form, Leg, in_both_forms};
use raf_tools::{ExecutionOptions, ToolRegistry};

const UNKNOWN: ToolOutcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
const FAILED: ToolOutcome = ToolOutcome::Error(ToolErrorClass::Failed);

/// Whether a text stands in any request of the case or in anything that the consumer of a leg saw.
fn is_shown(case: &Case, legs: &[&Leg], text: &str) -> bool {
    let in_requests = (1..=case.request_count()).any(|n| {
        let messages = serde_json::to_string(&case.request(n).messages).expect("JSON");
        messages.contains(text)
    });
    let items = legs.iter().flat_map(|leg| leg.items());
    let in_events = items.into_iter().any(|item| match item {
        Ok(update) => serde_json::to_string(update).expect("JSON").contains(text),
        Err(error) => format!("{error} {error:?}").contains(text),
    });
    in_requests || in_events
}

#[tokio::test(start_paused = true)]
async fn c12_unknown_tool_next_to_a_valid_one() {
    in_both_forms(async |case| {
        let search = case.tool(ScriptedTool::returning("search", "hit"));
        let admin = ScriptedTool::new("secret_admin");
        let admin_log = case.watch_tool(&admin);
        let hidden = ToolRegistry::builder().with_tool(admin).build().unwrap();
        case.options(
            FunctionInvokingOptions::new()
                .with_additional_tools(hidden)
                .with_max_unknown_calls_per_tool(2),
        );
        case.replies([
            Reply::calls([("c1", "serach", "{}"), ("c2", "search", "{}")]),
            Reply::calls([("c3", "serach", "{}"), ("c4", "search", "{}")]),
            Reply::text("found"),
        ]);
        let leg = case.say("find it").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        let second = [
            "U:find it",
            "A:[c1,c2]",
            "R(c1, error unknown_tool: '*",
            "R(c2, ok: 'hit')",
        ];
        assert_lines(&case.request(2).lines(), &second);
        let third = [
            "A:[c3,c4]",
            "R(c3, error unknown_tool: '*",
            "R(c4, ok: 'hit*",
        ];
        assert_lines(&case.request(3).lines(), &[&second[..], &third].concat());
        let text = leg.result("c1").text();
        assert!(text.contains("'serach'"), "{text}");
        assert!(text.contains("search."), "{text}");
        for forbidden in ["secret_admin", "denied", "approval", "Rejected"] {
            assert!(!text.contains(forbidden), "{text}");
            assert!(!leg.result("c3").text().contains(forbidden));
        }
        assert_eq!((search.entries(), admin_log.entries()), (2, 0));
        assert!(!is_shown(case, &[&leg], "secret_admin"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c12_a_model_that_calls_only_unknown_tools_is_stopped() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("search", "hit"));
        case.options(FunctionInvokingOptions::new().with_max_unknown_calls_per_tool(2));
        let model = case.model().clone();
        model.with_fallback(Reply::calls([("c1", "serach", "{}")]));
        let leg = case.say("find it").await;
        assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
        assert_eq!(case.request_count(), 3);
        assert_eq!(leg.count("tool_end c1 error unknown_tool"), 3);
        assert_eq!(leg.outcome("c1"), UNKNOWN);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c13_one_of_three_parallel_tools_fails() {
    in_both_forms(async |case| {
        let after = Duration::from_millis;
        let ok1 =
            case.tool(ScriptedTool::new("ok1").always(Behaviour::text("1").after_sleep(after(30))));
        let bad = case.tool(ScriptedTool::new("bad").always(
            Behaviour::execution_failed("db password=hunter2 at 10.0.0.5").after_sleep(after(10)),
        ));
        let ok2 =
            case.tool(ScriptedTool::new("ok2").always(Behaviour::text("2").after_sleep(after(60))));
        case.replies([
            Reply::calls([
                ("c1", "ok1", "{}"),
                ("c2", "bad", "{}"),
                ("c3", "ok2", "{}"),
            ]),
            Reply::text("two of three worked"),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        leg.assert_order(&[
            "tool_end c2 error failed",
            "tool_end c1 ok",
            "tool_end c3 ok",
        ]);
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:go",
                "A:[c1,c2,c3]",
                "R(c1, ok: '1')",
                "R(c2, error failed: '*",
                "R(c3, ok: '2')",
            ],
        );
        let failed = leg.result("c2");
        let id = failed.correlation_id().expect("a correlation id");
        assert!(failed.text().contains(id), "{}", failed.text());
        for secret in ["hunter2", "10.0.0.5"] {
            assert!(!is_shown(case, &[&leg], secret));
        }
        assert_eq!((ok1.entries(), bad.entries(), ok2.entries()), (1, 1, 1));
        assert_eq!((ok1.completions(), ok2.completions()), (1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c13_an_error_that_is_meant_for_the_model_is_passed_verbatim() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("ok1", "1"));
        let said = "date must be in the future";
        let bad = case.tool(ScriptedTool::new("bad").always(Behaviour::tell_model(said)));
        case.replies([
            Reply::calls([("c1", "ok1", "{}"), ("c2", "bad", "{}")]),
            Reply::text("one of two worked"),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.outcome("c2"), FAILED);
        assert_eq!(leg.result("c2").text(), said);
        let request = case.request(2);
        assert_eq!(
            request.lines()[3],
            "R(c2, error failed: 'date must be in the future')"
        );
        assert_eq!(normalise(&request.messages), request.messages);
        assert_eq!(bad.entries(), 1);
    })
    .await;
}

const WAITS: [(&str, &str, &str); 4] = [
    ("c1", "wait", r#"{"ms":80}"#),
    ("c2", "nosuch", "{}"),
    ("c3", "wait", r#"{"ms":10}"#),
    ("c4", "wait", r#"{"ms":40}"#),
];

/// Returns its `ms` after a sleep that is chosen by it.
fn wait_tool(sleep: impl Fn(u64) -> u64 + Send + Sync + 'static) -> ScriptedTool {
    ScriptedTool::new("wait").always(Behaviour::from_fn(move |_, arguments| {
        let ms = arguments["ms"].as_u64().unwrap_or_default();
        Behaviour::json(ms.into()).after_sleep(Duration::from_millis(sleep(ms)))
    }))
}

fn four_at_once() -> FunctionInvokingOptions {
    let execution = ExecutionOptions::new().with_max_concurrency(4);
    FunctionInvokingOptions::new().with_execution(execution)
}

#[tokio::test(start_paused = true)]
async fn c17_order_of_parallel_results() {
    in_both_forms(async |case| {
        let wait = case.tool(wait_tool(|ms| ms));
        case.options(four_at_once());
        case.replies([Reply::calls(WAITS), Reply::text("done"), Reply::text("no")]);
        let first = case.say("go").await;
        assert_eq!(first.reason(), &FinishReason::Stop);
        first.assert_order(&["tool_end c3 ok", "tool_end c4 ok", "tool_end c1 ok"]);
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:go",
                "A:[c1,c2,c3,c4]",
                "R(c1, ok: '80')",
                "R(c2, error unknown_tool: '*",
                "R(c3, ok: '10')",
                "R(c4, ok: '40')",
            ],
        );

        // The session goes to JSON and back.
        let stored = serde_json::to_string(case.conversation()).unwrap();
        *case.conversation() = serde_json::from_str(&stored).unwrap();
        let second = case.say("again?").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        let bytes = |n: usize| serde_json::to_string(&case.request(n).messages[..6]).unwrap();
        assert_eq!(bytes(2), bytes(3));
        assert_eq!(case.request(2).messages.len(), 6);
        assert_eq!(wait.entries(), 3);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c17_the_request_is_the_same_whatever_the_order_of_completion() {
    let mut random = 17_u64;
    let mut seen: Option<String> = None;
    let mut orders = BTreeSet::new();
    for _ in 0..100 {
        let sleeps = [80, 10, 40].map(|ms| {
            // Knuth's MMIX generator.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (ms, random >> 54)
        });
        let mut case = Case::new(Form::Stream);
        case.tool(wait_tool(move |ms| {
            sleeps
                .iter()
                .find(|(of, _)| *of == ms)
                .map_or(0, |(_, sleep)| *sleep)
        }));
        case.options(four_at_once());
        case.replies([Reply::calls(WAITS), Reply::text("done")]);
        let started = tokio::time::Instant::now();
        let leg = case.say("go").await;
        let longest = sleeps.iter().map(|(_, sleep)| *sleep).max().unwrap();
        let elapsed = started.elapsed().as_millis();
        assert!(
            elapsed <= u128::from(longest) + 5,
            "{elapsed} ms for {sleeps:?}"
        );
        let ends = leg.events().into_iter();
        orders.insert(
            ends.filter(|event| event.starts_with("tool_end"))
                .collect::<Vec<_>>(),
        );
        let request = serde_json::to_string(&case.request(2).messages).unwrap();
        assert_eq!(seen.get_or_insert_with(|| request.clone()), &request);
        case.finish();
    }
    assert!(orders.len() > 1, "the order of completion never changed");
}
