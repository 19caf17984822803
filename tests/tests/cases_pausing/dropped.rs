//! What is left when resumed legs are dropped behind their batch, and the next one goes on (D2, A2, F4).

use raf_core::{ChatClientRunOptions, ChatMessage, FinishReason, ToolOutcome};
use raf_framework::FunctionInvokingOptions;
use raf_testing::{Behaviour, Latch, Reply, ScriptedTool};
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{PausingCase, Reload};
use raf_tests::{Form, Leg};
use raf_tools::ToolLimits;

use crate::support::{assert_completed, assert_paused, assert_refused};

fn case() -> PausingCase {
    PausingCase::new(Form::Stream, Reload::Nothing)
}

/// A reply that never comes.
fn never() -> Reply {
    Reply::text("never").gate(&Latch::new()).then_text("")
}

/// Gives a yes, and drops the leg when nothing goes on any more.
async fn answer_and_drop(case: &mut PausingCase, label: &str) -> Leg {
    let yes = [case.yes(label)];
    let options = ChatClientRunOptions::new().with_tool_approval_responses(yes);
    let (leg, dropped) = case.play_dropped(options, None).await;
    assert!(dropped && leg.faults.is_empty(), "{:?}", leg.faults);
    leg
}

/// The calls of a leg that goes on after a drop have places, and keys, of their own: whether the leg was
/// dropped while the body of a later round ran, or behind it.
#[tokio::test(start_paused = true)]
async fn d2_a_call_after_a_dropped_leg_has_a_key_of_its_own() {
    for hangs in [true, false] {
        let mut case = case();
        let g = ScriptedTool::new("g").with_limits(ToolLimits::new().without_deadline());
        let first = if hangs {
            Behaviour::hang()
        } else {
            Behaviour::echo()
        };
        let g = case.tool(g.then(first).always(Behaviour::echo()));
        case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([
            Reply::calls([("c1", "f", "{}")]),
            Reply::calls([("c2", "g", r#"{"n":1}"#)]),
        ]);
        assert_paused(&case.say("go").await, &["c1 approval"]);
        case.replies((!hangs).then(never));
        let dropped = answer_and_drop(&mut case, "c1").await;
        assert_eq!(dropped.requests().len(), if hangs { 1 } else { 2 });
        assert_eq!(g.entries(), 1);

        // The caller's own copy is made valid: what became of c1 is not known there.
        case.replies([
            Reply::calls([("c2", "g", r#"{"n":2}"#)]),
            Reply::text("done"),
        ]);
        let done = case.answer([]).await;
        assert_completed(&done);
        assert_lines(
            &done.requests()[0].request.lines(),
            &["U:go", "A:[c1]", "R(c1, cancelled: *"],
        );
        let calls = g.calls();
        assert_eq!(calls.len(), 2);
        assert_ne!(calls[0].idempotency_key, calls[1].idempotency_key);
    }
}

/// A batch that was counted before the drop is not counted again.
#[tokio::test(start_paused = true)]
async fn f4_a_batch_of_a_dropped_leg_counts_once() {
    let mut case = case();
    let limits = FunctionInvokingOptions::new().with_max_failed_rounds(1);
    case.options(limits.with_no_progress_rounds(2));
    let bad = ScriptedTool::new("bad").always(Behaviour::tell_model("no"));
    case.tool(bad.gated());
    case.tool(ScriptedTool::returning("good", "yes"));
    case.replies([
        Reply::calls([("c1", "bad", "{}"), ("c2", "good", "{}")]),
        never(),
        never(),
        never(),
        Reply::text("done"),
    ]);
    case.say("go").await;
    answer_and_drop(&mut case, "c1").await;
    for _ in 0..2 {
        let (leg, dropped) = case.play_dropped(ChatClientRunOptions::new(), None).await;
        assert!(dropped, "{:?}", leg.response.map(|end| end.finish_reason));
    }
    assert_completed(&case.answer([]).await);
}

/// A pause that nobody saw: the caller holds the older message, whose calls are settled.
#[tokio::test(start_paused = true)]
async fn a2_a_pause_that_nobody_saw_is_not_mistaken_for_the_one_before() {
    for with_message in [false, true] {
        let mut case = case();
        let f = case.tool(ScriptedTool::new("f").gated().always(Behaviour::echo()));
        case.replies([
            Reply::calls([("c1", "f", r#"{"n":1}"#)]),
            // A provider that reuses its ids.
            Reply::calls([("c1", "f", r#"{"n":2}"#)]),
            Reply::text("done"),
        ]);
        assert_paused(&case.say("go").await, &["c1 approval"]);
        let (first, conversation) = (case.yes("c1"), case.conversation().clone());
        let unseen = case.answer([first.clone()]).await;
        assert_paused(&unseen, &["c1 approval"]);
        // The caller never got that leg.
        *case.conversation() = conversation;

        assert_refused(&case.answer([first]).await, "already_settled", &[]);
        if with_message {
            case.conversation().push(ChatMessage::user("and now?"));
        }
        let done = case.answer([]).await;
        assert_completed(&done);
        assert_eq!(*done.reason(), FinishReason::Stop);
        assert_eq!(f.entries(), 1);
        // It did run: nothing says that it did not.
        let mut expected = vec!["U:go", "A:[c1]", "R(c1, cancelled: *"];
        expected.extend(with_message.then_some("U:and now?"));
        assert_lines(&case.request_lines(3), &expected);
        let messages = &case.request(3).messages;
        let result = messages.iter().flat_map(ChatMessage::tool_results).next();
        let started = ToolOutcome::Cancelled { started: true };
        assert_eq!(result.map(raf_core::ToolResult::outcome), Some(started));
        assert!(
            done.messages()
                .iter()
                .all(|message| message.tool_results().next().is_none())
        );
    }
}

/// A model error behind a resumed batch: the error holds what the leg had done, and the conversation
/// goes on from it without running anything again.
#[tokio::test(start_paused = true)]
async fn fx01_a_model_error_behind_a_resumed_batch_is_resumable() {
    raf_tests::pausing::in_every_way(async |case: &mut PausingCase| {
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        let busy = raf_core::Error::new(raf_core::ErrorKind::Overloaded, "busy");
        case.replies([
            Reply::calls([("c1", "f", "{}")]).usage(10, 1),
            Reply::new().usage(5, 0).error(busy),
            Reply::text("done").usage(20, 2),
        ]);
        case.say("go").await;
        let failed = case.answer([case.yes("c1")]).await;
        assert_eq!(failed.error_kind(), raf_core::ErrorKind::Overloaded);
        assert_lines(&failed.lines(), &["R(c1, ok: 'r')"]);
        assert_eq!(failed.run_usage(), raf_core::Usage::new(15, 1));
        assert!(failed.pending().is_empty());
        let done = case.answer([]).await;
        assert_completed(&done);
        assert_lines(
            &case.request_lines(3),
            &["U:go", "A:[c1]", "R(c1, ok: 'r')"],
        );
        assert_eq!(f.entries(), 1);
    })
    .await;
}
