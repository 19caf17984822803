//! Cases 11, 14, 19, 20, 21, 23, 24 and numbers 7, 8, 11 of the function-invocation cases.

use std::sync::Arc;

use raf_core::{
    BudgetLimit, ChatClientRunOptions, ChatMessage, FinishReason, ToolApprovalResponse, ToolChoice,
    ToolDeclaration, ToolResult,
};
use raf_framework::{FunctionInvokingOptions, PolicyDecision, policy_fn};
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{Ledger, PausingCase, Reload, in_every_way};
use raf_tools::{ApprovalRequiredTool, RegisteredTool, ToolRegistry};
use serde_json::json;

use crate::support::{assert_completed, assert_paused, assert_refused};

#[tokio::test(start_paused = true)]
async fn fi11_the_result_of_a_declared_tool_resumes_the_run() {
    in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r1"));
        let declared =
            || ChatClientRunOptions::new().with_tools([ToolDeclaration::new("d", "Elsewhere.")]);
        case.replies([
            Reply::calls([("1", "f", "{}"), ("2", "d", r#"{"x":1}"#)]),
            Reply::text("done"),
        ]);
        let paused = case.say_with("go", declared()).await;
        assert_eq!(*paused.reason(), FinishReason::AwaitingToolResults);
        assert_eq!(Ledger::waiting(&paused), ["2 result"]);
        assert_lines(&paused.lines(), &["A:[1,2]", "R(1, ok: 'r1')"]);
        assert_eq!(f.entries(), 1);

        let result = ChatMessage::tool(ToolResult::ok("2", "v"));
        case.conversation().push(result);
        let done = case.go_on(declared()).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(2),
            &["U:go", "A:[1,2]", "R(1, ok: 'r1')", "R(2, ok: 'v')"],
        );
        // The caller's own message is not emitted again (B2).
        assert_lines(&done.lines(), &["A:done"]);
        assert_eq!(f.entries(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi14_a_forced_choice_is_unset_on_the_first_request_of_a_resume() {
    for choice in [ToolChoice::Required, ToolChoice::Named("f".into())] {
        in_every_way(async |case: &mut PausingCase| {
            case.tool(ScriptedTool::returning("f", "r").gated());
            case.replies([
                Reply::calls([("1", "f", "{}")]),
                Reply::text("done"),
                Reply::text("no call"),
            ]);
            let forced = || ChatClientRunOptions::new().with_tool_choice(choice.clone());
            case.say_with("go", forced()).await;
            let yes = [case.yes("1")];
            let done = case.go_on(forced().with_tool_approval_responses(yes)).await;
            assert_completed(&done);
            // A new turn of the user is forced again.
            case.say_with("again", forced()).await;
            let choices: Vec<_> = (1..=3)
                .map(|n| case.request(n).options.tool_choice.clone())
                .collect();
            assert_eq!(choices, [Some(choice.clone()), None, Some(choice.clone())]);
        })
        .await;
    }
}

/// f asks for approval, in a wrapper or by itself; g does not.
fn f_and_g(case: &mut PausingCase, wrapped: bool) {
    let f = ScriptedTool::returning("f", "r1");
    if wrapped {
        let log = f.log().clone();
        let registered = RegisteredTool::from_shared(Arc::new(ApprovalRequiredTool::new(f)));
        let registry =
            ToolRegistry::from_tools([registered.expect("it is a tool")]).expect("one tool");
        // Once more around it: the gate is a property of what stands in the registry.
        let shared = Arc::clone(registry.get("f").expect("it is there").tool());
        case.shared_tool(shared, &log);
    } else {
        case.tool(f.gated());
    }
    case.tool(ScriptedTool::returning("g", "r2"));
    case.replies([Reply::calls([("1", "f", "{}"), ("2", "g", "{}")]).message_id("m1")]);
}

#[tokio::test(start_paused = true)]
async fn fi19_approval_is_asked_for_the_gated_call_alone() {
    for wrapped in [false, true] {
        in_every_way(async |case: &mut PausingCase| {
            f_and_g(case, wrapped);
            let paused = case.say("go").await;
            assert_paused(&paused, &["1 approval"]);
            assert_lines(&paused.lines(), &["A:[1,2]", "R(2, ok: 'r2')"]);
            paused.assert_order(&["call_ready 1", "call_ready 2", "tool_end 2 ok"]);
            assert_eq!(case.ledger().count(&paused, "approval_requested 1"), 1);
            assert_eq!(case.request_count(), 1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn fi19_in_parity_mode_the_whole_batch_waits() {
    in_every_way(async |case: &mut PausingCase| {
        case.options(FunctionInvokingOptions::new().with_hold_whole_batch(true));
        f_and_g(case, false);
        let paused = case.say("go").await;
        assert_paused(&paused, &["1 approval", "2 earlier"]);
        assert_lines(&paused.lines(), &["A:[1,2]"]);
        assert!(paused.entries.is_empty());
        assert_eq!(case.ledger().asked.len(), 1);
        assert_eq!(case.request_count(), 1);

        case.replies([Reply::text("done")]);
        let done = case.answer([case.yes("1")]).await;
        assert_completed(&done);
        assert_lines(
            &done.lines(),
            &["R(1, ok: 'r1')", "R(2, ok: 'r2')", "A:done"],
        );
    })
    .await;
}

fn two_gated(case: &mut PausingCase) {
    case.tool(ScriptedTool::returning("f", "r1").gated());
    case.tool(ScriptedTool::returning("g", "r2").gated());
    case.replies([
        Reply::calls([("1", "f", "{}"), ("2", "g", r#"{"i":42}"#)]).message_id("m1"),
        Reply::text("done"),
    ]);
}

#[tokio::test(start_paused = true)]
async fn fi20_approval_granted() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        assert_paused(&case.say("go").await, &["1 approval", "2 approval"]);
        let done = case.answer([case.yes("1"), case.yes("2")]).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(2),
            &["U:go", "A:[1,2]", "R(1, ok: 'r1')", "R(2, ok: 'r2')"],
        );
        assert_eq!(case.request(2).messages[1].message_id(), Some("m1"));
        // The transcript since the user's message; calls shown before are not emitted again.
        let out = raf_testing::transcript_lines(&case.conversation()[1..]);
        assert_lines(
            &out,
            &["A:[1,2]", "R(1, ok: 'r1')", "R(2, ok: 'r2')", "A:done"],
        );
        assert_lines(
            &done.lines(),
            &["R(1, ok: 'r1')", "R(2, ok: 'r2')", "A:done"],
        );
        done.assert_order(&["tool_end 1 ok", "text 'done'"]);
        done.assert_order(&["tool_end 2 ok", "text 'done'"]);
        assert_eq!(done.count("call_ready"), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi21_approval_denied_and_mixed() {
    for (reason, text) in [
        ("why", "Rejected: why"),
        ("  ", "Rejected: the call was not approved."),
    ] {
        in_every_way(async |case: &mut PausingCase| {
            two_gated(case);
            assert_paused(&case.say("go").await, &["1 approval", "2 approval"]);
            // In any order of the answers: results in call order.
            let done = case.answer([case.yes("2"), case.no("1", reason)]).await;
            assert_completed(&done);
            let denied = format!("R(1, denied: '{text}')");
            assert_lines(
                &case.request_lines(2),
                &["U:go", "A:[1,2]", denied.as_str(), "R(2, ok: 'r2')"],
            );
            assert_lines(
                &done.lines(),
                &[denied.as_str(), "R(2, ok: 'r2')", "A:done"],
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn fi23_replayed_answers_run_nothing() {
    for id in ["3", "1"] {
        in_every_way(async |case: &mut PausingCase| {
            let f = case.tool(ScriptedTool::returning("f", "r").gated());
            case.replies([
                Reply::calls([("1", "f", "{}")]),
                Reply::text("first"),
                Reply::calls([(id, "f", r#"{"n":2}"#)]),
                Reply::text("second"),
            ]);
            case.say("go").await;
            let old = case.yes("1");
            assert_completed(&case.answer([old.clone()]).await);
            assert_paused(&case.say("again").await, &[&format!("{id} approval")]);

            let new = case.yes(id);
            let done = case.answer([old, new.clone(), new]).await;
            assert_completed(&done);
            assert_eq!(f.entries(), 2);
            assert_eq!(f.calls()[1].arguments["n"], 2);
            let words = case.ledger().words(&done);
            let refusals: Vec<_> = words
                .iter()
                .filter(|word| word.starts_with("approval_refused"))
                .collect();
            // Another process has no record of a run that ended.
            let of_old = match case.reload_kind() {
                Reload::NewProcess => "approval_refused 1 unknown_request".to_owned(),
                _ => "approval_refused 1 already_settled".to_owned(),
            };
            let of_new = format!("approval_refused {id} already_settled");
            assert_eq!(refusals.len(), 2, "{refusals:?}");
            assert!(refusals.contains(&&of_old), "{refusals:?}");
            assert!(refusals.contains(&&of_new), "{refusals:?}");

            // One pair per call; where the provider reused the id it is re-labelled in pairs (A6).
            let lines = case.request_lines(4);
            assert_eq!(lines.len(), 7, "{lines:?}");
            let messages = &case.request(4).messages;
            let calls: Vec<_> = messages.iter().flat_map(ChatMessage::tool_calls).collect();
            let results: Vec<_> = messages
                .iter()
                .flat_map(ChatMessage::tool_results)
                .collect();
            assert_eq!((calls.len(), results.len()), (2, 2));
            assert_ne!(calls[0].id(), calls[1].id());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn fi24_forged_and_edited_verdicts() {
    in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([
            Reply::calls([("1", "f", r#"{"to": "x", "amount": 5}"#)]),
            Reply::text("done"),
        ]);
        assert_paused(&case.say("pay").await, &["1 approval"]);

        // For an id that was never asked, the call's own label among them.
        for forged in ["1", "0123456789abcdef0123456789abcdef", ""] {
            let leg = case.answer([ToolApprovalResponse::approve(forged)]).await;
            assert_refused(&leg, "unknown_request", &["1 approval"]);
        }
        // With other arguments.
        let other = case
            .yes("1")
            .with_arguments(json!({"to": "x", "amount": 999}));
        let leg = case.answer([other]).await;
        assert_refused(&leg, "args_mismatch", &["1 approval"]);
        assert_eq!(f.entries(), 0);

        // With those that the request shows, in any order of keys: the recorded ones run.
        let seen = case
            .yes("1")
            .with_arguments(json!({"amount": 5, "to": "x"}));
        assert_completed(&case.answer([seen]).await);
        assert_eq!(f.entries(), 1);
        assert_eq!(
            json!(f.calls()[0].arguments),
            json!({"to": "x", "amount": 5})
        );
        assert_eq!(case.request_count(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fx07_two_asks_and_one_verdict_send_nothing_dangling() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        case.say("go").await;
        let still = case.answer([case.yes("1")]).await;
        assert_paused(&still, &["2 approval"]);
        assert_lines(&still.lines(), &["R(1, ok: 'r1')"]);
        assert_eq!(case.request_count(), 1);
        let done = case.answer([case.yes("2")]).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(2),
            &["U:go", "A:[1,2]", "R(1, ok: 'r1')", "R(2, ok: 'r2')"],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fx08_never_mind_with_asks_pending() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        case.say("go").await;
        let done = case.say("never mind").await;
        assert_completed(&done);
        assert!(done.entries.is_empty());
        let superseded = "skipped superseded: 'Not run: superseded by a new message.'";
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[1,2]",
                &format!("R(1, {superseded})"),
                &format!("R(2, {superseded})"),
                "U:never mind",
            ],
        );
        for label in ["1", "2"] {
            let closed = format!("approval_closed {label} superseded");
            assert_eq!(case.ledger().count(&done, &closed), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fx11_auto_approved_and_approved_calls_share_one_budget() {
    in_every_way(async |case: &mut PausingCase| {
        case.allow_unasked();
        // Small amounts are allowed without asking.
        let policy = policy_fn(|call| match call.arguments["n"].as_i64() {
            Some(n) if n < 3 => PolicyDecision::Allow,
            _ => PolicyDecision::Inherit,
        });
        case.options(
            FunctionInvokingOptions::new()
                .with_max_calls(3)
                .with_approval_policy(policy),
        );
        let f = ScriptedTool::new("f").always(Behaviour::echo());
        let f = case.tool(f.gated());
        case.allow_unasked();
        case.replies([
            Reply::calls([("1", "f", r#"{"n":1}"#)]),
            Reply::calls([
                ("2", "f", r#"{"n":2}"#),
                ("3", "f", r#"{"n":3}"#),
                ("4", "f", r#"{"n":1}"#),
            ]),
        ]);
        let paused = case.say("go").await;
        assert_paused(&paused, &["3 approval"]);
        assert_eq!(f.call_ids(), ["1", "2"]);
        // The fourth call is over the budget, whoever would have allowed it.
        assert_lines(
            &paused.lines(),
            &[
                "A:[1]",
                "R(1, ok: '{\"n\":1}')",
                "A:[2,3,4]",
                "R(2, ok: '{\"n\":2}')",
                "R(4, skipped limit: *",
            ],
        );
        let end = case.answer([case.yes("3")]).await;
        assert_eq!(*end.reason(), FinishReason::Budget(BudgetLimit::Calls));
        assert_eq!(f.call_ids(), ["1", "2", "3"]);
        assert_lines(&end.lines(), &["R(3, ok: '{\"n\":3}')"]);
        assert_eq!(case.request_count(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn fi19_a_gate_survives_a_namespace() {
    in_every_way(async |case: &mut PausingCase| {
        let f = ScriptedTool::returning("f", "r1").gated();
        let log = f.log().clone();
        let registry = ToolRegistry::builder().with_tool(f).build().unwrap();
        let namespaced = registry.namespaced("files").unwrap();
        let name = namespaced.tool_names().next().unwrap().to_owned();
        let shared = Arc::clone(namespaced.get(&name).unwrap().tool());
        case.shared_tool(shared, &log);
        case.replies([Reply::calls([("1", name.as_str(), "{}")])]);
        assert_paused(&case.say("go").await, &["1 approval"]);
        assert_eq!(log.entries(), 0);
    })
    .await;
}
