//! Public bug reports as scripts: cancelling, malformed and empty calls (C01 to C11).

use std::time::Duration;

use raf_core::{
    Cancellation, ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, ToolErrorClass,
    ToolOutcome,
};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::in_both_forms;
use raf_tests::leg::assert_lines;
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
async fn c01_cancel_while_a_tool_runs_then_talk_again() {
    in_both_forms(async |case| {
        let slow = case.tool(ScriptedTool::new("slow").always(Behaviour::until_cancelled()));
        case.replies([
            Reply::text("Working on it.").call("c1", "slow", "{}"),
            Reply::text("4"),
        ]);
        let cancellation = Cancellation::new();
        let options = ChatClientRunOptions::new().with_cancellation(cancellation.clone());
        let (first, ()) = tokio::join!(case.say_with("start it", options), async {
            slow.wait_for_entries(1).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancellation.cancel();
        });
        assert_eq!(slow.running(), 0);
        assert_eq!(first.error_kind(), ErrorKind::Cancelled);
        first.assert_order(&[
            "call_ready c1",
            "tool_start c1",
            "tool_end c1 cancelled",
            "run_end error cancelled",
        ]);
        assert_eq!(first.count("run_end"), 1);
        assert_eq!(first.text(), "Working on it.");
        assert_eq!(
            first.outcome("c1"),
            ToolOutcome::Cancelled { started: true }
        );

        let second = case.say("never mind, what is 2+2?").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_eq!((second.count("run_end"), &*second.text()), (1, "4"));
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:start it",
                "A:Working on it. [c1]",
                "R(c1, cancelled: '*",
                "U:never mind, what is 2+2?",
            ],
        );
        assert_eq!((slow.entries(), case.request_count()), (1, 2));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c02_interrupted_assistant_message_and_its_results() {
    in_both_forms(async |case| {
        let a = case.tool(ScriptedTool::returning("a", "A"));
        let b = case.tool(ScriptedTool::new("b").always(Behaviour::hang()));
        case.replies([
            Reply::calls([("c1", "a", "{}"), ("c2", "b", "{}")]),
            Reply::text("ok"),
        ]);
        let cancellation = Cancellation::new();
        let options = ChatClientRunOptions::new().with_cancellation(cancellation.clone());
        case.on_item(move |_, item| {
            if matches!(item, Ok(raf_core::AgentResponseUpdate::ToolCalled { result, .. })
                if result.call_id() == "c1")
            {
                cancellation.cancel();
            }
        });
        let first = case.say_with("do both", options).await;
        assert_eq!(first.error_kind(), ErrorKind::Cancelled);
        first.assert_order(&["tool_end c1 ok", "tool_end c2 cancelled", "run_end"]);
        assert_eq!(first.abandoned(), ["c2"]);

        let second = case.say("continue").await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:do both",
                "A:[c1,c2]",
                "R(c1, ok: 'A')",
                "R(c2, cancelled: '*",
                "U:continue",
            ],
        );
        assert_eq!((a.entries(), b.entries(), b.running()), (1, 1, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c10_malformed_arguments() {
    in_both_forms(async |case| {
        let write = case.tool(write_tool());
        let cut = r#"{"path": "a", "body": "#;
        case.replies([
            Reply::calls([("c1", "write", cut)]),
            Reply::calls([("c2", "write", r#"["a","x"]"#)]),
            Reply::calls([("c3", "write", r#"{"path":"a","body":"x"}"#)]),
            Reply::text("done"),
        ]);
        let leg = case.say("write it").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        let begins = ["U:write it", "A:[c1]", "R(c1, error invalid_arguments: '*"];
        assert_lines(&case.request(2).lines(), &begins);
        let begins = [
            &begins[..],
            &["A:[c2]", "R(c2, error invalid_arguments: '*"],
        ]
        .concat();
        assert_lines(&case.request(3).lines(), &begins);
        let begins = [&begins[..], &["A:[c3]", "R(c3, ok: 'written')"]].concat();
        assert_lines(&case.request(4).lines(), &begins);

        let not_json = leg.result("c1").text();
        assert!(not_json.contains("'write'"), "{not_json}");
        assert!(not_json.contains("valid JSON"), "{not_json}");
        let not_an_object = leg.result("c2").text();
        assert!(not_an_object.contains("JSON object"), "{not_an_object}");
        for text in [&not_json, &not_an_object] {
            assert!(text.len() <= 2048, "{} bytes", text.len());
        }
        leg.assert_order(&["tool_start c3", "tool_end c3 ok"]);
        assert_eq!(leg.count("tool_start"), 1);
        let entered: Vec<_> = write
            .calls()
            .into_iter()
            .map(|call| call.arguments)
            .collect();
        assert_eq!(
            entered,
            [json!({"path": "a", "body": "x"})
                .as_object()
                .unwrap()
                .clone()]
        );

        // People see what the model wrote; providers get an object.
        let kept = leg.messages()[0].tool_calls().next().unwrap().clone();
        assert_eq!(kept.arguments(), cut);
        for n in 1..=4 {
            for call in case
                .request(n)
                .messages
                .iter()
                .flat_map(ChatMessage::tool_calls)
            {
                let sent: serde_json::Value = serde_json::from_str(call.arguments()).unwrap();
                assert!(sent.is_object(), "{sent}");
            }
        }
    })
    .await;
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

#[tokio::test(start_paused = true)]
async fn c10_a_model_that_never_repairs_is_stopped_by_the_limit_of_the_tool() {
    in_both_forms(async |case| {
        let write = case.tool(write_tool());
        case.options(FunctionInvokingOptions::new().with_max_invalid_calls_per_tool(2));
        case.replies(["c1", "c2", "c3"].map(|id| Reply::calls([(id, "write", "{\"path")])));
        let leg = case.say("write it").await;
        assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
        assert_eq!((case.request_count(), write.entries()), (3, 0));
        assert_lines(
            &leg.lines(),
            &[
                "A:[c1]",
                "R(c1, error invalid_arguments: '*",
                "A:[c2]",
                "R(c2, error invalid_arguments: '*",
                "A:[c3]",
                "R(c3, error invalid_arguments: '*",
            ],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c11_no_argument_tool_that_returns_nothing() {
    in_both_forms(async |case| {
        let flush = case.tool(
            ScriptedTool::new("flush")
                .with_parameters(&json!({"type": "object", "properties": {}}))
                .always(Behaviour::void()),
        );
        let need = case.tool(
            ScriptedTool::new("need")
                .with_parameters(&json!({
                    "type": "object",
                    "properties": {"id": {"type": "string"}},
                    "required": ["id"],
                }))
                .always(Behaviour::text("x")),
        );
        case.replies([
            Reply::calls([
                ("c1", "flush", ""),
                ("c2", "flush", "  "),
                ("c3", "need", ""),
            ]),
            Reply::text("flushed"),
        ]);
        let leg = case.say("flush").await;
        assert_eq!(
            (leg.reason(), &*leg.text()),
            (&FinishReason::Stop, "flushed")
        );
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:flush",
                "A:[c1,c2,c3]",
                "R(c1, ok: '*",
                "R(c2, ok: '*",
                "R(c3, error invalid_arguments: '*",
            ],
        );
        for id in ["c1", "c2"] {
            assert!(!leg.result(id).text().trim().is_empty());
        }
        let missing = leg.result("c3").text();
        assert!(
            missing.contains("id") && missing.contains("required"),
            "{missing}"
        );
        assert_eq!((flush.entries(), need.entries()), (2, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn c11_empty_values_stay_distinguishable() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::new("void").always(Behaviour::void()));
        case.tool(ScriptedTool::new("null").always(Behaviour::json(json!(null))));
        case.tool(ScriptedTool::new("text").always(Behaviour::text("")));
        case.tool(ScriptedTool::new("list").always(Behaviour::json(json!([]))));
        let names = ["void", "null", "text", "list"];
        case.replies([
            Reply::calls(names.map(|name| (name, name, ""))),
            Reply::text("done"),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        let texts = names.map(|name| leg.result(name).text());
        for (index, text) in texts.iter().enumerate() {
            assert!(!text.trim().is_empty());
            assert!(!texts[..index].contains(text), "{texts:?}");
            assert_eq!(leg.outcome(names[index]), ToolOutcome::Ok);
        }
    })
    .await;
}
