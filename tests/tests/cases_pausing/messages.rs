//! New messages while calls wait (E7), history that ends in unanswered calls (I3), results of
//! declared-only tools (I4).

use raf_core::{
    ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, ToolApprovalResponse, ToolCall,
    ToolDeclaration, ToolOutcome, ToolResult,
};
use raf_framework::{FunctionInvokingOptions, NewMessagePolicy};
use raf_testing::{Behaviour, Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{Ledger, PausingCase, in_every_way};
use serde_json::json;

use crate::support::{assert_completed, assert_paused, assert_refused};

const SUPERSEDED: &str = "skipped superseded: 'Not run: superseded by a new message.'";

fn two_gated(case: &mut PausingCase) {
    case.tool(ScriptedTool::new("f").gated().always(Behaviour::echo()));
    case.replies([
        Reply::calls([("c1", "f", r#"{"n":1}"#), ("c2", "f", r#"{"n":2}"#)]),
        Reply::text("done"),
    ]);
}

#[tokio::test(start_paused = true)]
async fn e7_answers_in_the_leg_of_a_new_message_are_acted_on_first() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        case.say("go").await;
        case.conversation().push(ChatMessage::user("and now?"));
        let done = case.answer([case.yes("c2")]).await;
        assert_completed(&done);
        assert_eq!(done.entries.len(), 1);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2]",
                &format!("R(c1, {SUPERSEDED})"),
                "R(c2, ok: '{\"n\":2}')",
                "U:and now?",
            ],
        );
        assert_eq!(
            case.ledger().count(&done, "approval_closed c1 superseded"),
            1
        );
        assert_eq!(
            case.ledger().count(&done, "approval_closed c2 superseded"),
            0
        );
        done.assert_order(&[
            "tool_end c2 ok",
            "tool_end c1 skipped superseded",
            "text 'done'",
        ]);
        let late = case.answer([case.yes("c1")]).await;
        assert_refused(&late, "stale", &[]);
        let again = case.answer([case.yes("c2")]).await;
        assert_refused(&again, "already_settled", &[]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e7_a_wrong_answer_with_a_new_message_runs_nothing_and_the_message_is_answered() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        case.say("go").await;
        case.conversation().push(ChatMessage::user("and now?"));
        let wrong = case.yes("c2").with_arguments(json!({"n": 3}));
        let done = case.answer([wrong]).await;
        assert_completed(&done);
        assert!(done.entries.is_empty());
        assert_eq!(
            case.ledger()
                .count(&done, "approval_refused c2 args_mismatch"),
            1
        );
        for label in ["c1", "c2"] {
            let closed = format!("approval_closed {label} superseded");
            assert_eq!(case.ledger().count(&done, &closed), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e7_what_waits_for_data_or_a_result_is_superseded_too() {
    in_every_way(async |case: &mut PausingCase| {
        let ask = ScriptedTool::new("ask");
        let ask = case.tool(ask.always(Behaviour::interrupt(json!("which?"), json!(null))));
        let declared =
            || ChatClientRunOptions::new().with_tools([ToolDeclaration::new("d", "Elsewhere.")]);
        case.replies([
            Reply::calls([("c1", "ask", "{}"), ("c2", "d", "{}")]),
            Reply::text("done"),
        ]);
        let paused = case.say_with("go", declared()).await;
        assert_paused(&paused, &["c1 data", "c2 result"]);
        let done = case.say_with("never mind", declared()).await;
        assert_completed(&done);
        assert_eq!(ask.entries(), 1);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2]",
                &format!("R(c1, {SUPERSEDED})"),
                &format!("R(c2, {SUPERSEDED})"),
                "U:never mind",
            ],
        );
        assert_eq!(
            case.ledger().count(&done, "approval_closed c1 superseded"),
            1
        );
        let late = ToolApprovalResponse::resume(case.id("c1"), json!(1));
        let late = declared().with_tool_approval_responses([late]);
        assert_refused(&case.go_on(late).await, "stale", &[]);
    })
    .await;
}

fn rejecting() -> FunctionInvokingOptions {
    FunctionInvokingOptions::new().with_new_message_policy(NewMessagePolicy::Reject)
}

#[tokio::test(start_paused = true)]
async fn e7_a_new_message_can_be_rejected_and_nothing_changes() {
    in_every_way(async |case: &mut PausingCase| {
        case.options(rejecting());
        two_gated(case);
        case.say("go").await;
        let mut posted = case.conversation().clone();
        posted.push(ChatMessage::user("and now?"));
        for answers in [vec![], vec![case.yes("c1")]] {
            let options = ChatClientRunOptions::new().with_tool_approval_responses(answers);
            let leg = case.go_on_with(posted.clone(), options).await;
            assert_eq!(leg.error_kind(), ErrorKind::Misuse);
            assert_eq!(Ledger::waiting(&leg), ["c1 approval", "c2 approval"]);
            assert!(leg.entries.is_empty() && leg.messages().is_empty());
        }
        assert_eq!(case.request_count(), 1);
        let done = case.answer([case.yes("c1"), case.yes("c2")]).await;
        assert_completed(&done);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn e7_a_new_message_with_all_answers_is_not_rejected() {
    in_every_way(async |case: &mut PausingCase| {
        case.options(rejecting());
        two_gated(case);
        case.say("go").await;
        case.conversation().push(ChatMessage::user("and now?"));
        let done = case.answer([case.yes("c1"), case.no("c2", "no")]).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2]",
                "R(c1, ok: '{\"n\":1}')",
                "R(c2, denied: 'Rejected: no')",
                "U:and now?",
            ],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i3_an_open_record_and_nothing_new_only_lists_what_waits() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case);
        let paused = case.say("go").await;
        for _ in 0..2 {
            let waiting = case.answer([]).await;
            assert_paused(&waiting, &["c1 approval", "c2 approval"]);
            assert_eq!(waiting.pending(), paused.pending());
            assert_eq!(case.ledger().words(&waiting), ["run_end awaiting_approval"]);
            assert!(waiting.messages().is_empty() && waiting.entries.is_empty());
        }
        assert_eq!(case.request_count(), 1);
        let done = case.answer([case.yes("c1"), case.yes("c2")]).await;
        assert_completed(&done);
    })
    .await;
}

/// No record: foreign, forged, lost. Never executed, gated or not.
#[tokio::test(start_paused = true)]
async fn i3_calls_without_a_record_are_filled_and_the_model_is_asked() {
    for with_message in [false, true] {
        in_every_way(async |case: &mut PausingCase| {
            let wipe = case.tool(ScriptedTool::returning("wipe", "wiped").gated());
            let ping = case.tool(ScriptedTool::returning("ping", "pong"));
            case.replies([Reply::text("done")]);
            let calls = [
                ToolCall::new("x1", "wipe", "{}"),
                ToolCall::new("x2", "ping", "{}"),
            ];
            let conversation = case.conversation();
            conversation.push(ChatMessage::user("hi"));
            conversation.push(ChatMessage::assistant_calls(calls));
            if with_message {
                conversation.push(ChatMessage::user("well?"));
            }
            let done = case.answer([]).await;
            assert_completed(&done);
            assert_eq!((wipe.entries(), ping.entries()), (0, 0));
            let mut expected = vec![
                "U:hi",
                "A:[x1,x2]",
                "R(x1, cancelled: *",
                "R(x2, cancelled: *",
            ];
            expected.extend(with_message.then_some("U:well?"));
            assert_lines(&case.request_lines(1), &expected);
        })
        .await;
    }
}

fn declared() -> ChatClientRunOptions {
    ChatClientRunOptions::new().with_tools([ToolDeclaration::new("d", "Elsewhere.")])
}

fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage::tool(ToolResult::ok(id, text))
}

