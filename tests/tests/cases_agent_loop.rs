//! What of the cases C10 and C17 no scenario file can say: long texts and random orders.

use std::collections::BTreeSet;
use std::time::Duration;

use raf_core::{ToolErrorClass, ToolOutcome};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::{Case, Form, in_both_forms};
use raf_tools::ExecutionOptions;
use serde_json::json;

const INVALID: ToolOutcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);

fn write_tool() -> ScriptedTool {
    ScriptedTool::new("write")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        }))
        .always(Behaviour::text("written"))
}

#[tokio::test(start_paused = true)]
async fn c10_the_error_text_is_bounded() {
    in_both_forms(async |case| {
        let write = case.tool(write_tool());
        let long = format!(r#"{{"path": "{}"#, "ä".repeat(50_000));
        let wrong = format!(r#"{{"path": 1, "body": {{"{}": 2}}}}"#, "k".repeat(50_000));
        case.replies([
            Reply::calls([("c1", "write", &*long), ("c2", "write", &*wrong)]),
            Reply::text("done"),
        ]);
        let leg = case.say("write it").await;
        for id in ["c1", "c2"] {
            assert_eq!(leg.outcome(id), INVALID);
            let text = leg.result(id).text();
            assert!(text.len() <= 2048, "{} bytes", text.len());
            assert!(text.contains("'write'"), "{text}");
        }
        assert_eq!(write.entries(), 0);
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
