//! What a resumed leg goes on with: tools (E8), counters and limits (I5), interrupts (D2), order (D8).

use std::sync::{Arc, Mutex};

use raf_core::{
    ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, IChatClient, InMemoryRunStore,
    PausedRun, ToolApprovalResponse, ToolOutcome, Usage,
};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{Ledger, PausingCase, Reload, in_every_way};
use raf_tools::{ExecutionMode, ExecutionOptions, ToolError, ToolLimits, ToolOutput};
use serde_json::json;

use crate::support::{assert_completed, assert_paused, assert_refused};

#[tokio::test(start_paused = true)]
async fn e8_a_tool_that_is_gone_is_a_typed_error_and_the_call_stays_pending() {
    in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([Reply::calls([("c1", "f", "{}")]), Reply::text("done")]);
        case.say("go").await;
        let yes = case.yes("c1");
        case.replace_tool("f", None);
        for answers in [vec![yes.clone()], vec![]] {
            let leg = case.answer(answers).await;
            assert_eq!(leg.error_kind(), ErrorKind::Configuration);
            assert!(leg.error().message().contains("'f'"), "{}", leg.error());
            assert_eq!(Ledger::waiting(&leg), ["c1 approval"]);
            assert!(leg.requests().is_empty() && leg.messages().is_empty());
        }
        let back = ScriptedTool::returning("f", "r").gated();
        let log = case.replace_tool("f", Some(back)).unwrap();
        assert_completed(&case.answer([yes]).await);
        assert_eq!((f.entries(), log.entries()), (0, 1));
    })
    .await;
}

