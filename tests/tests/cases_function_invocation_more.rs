//! Conformance with Microsoft.Extensions.AI's loop, and beyond: unknown and declared tools, streaming,
//! and what peers do not do (fi09 to fi25, fx01 to fx05).

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Error, ErrorKind, FinishReason,
    IChatClient, SkipReason, TerminationCause, ToolChoice, ToolDeclaration, ToolErrorClass,
    ToolOutcome, Usage, WaitsFor,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::{Behaviour, Latch, Reply, ScriptedChatClient, ScriptedTool};
use raf_tests::in_both_forms;
use raf_tests::leg::assert_lines;
use raf_tools::{ExecutionOptions, ToolOptionsExt, ToolRegistry, UnknownToolPolicy};
use serde_json::json;

const UNKNOWN: ToolOutcome = ToolOutcome::Error(ToolErrorClass::UnknownTool);
const INVALID: ToolOutcome = ToolOutcome::Error(ToolErrorClass::InvalidArguments);

fn registry(tool: ScriptedTool) -> ToolRegistry {
    ToolRegistry::builder()
        .with_tool(tool)
        .build()
        .expect("one tool")
}

fn unknown_and_known() -> Reply {
    Reply::calls([("1", "nope", "{}"), ("2", "f", "{}")])
}

#[tokio::test(start_paused = true)]
async fn fi09_unknown_tool_continue() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::returning("f", "r1"));
        case.replies([unknown_and_known(), Reply::text("done")]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_lines(
            &case.request(2).lines(),
            &[
                "U:go",
                "A:[1,2]",
                "R(1, error unknown_tool: '*",
                "R(2, ok: 'r1')",
            ],
        );
        assert_eq!(f.entries(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi10_unknown_tool_stop() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::returning("f", "r1"));
        let execution = ExecutionOptions::new().with_unknown_tools(UnknownToolPolicy::Stop);
        case.options(FunctionInvokingOptions::new().with_execution(execution));
        case.replies([unknown_and_known()]);
        let leg = case.say("go").await;
        let cause = TerminationCause::UnknownTool;
        assert_eq!(leg.reason(), &FinishReason::Terminated(cause));
        assert_eq!((case.request_count(), f.entries()), (1, 0));
        // The calls are the last that the model said; every one is settled.
        assert_lines(
            &leg.lines(),
            &[
                "A:[1,2]",
                "R(1, error unknown_tool: '*",
                "R(2, skipped terminated: '*",
            ],
        );
        assert_eq!(leg.outcome("1"), UNKNOWN);
        let skipped = ToolOutcome::skipped(SkipReason::Terminated);
        assert_eq!(leg.outcome("2"), skipped);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi11_declaration_only() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::returning("f", "r1"));
        case.replies([Reply::calls([("1", "f", "{}"), ("2", "d", "{}")])]);
        let declared = ToolDeclaration::new("d", "The caller gives its result.");
        let options = ChatClientRunOptions::new().with_tools([declared]);
        let leg = case.say_with("go", options).await;
        assert_eq!(leg.reason(), &FinishReason::AwaitingToolResults);
        assert_eq!(case.request(1).tool_names(), ["f", "d"]);
        assert_eq!((case.request_count(), f.entries()), (1, 1));
        assert_lines(&leg.lines(), &["A:[1,2]", "R(1, ok: 'r1')"]);
        let pending = leg.pending();
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0].call.id(), "2");
        assert_eq!(pending[0].waits_for, WaitsFor::ToolResult);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi12_additional_tools() {
    in_both_forms(async |case| {
        let hidden = ScriptedTool::returning("hidden", "from behind");
        let log = case.watch_tool(&hidden);
        case.tool(ScriptedTool::returning("f", "r1"));
        case.options(FunctionInvokingOptions::new().with_additional_tools(registry(hidden)));
        case.replies([Reply::calls([("1", "hidden", "{}")]), Reply::text("done")]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        for n in [1, 2] {
            assert_eq!(case.request(n).tool_names(), ["f"]);
        }
        assert_lines(&leg.lines()[1..2], &["R(1, ok: 'from behind')"]);
        assert_eq!(log.entries(), 1);
    })
    .await;
}

/// Registered tools and those given with the run both win over an additional one of the same name.
#[tokio::test(start_paused = true)]
async fn fi12_additional_tools_are_shadowed_by_those_of_the_request() {
    for registered in [true, false] {
        in_both_forms(async |case| {
            let behind = ScriptedTool::returning("f", "from behind");
            let front = ScriptedTool::returning("f", "from the front");
            let behind_log = case.watch_tool(&behind);
            let options = FunctionInvokingOptions::new();
            case.options(options.with_additional_tools(registry(behind)));
            let mut options = ChatClientRunOptions::new();
            let front_log = if registered {
                case.tool(front)
            } else {
                let log = case.watch_tool(&front);
                options = options.with_provider_tools(registry(front));
                log
            };
            case.replies([Reply::calls([("1", "f", "{}")]), Reply::text("done")]);
            let leg = case.say_with("go", options).await;
            assert_eq!(leg.reason(), &FinishReason::Stop);
            assert_eq!(case.request(1).tool_names(), ["f"]);
            assert_lines(&leg.lines()[1..2], &["R(1, ok: 'from the front')"]);
            assert_eq!((front_log.entries(), behind_log.entries()), (1, 0));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn fi14_required_tool_choice() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("f", "r1"));
        case.replies([
            Reply::calls([("1", "f", r#"{"n":1}"#)]),
            Reply::calls([("2", "f", r#"{"n":2}"#)]),
            Reply::text("done"),
        ]);
        let options = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Required);
        let leg = case.say_with("go", options).await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        let choices = [1, 2, 3].map(|n| case.request(n).options.tool_choice.clone());
        assert_eq!(choices, [Some(ToolChoice::Required), None, None]);
    })
    .await;
}

/// The reply stops at each gate until what came before it was delivered: nothing is held back.
#[tokio::test(start_paused = true)]
async fn fi25_streaming_shape() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("f", "r1"));
        case.tool(ScriptedTool::returning("g", "r2"));
        let gates = [Latch::new(), Latch::new(), Latch::new()];
        let [first, second, third] = &gates;
        let reply = Reply::text("text1")
            .gate(first)
            .then_text("text2")
            .gate(second);
        let reply = reply.call_in_pieces("1", "f", ["{", "}"]);
        let reply = reply.then_text("text3").gate(third).call("2", "g", "{}");
        case.replies([reply, Reply::text("done")]);
        let opens = [("text1", first), ("text2", second), ("text3", third)]
            .map(|(text, gate)| (text, gate.clone()));
        case.on_item(move |_, item| {
            if let Ok(AgentResponseUpdate::TextDelta { text }) = item {
                for (_, gate) in opens.iter().filter(|(of, _)| of == text) {
                    gate.open();
                }
            }
        });
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert!(gates.iter().all(Latch::is_open));
        leg.assert_order(&[
            "text 'text1'",
            "text 'text2'",
            "call_start 1",
            "call_ready 1",
            "text 'text3'",
            "call_start 2",
            "call_ready 2",
            "tool_start 1",
            "tool_start 2",
            "text 'done'",
            "run_end stop",
        ]);
        for id in ["1", "2"] {
            let started = format!("tool_start {id}");
            leg.assert_order(&[
                "call_ready 2",
                &started,
                &format!("tool_end {id} ok"),
                "run_end",
            ]);
        }
        assert_lines(
            &leg.lines(),
            &[
                "A:text1text2text3 [1,2]",
                "R(1, ok: 'r1')",
                "R(2, ok: 'r2')",
                "A:done",
            ],
        );
        // Parts stay in order: text, call, text, call.
        let kinds: Vec<bool> = leg.messages()[0]
            .contents()
            .iter()
            .map(|content| content.as_tool_call().is_some())
            .collect();
        assert_eq!(kinds, [false, true, false, true]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi25_a_consumer_that_leaves_before_the_turn_has_ended_runs_nothing() {
    let f = ScriptedTool::returning("f", "r1");
    let log = f.log().clone();
    let model = ScriptedChatClient::new([Reply::text("text1").call("1", "f", "{}")]);
    let client = FunctionInvokingChatClient::new(Arc::new(model.clone()), registry(f));
    let messages = [ChatMessage::user("go")];
    let mut stream = client
        .run(&messages, ChatClientRunOptions::new())
        .await
        .unwrap();
    loop {
        let update = stream.next().await.unwrap().unwrap();
        if matches!(update, AgentResponseUpdate::ToolCallEnd { .. }) {
            break;
        }
    }
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert_eq!((log.entries(), model.request_count()), (0, 1));
    assert_eq!(model.probe().live(), 0);
}

#[tokio::test(start_paused = true)]
async fn fx01_model_error_in_a_later_round() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::returning("f", "r1"));
        case.replies([
            Reply::calls([("1", "f", r#"{"n":1}"#)]).usage(10, 1),
            Reply::calls([("2", "f", r#"{"n":2}"#)]).usage(20, 2),
            Reply::new().error(Error::new(ErrorKind::Server, "down")),
            Reply::text("done").usage(40, 4),
        ]);
        let first = case.say("go").await;
        assert_eq!(first.error_kind(), ErrorKind::Server);
        let done = ["A:[1]", "R(1, ok: 'r1')", "A:[2]", "R(2, ok: 'r1')"];
        assert_lines(&first.lines(), &done);
        assert_eq!(first.usage(), Usage::new(30, 3));
        assert_eq!(first.rounds().len(), 3);
        assert!(first.pending().is_empty());

        // What the error holds is enough to go on from.
        let second = case.go_on(ChatClientRunOptions::new()).await;
        assert_eq!(second.reason(), &FinishReason::Stop);
        assert_lines(&case.request(4).lines(), &[&["U:go"][..], &done].concat());
        assert_eq!(f.entries(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fx02_malformed_arguments_of_a_tool_whose_parameters_are_all_optional() {
    in_both_forms(async |case| {
        let f = case.tool(ScriptedTool::returning("f", "r1").with_parameters(&json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        })));
        case.replies([
            Reply::calls([("1", "f", r#"{"a": "#), ("2", "f", "a=1")]),
            Reply::text("done"),
        ]);
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::Stop);
        assert_eq!((leg.outcome("1"), leg.outcome("2")), (INVALID, INVALID));
        assert_eq!(f.entries(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fx03_many_rounds_of_an_unknown_tool_are_stopped_by_their_own_limit() {
    in_both_forms(async |case| {
        case.tool(ScriptedTool::returning("f", "r1"));
        let options = FunctionInvokingOptions::new().with_max_rounds(40);
        case.options(
            options
                .with_max_failed_rounds(None)
                .with_max_unknown_calls_per_tool(5),
        );
        let _ = case
            .model()
            .clone()
            .with_fallback(Reply::from_fn(|request| {
                Reply::calls([(&*format!("c{}", request.index), "nope", "{}")])
            }));
        let leg = case.say("go").await;
        assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
        assert_eq!(case.request_count(), 6);
        assert_eq!(leg.count("tool_end"), 6);
    })
    .await;
}

/// A failure limit ends the run whatever the model then says.
#[tokio::test(start_paused = true)]
async fn fx05_error_limit_with_a_model_that_ignores_choice_none() {
    for wrap_up in [false, true] {
        in_both_forms(async |case| {
            let entered = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&entered);
            let f = case.tool(ScriptedTool::new("f").always(Behaviour::custom(
                move |context, _| {
                    seen.lock().unwrap().push(context.occurrence().round);
                    async { Err(raf_tools::ToolError::execution_failed("no")) }
                },
            )));
            let options = FunctionInvokingOptions::new().with_max_failed_rounds(1);
            case.options(options.with_wrap_up(wrap_up));
            let _ = case
                .model()
                .clone()
                .with_fallback(Reply::from_fn(|request| {
                    let id = format!("c{}", request.index);
                    Reply::calls([(&*id, "f", "{}")])
                }));
            let leg = case.say("go").await;
            assert_eq!(leg.reason(), &FinishReason::ToolRetryLimit);
            assert_eq!(f.entries(), 2);
            assert_eq!(*entered.lock().unwrap(), [0, 1]);
            if wrap_up {
                assert_eq!(case.request_count(), 3);
                let last = case.request(3);
                assert_eq!(last.options.tool_choice, Some(ToolChoice::None));
                assert_eq!(leg.outcome("c2"), ToolOutcome::skipped(SkipReason::Limit));
            } else {
                assert_eq!(case.request_count(), 2);
            }
        })
        .await;
    }
}