#[tokio::test(start_paused = true)]
async fn i4_both_kinds_pending_say_which_is_which() {
    for result_first in [true, false] {
        in_every_way(async |case: &mut PausingCase| {
            let f = case.tool(ScriptedTool::returning("f", "r").gated());
            case.replies([
                Reply::calls([("c1", "f", "{}"), ("c2", "d", "{}")]),
                Reply::text("done"),
            ]);
            let paused = case.say_with("go", declared()).await;
            assert_paused(&paused, &["c1 approval", "c2 result"]);
            let yes = declared().with_tool_approval_responses([case.yes("c1")]);
            let done = if result_first {
                case.conversation().push(result("c2", "v"));
                let still = case.go_on(declared()).await;
                assert_paused(&still, &["c1 approval"]);
                assert_eq!(f.entries(), 0);
                case.go_on(yes).await
            } else {
                let still = case.go_on(yes).await;
                assert_eq!(*still.reason(), FinishReason::AwaitingToolResults);
                assert_eq!(Ledger::waiting(&still), ["c2 result"]);
                assert_eq!(f.entries(), 1);
                case.conversation().push(result("c2", "v"));
                case.go_on(declared()).await
            };
            assert_completed(&done);
            assert_eq!(case.request_count(), 2);
            assert_lines(
                &case.request_lines(2),
                &["U:go", "A:[c1,c2]", "R(c1, ok: 'r')", "R(c2, ok: 'v')"],
            );
        })
        .await;
    }
}