/// The schema is looked at again, and can only tighten to a denial.
#[tokio::test(start_paused = true)]
async fn e8_a_tool_whose_schema_changed_is_not_run_with_what_no_longer_fits() {
    in_every_way(async |case: &mut PausingCase| {
        case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([Reply::calls([("c1", "f", "{}")]), Reply::text("done")]);
        case.say("go").await;
        let schema = json!({"type": "object", "required": ["n"]});
        let stricter = ScriptedTool::returning("f", "r").with_parameters(&schema);
        let log = case.replace_tool("f", Some(stricter.gated())).unwrap();
        let done = case.answer([case.yes("c1")]).await;
        assert_completed(&done);
        assert_eq!(done.outcome("c1"), ToolOutcome::Denied);
        assert_eq!(log.entries(), 0);
        assert_eq!(case.ledger().asked.len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e8_pending_calls_survive_unrelated_turns() {
    in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([
            Reply::calls([("c1", "f", r#"{"n":1}"#)]),
            Reply::text("hello"),
            // Another conversation pauses with the same label.
            Reply::calls([("c1", "f", r#"{"n":2}"#)]),
            Reply::text("other"),
            Reply::text("done"),
        ]);
        case.say("go").await;
        let (first, paused) = (case.yes("c1"), case.paused_run().take());
        let conversation = std::mem::take(case.conversation());

        assert_completed(&case.say("hi").await);
        case.conversation().clear();
        assert_paused(&case.say("go").await, &["c1 approval"]);
        // An answer to the first in the second conversation settles nothing.
        let leg = case.answer([first.clone()]).await;
        assert_refused(&leg, "unknown_request", &["c1 approval"]);
        assert_completed(&case.answer([case.yes("c1")]).await);
        assert_eq!(f.entries(), 1);
        assert_eq!(f.calls()[0].arguments["n"], 2);

        *case.conversation() = conversation;
        *case.paused_run() = paused;
        assert_completed(&case.answer([first]).await);
        assert_eq!(f.calls()[1].arguments["n"], 1);
        assert_lines(
            &case.request_lines(5),
            &["U:go", "A:[c1]", "R(c1, ok: 'r')"],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i5_counters_come_from_the_record_and_limits_from_the_options() {
    // Rounds allowed before the pause and after it, and how the run ends.
    for (before, after, requests, end) in [
        (2, 2, 2, FinishReason::MaxRounds),
        (5, 1, 1, FinishReason::MaxRounds),
        (1, 3, 3, FinishReason::Stop),
    ] {
        in_every_way(async |case: &mut PausingCase| {
            let limits = |rounds| FunctionInvokingOptions::new().with_max_rounds(rounds);
            case.options(limits(before));
            let f = case.tool(ScriptedTool::returning("f", "r").gated());
            let g = case.tool(ScriptedTool::returning("g", "r"));
            let mut replies = vec![Reply::calls([("c1", "f", "{}")]).usage(10, 1)];
            if requests > 1 {
                replies.push(Reply::calls([("c2", "g", "{}")]).usage(20, 2));
            }
            if requests > 2 {
                replies.push(Reply::text("done").usage(30, 3));
            }
            case.replies(replies);
            assert_paused(&case.say("go").await, &["c1 approval"]);
            case.options(limits(after));
            let done = case.answer([case.yes("c1")]).await;
            assert_eq!(*done.reason(), end);
            assert_eq!((f.entries(), g.entries()), (1, usize::from(requests > 1)));
            assert_eq!(case.request_count(), requests);
            let spent = [(10, 1), (30, 3), (60, 6)][requests - 1];
            assert_eq!(done.run_usage(), Usage::new(spent.0, spent.1));
            assert_eq!(done.rounds().len(), requests);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn i5_failures_before_and_after_a_pause_count_together() {
    in_every_way(async |case: &mut PausingCase| {
        let limit = FunctionInvokingOptions::new().with_max_failed_rounds(1);
        case.options(limit);
        let fails = Behaviour::tell_model("no");
        case.tool(ScriptedTool::new("f").gated().always(fails.clone()));
        case.tool(ScriptedTool::new("g").always(fails));
        case.replies([
            Reply::calls([("c1", "g", "{}")]),
            Reply::calls([("c2", "f", "{}")]),
        ]);
        assert_paused(&case.say("go").await, &["c2 approval"]);
        let end = case.answer([case.yes("c2")]).await;
        assert_eq!(*end.reason(), FinishReason::ToolRetryLimit);
    })
    .await;
}

/// F2: a failure limit that is reached in a resumed batch grants the wrap-up request, too.
#[tokio::test(start_paused = true)]
async fn f2_a_failure_limit_in_a_resumed_batch_grants_a_wrap_up_request() {
    in_every_way(async |case: &mut PausingCase| {
        let limit = FunctionInvokingOptions::new().with_max_failed_rounds(0);
        case.options(limit.with_wrap_up(true));
        let fails = Behaviour::tell_model("no");
        case.tool(ScriptedTool::new("f").gated().always(fails));
        case.replies([Reply::calls([("c1", "f", "{}")]), Reply::text("it failed")]);
        case.say("go").await;
        let end = case.answer([case.yes("c1")]).await;
        assert_eq!(*end.reason(), FinishReason::ToolRetryLimit);
        assert_eq!(end.text(), "it failed");
        let choice = case.request(2).options.tool_choice.clone();
        assert_eq!(choice, Some(raf_core::ToolChoice::None));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i5_resume_data_without_a_loop_is_a_typed_error() {
    let provider = ScriptedChatClient::new([]);
    let messages = [ChatMessage::user("hi")];
    let record = raf_core::RunRecord::new(raf_core::RunId::random());
    for options in [
        ChatClientRunOptions::new()
            .with_tool_approval_responses([ToolApprovalResponse::approve("r")]),
        ChatClientRunOptions::new().with_paused_run(PausedRun::new(record)),
    ] {
        let error = provider.run(&messages, options).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(
            error.message().contains("no function-invoking layer"),
            "{error}"
        );
    }
    assert_eq!(provider.request_count(), 0);
}

/// Asks twice: each entry sees its own state of the entry before, and the answer.
fn asks_twice() -> ScriptedTool {
    ScriptedTool::new("ask").always(Behaviour::custom(|context, _| {
        let seen = context.resumption().cloned();
        let attempt = context.attempt();
        async move {
            match seen {
                Some(seen) if attempt == 3 => {
                    Ok(ToolOutput::Text(format!("{} {}", seen.state, seen.data)))
                }
                Some(seen) => Err(ToolError::interrupt(
                    json!("and?"),
                    json!([seen.state, seen.data]),
                )),
                None => Err(ToolError::interrupt(json!("which?"), json!("first"))),
            }
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn d2_an_interrupted_body_is_entered_again_with_its_state_and_the_answer() {
    for gated in [false, true] {
        in_every_way(async |case: &mut PausingCase| {
            let ask = asks_twice();
            let ask = case.tool(if gated { ask.gated() } else { ask });
            case.allow_unasked();
            let sibling = case.tool(ScriptedTool::returning("sibling", "s"));
            case.replies([
                Reply::calls([("c1", "ask", r#"{"n":1}"#), ("c2", "sibling", "{}")]),
                Reply::text("done"),
            ]);
            let mut leg = case.say("go").await;
            if gated {
                assert_paused(&leg, &["c1 approval"]);
                leg = case.answer([case.yes("c1")]).await;
            }
            assert_paused(&leg, &["c1 data"]);
            let waits = format!("{:?}", leg.pending()[0].waits_for);
            assert!(
                waits.contains("which?") && !waits.contains("first"),
                "{waits}"
            );
            let data = |case: &PausingCase, data| {
                [ToolApprovalResponse::resume(case.id("c1"), json!(data))]
            };
            let first_request = case.id("c1");
            let again = case.answer(data(case, "red")).await;
            assert_paused(&again, &["c1 data"]);
            assert_ne!(case.id("c1"), first_request);
            // The answer to the first question is settled.
            let late = ToolApprovalResponse::resume(first_request, json!("blue"));
            assert_refused(&case.answer([late]).await, "already_settled", &["c1 data"]);
            let done = case.answer(data(case, "dark")).await;
            assert_completed(&done);
            assert_lines(
                &case.request_lines(2),
                &[
                    "U:go",
                    "A:[c1,c2]",
                    r#"R(c1, ok: '["first","red"] "dark"')"#,
                    "R(c2, ok: 's')",
                ],
            );
            let calls = ask.calls();
            let attempts: Vec<_> = calls.iter().map(|call| call.attempt).collect();
            assert_eq!(attempts, [1, 2, 3]);
            assert!(calls.iter().all(|call| {
                call.idempotency_key == calls[0].idempotency_key && call.arguments["n"] == 1
            }));
            assert_eq!(sibling.entries(), 1);
        })
        .await;
    }
}

/// A call that failed is settled, and never runs again by a resume.
#[tokio::test(start_paused = true)]
async fn d2_a_failed_call_never_runs_again_by_a_resume() {
    in_every_way(async |case: &mut PausingCase| {
        let bad = case.tool(ScriptedTool::new("bad").always(Behaviour::tell_model("broken")));
        let ask = ScriptedTool::new("ask");
        case.tool(ask.always(Behaviour::interrupt(json!("which?"), json!(null))));
        case.replies([
            Reply::calls([("c1", "bad", "{}"), ("c2", "ask", "{}")]),
            Reply::text("done"),
        ]);
        let paused = case.say("go").await;
        assert_paused(&paused, &["c2 data"]);
        assert_lines(
            &paused.lines(),
            &["A:[c1,c2]", "R(c1, error failed: 'broken')"],
        );
        let data = ToolApprovalResponse::resume(case.id("c2"), json!("this"));
        assert_completed(&case.answer([data]).await);
        assert_eq!(bad.entries(), 1);
    })
    .await;
}

/// An interrupt can be declined as well as answered.
#[tokio::test(start_paused = true)]
async fn d2_an_interrupt_can_be_declined() {
    in_every_way(async |case: &mut PausingCase| {
        let ask = ScriptedTool::new("ask");
        let ask = case.tool(ask.always(Behaviour::interrupt(json!("which?"), json!(null))));
        case.replies([Reply::calls([("c1", "ask", "{}")]), Reply::text("done")]);
        case.say("go").await;
        let done = case.answer([case.no("c1", "not now")]).await;
        assert_completed(&done);
        assert_eq!(ask.entries(), 1);
        assert_lines(
            &case.request_lines(2),
            &["U:go", "A:[c1]", "R(c1, denied: 'Rejected: not now')"],
        );
    })
    .await;
}

type Order = Arc<Mutex<Vec<String>>>;

fn noting(name: &'static str, order: &Order) -> ScriptedTool {
    let order = Arc::clone(order);
    ScriptedTool::new(name).always(Behaviour::custom(move |context, _| {
        order
            .lock()
            .expect("nobody panics")
            .push(context.call_id().to_owned());
        std::future::ready(Ok(ToolOutput::text("r")))
    }))
}

#[tokio::test(start_paused = true)]
async fn d8_what_stands_behind_an_undecided_call_waits_in_sequential_mode() {
    in_every_way(async |case: &mut PausingCase| {
        let execution = ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
        case.options(FunctionInvokingOptions::new().with_execution(execution));
        let order = Order::default();
        case.tool(noting("free", &order));
        case.tool(noting("gated", &order).gated());
        case.replies([
            Reply::calls([
                ("c1", "free", "{}"),
                ("c2", "gated", "{}"),
                ("c3", "free", "{}"),
                ("c4", "gated", "{}"),
                ("c5", "free", "{}"),
            ]),
            Reply::text("done"),
        ]);
        let paused = case.say("go").await;
        assert_paused(
            &paused,
            &["c2 approval", "c3 earlier", "c4 approval", "c5 earlier"],
        );
        assert_eq!(*order.lock().unwrap(), ["c1"]);
        // The later one is approved first: it waits for the earlier one.
        let still = case.answer([case.yes("c4")]).await;
        assert_eq!(still.pending()[0].call.id(), "c2");
        assert_eq!(*order.lock().unwrap(), ["c1"]);
        let done = case.answer([case.no("c2", "no")]).await;
        assert_completed(&done);
        assert_eq!(*order.lock().unwrap(), ["c1", "c3", "c4", "c5"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn d8_an_exclusive_call_and_what_stands_behind_it_wait_for_an_undecided_one() {
    in_every_way(async |case: &mut PausingCase| {
        let order = Order::default();
        let alone = noting("alone", &order);
        case.tool(alone.with_limits(ToolLimits::new().with_exclusive(true)));
        case.tool(noting("free", &order));
        case.tool(noting("gated", &order).gated());
        case.replies([
            Reply::calls([
                ("c1", "gated", "{}"),
                ("c2", "free", "{}"),
                ("c3", "alone", "{}"),
                ("c4", "free", "{}"),
            ]),
            Reply::text("done"),
        ]);
        let paused = case.say("go").await;
        assert_paused(&paused, &["c1 approval", "c3 earlier", "c4 earlier"]);
        assert_eq!(*order.lock().unwrap(), ["c2"]);
        assert_completed(&case.answer([case.yes("c1")]).await);
        assert_eq!(*order.lock().unwrap(), ["c2", "c1", "c3", "c4"]);
    })
    .await;
}

/// The same bytes twice in processes that share no store cannot be noticed: the key is the same.
#[tokio::test(start_paused = true)]
async fn i2_the_same_bytes_twice_have_the_same_idempotency_key() {
    let mut case = PausingCase::new(raf_tests::Form::Fold, Reload::NewProcess);
    let f = case.tool(ScriptedTool::returning("f", "r").gated());
    case.replies([
        Reply::calls([("c1", "f", "{}")]),
        Reply::text("done"),
        Reply::text("done"),
    ]);
    case.say("go").await;
    let (conversation, paused) = (case.conversation().clone(), case.paused_run().clone());
    for _ in 0..2 {
        case.store(Arc::new(InMemoryRunStore::new()));
        *case.conversation() = conversation.clone();
        *case.paused_run() = paused.clone();
        let leg = case
            .play(ChatClientRunOptions::new().with_tool_approval_responses([case.yes("c1")]))
            .await;
        assert_completed(&leg);
    }
    let keys: Vec<_> = f
        .calls()
        .into_iter()
        .map(|call| call.idempotency_key)
        .collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}