/// A result for a gated call settles nothing; the approved call's own result takes its place, in a
/// tool message of plain text too.
#[tokio::test(start_paused = true)]
async fn i4_a_result_for_a_gated_call_settles_nothing() {
    for plain in [false, true] {
        in_every_way(async |case: &mut PausingCase| {
            let f = case.tool(ScriptedTool::returning("f", "r").gated());
            case.replies([Reply::calls([("c1", "f", "{}")]), Reply::text("done")]);
            case.say("go").await;
            if plain {
                let text = [raf_core::Content::text("forged")];
                let forged = ChatMessage::new(raf_core::MessageRole::Tool, text);
                case.conversation().push(forged);
                assert_paused(&case.answer([]).await, &["c1 approval"]);
            } else {
                case.conversation().push(result("c1", "forged"));
                let leg = case.answer([]).await;
                assert_refused(&leg, "wrong_category", &["c1 approval"]);
            }
            assert_eq!(f.entries(), 0);
            let done = case.answer([case.yes("c1")]).await;
            assert_completed(&done);
            assert_eq!(f.entries(), 1);
            assert_eq!(done.outcome("c1"), ToolOutcome::Ok);
            assert_lines(
                &case.request_lines(2),
                &["U:go", "A:[c1]", "R(c1, ok: 'r')"],
            );
        })
        .await;
    }
}

/// A forged result takes no other call's place either: not that of a sibling with the same label, not
/// that of an older call which was never answered.
#[tokio::test(start_paused = true)]
async fn a6_a_forged_result_gives_way_to_the_loops_own_where_labels_repeat() {
    in_every_way(async |case: &mut PausingCase| {
        case.tool(ScriptedTool::returning("free", "own").gated());
        case.tool(ScriptedTool::returning("sibling", "the sibling's"));
        case.replies([
            Reply::calls([("x", "sibling", "{}"), ("x", "free", "{}")]),
            Reply::text("done"),
        ]);
        let old = ToolCall::new("x", "sibling", r#"{"old":true}"#);
        case.conversation().push(ChatMessage::user("before"));
        case.conversation()
            .push(ChatMessage::assistant_calls([old]));
        case.say("go").await;
        let mut posted = case.conversation().clone();
        let asking = posted
            .iter()
            .rposition(|message| message.tool_calls().next().is_some());
        posted.insert(asking.unwrap() + 1, result("x", "forged"));
        let yes = ChatClientRunOptions::new().with_tool_approval_responses([case.yes("x")]);
        assert_completed(&case.go_on_with(posted, yes).await);
        let messages = &case.request(2).messages;
        let results = messages.iter().flat_map(ChatMessage::tool_results);
        let texts: Vec<_> = results.map(ToolResult::text).collect();
        assert_eq!(texts[1..], ["the sibling's", "own"]);
        assert!(texts[0].contains("cancelled"), "{texts:?}");
    })
    .await;
}

/// Results are matched within the open batch, in any order, by place where ids repeat or are empty.
#[tokio::test(start_paused = true)]
async fn i4_results_are_matched_within_the_open_batch() {
    for (first, second, order) in [
        ("c1", "c2", ["c2", "c1"]),
        ("same", "same", ["same", "same"]),
        ("", "", ["", ""]),
    ] {
        in_every_way(async |case: &mut PausingCase| {
            case.replies([
                Reply::calls([(first, "d", r#"{"n":1}"#), (second, "d", r#"{"n":2}"#)]),
                Reply::text("done"),
            ]);
            let paused = case.say_with("go", declared()).await;
            assert_eq!(*paused.reason(), FinishReason::AwaitingToolResults);
            case.conversation().push(result(order[0], "given first"));
            let still = case.go_on(declared()).await;
            assert_eq!(*still.reason(), FinishReason::AwaitingToolResults);
            assert_eq!(still.pending().len(), 1);
            case.conversation().push(result(order[1], "given second"));
            assert_completed(&case.go_on(declared()).await);
            let messages = &case.request(2).messages;
            let results = messages.iter().flat_map(ChatMessage::tool_results);
            let texts: Vec<_> = results.map(ToolResult::text).collect();
            let expected = if first == order[0] {
                ["given first", "given second"]
            } else {
                ["given second", "given first"]
            };
            assert_eq!(texts, expected);
        })
        .await;
    }
}

/// A declared-only call has no request: its own label answers nothing.
#[tokio::test(start_paused = true)]
async fn i4_a_yes_settles_no_declared_call() {
    in_every_way(async |case: &mut PausingCase| {
        case.replies([Reply::calls([("c1", "d", "{}")])]);
        case.say_with("go", declared()).await;
        let yes = declared().with_tool_approval_responses([ToolApprovalResponse::approve("c1")]);
        let leg = case.go_on(yes).await;
        assert_refused(&leg, "unknown_request", &["c1 result"]);
    })
    .await;
}
