//! Resumed legs that are cancelled (H1, H2), late (F1), or dropped (B5).

use std::time::Duration;

use raf_core::{
    AgentResponseUpdate, BudgetLimit, ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind,
    FinishReason, IChatClient, ToolOutcome, normalise, validate_history,
};
use raf_testing::invariants::{assert_holds, check_entries};
use raf_testing::{Behaviour, Reply, ScriptedTool, ToolLog, cancel_after_polls, drop_after_polls};
use raf_tests::Form;
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{PausingCase, Reload, in_every_way};
use std::sync::Arc;

use crate::support::{assert_completed, assert_paused, assert_refused};

fn two_gated(case: &mut PausingCase, body: Behaviour) {
    case.tool(ScriptedTool::new("f").gated().always(body));
    case.replies([Reply::calls([("c1", "f", "{}"), ("c2", "f", "{}")])]);
}

#[tokio::test(start_paused = true)]
async fn h1_a_resumed_leg_that_is_cancelled_settles_all_and_closes_its_record() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case, Behaviour::until_cancelled());
        assert_paused(&case.say("go").await, &["c1 approval", "c2 approval"]);
        let token = raf_core::CancellationToken::new();
        let cancel = token.clone();
        let options = ChatClientRunOptions::new()
            .with_tool_approval_responses([case.yes("c1")])
            .with_cancellation(token);
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        };
        let (leg, ()) = tokio::join!(case.go_on(options), later);
        assert_eq!(leg.error_kind(), ErrorKind::Cancelled);
        assert!(leg.pending().is_empty());
        assert_eq!(leg.outcome("c1"), ToolOutcome::Cancelled { started: true });
        assert_eq!(leg.outcome("c2"), ToolOutcome::Cancelled { started: false });
        assert_eq!(case.ledger().count(&leg, "approval_closed c2 cancelled"), 1);
        // Usable at once; a late answer is stale.
        assert_refused(&case.answer([case.yes("c2")]).await, "stale", &[]);
        case.replies([Reply::text("4")]);
        assert_completed(&case.say("never mind, what is 2+2?").await);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2]",
                "R(c1, cancelled: *",
                "R(c2, cancelled: *",
                "U:never mind, what is 2+2?",
            ],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn h1_a_leg_that_is_cancelled_before_it_begins_changes_nothing() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case, Behaviour::text("r"));
        case.say("go").await;
        let token = raf_core::CancellationToken::new();
        token.cancel();
        let answers = [case.yes("c1"), case.yes("c2")];
        let options = ChatClientRunOptions::new()
            .with_tool_approval_responses(answers.clone())
            .with_cancellation(token);
        let leg = case.go_on(options).await;
        assert_eq!(leg.error_kind(), ErrorKind::Cancelled);
        assert!(leg.entries.is_empty() && leg.messages().is_empty());
        case.replies([Reply::text("done")]);
        assert_completed(&case.answer(answers).await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f1_a_resumed_leg_has_a_deadline_of_its_own() {
    in_every_way(async |case: &mut PausingCase| {
        two_gated(case, Behaviour::until_cancelled());
        case.say("go").await;
        // Paused time is no time of the run.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let options = ChatClientRunOptions::new()
            .with_tool_approval_responses([case.yes("c1")])
            .with_deadline(Duration::from_secs(1));
        let leg = case.go_on(options).await;
        assert_eq!(*leg.reason(), FinishReason::Budget(BudgetLimit::Deadline));
        assert!(leg.pending().is_empty());
        assert_eq!(leg.outcome("c1"), ToolOutcome::Cancelled { started: true });
        assert_lines(
            &leg.lines(),
            &["R(c1, cancelled: *", "R(c2, skipped limit: *"],
        );
        assert_refused(&case.answer([case.yes("c2")]).await, "stale", &[]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f1_paused_time_is_no_time_of_the_run() {
    in_every_way(async |case: &mut PausingCase| {
        let limit = Duration::from_secs(10);
        case.options(raf_framework::FunctionInvokingOptions::new().with_max_wall_time(limit));
        let slow = Behaviour::text("r").after_sleep(Duration::from_secs(4));
        two_gated(case, slow);
        case.say("go").await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        // Four seconds of work, an hour's pause, four more: below the limit.
        assert_paused(&case.answer([case.yes("c1")]).await, &["c2 approval"]);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        case.replies([Reply::calls([("c3", "f", "{}")])]);
        assert_paused(&case.answer([case.yes("c2")]).await, &["c3 approval"]);
        // Twelve: above it.
        let end = case.answer([case.yes("c3")]).await;
        assert_eq!(*end.reason(), FinishReason::Budget(BudgetLimit::WallTime));
        assert_eq!(end.outcome("c3"), ToolOutcome::Ok);
    })
    .await;
}

/// A paused run, and a stream of its resumed leg.
struct World {
    client: Arc<dyn IChatClient>,
    conversation: Vec<ChatMessage>,
    options: ChatClientRunOptions,
    log: ToolLog,
}

/// A gated call next to an ungated one that ran; its body takes three steps.
async fn world(reload: Reload) -> World {
    let mut case = PausingCase::new(Form::Stream, reload);
    let body = Behaviour::text("r")
        .after_progress("a")
        .after_sleep(Duration::from_millis(1))
        .after_progress("b")
        .after_sleep(Duration::from_millis(1));
    let log = case.tool(ScriptedTool::new("f").gated().always(body));
    case.tool(ScriptedTool::returning("g", "g"));
    case.replies([
        Reply::calls([("c1", "f", "{}"), ("c2", "g", "{}")]),
        Reply::text("done"),
        Reply::text("done after all"),
    ]);
    case.say("go").await;
    let mut options = ChatClientRunOptions::new().with_tool_approval_responses([case.yes("c1")]);
    if reload != Reload::Nothing {
        options.paused_run.clone_from(case.paused_run());
    }
    World {
        client: case.client(),
        conversation: case.conversation().clone(),
        options,
        log,
    }
}

/// Gives the same answers once more; where the run had ended before its end was read they are
/// settled, and the conversation goes on without them. It comes to an answer of the model, whatever
/// became of the leg before, and the body was entered at most once.
async fn goes_on(world: &World) {
    let mut retried = world
        .client
        .get_response(&world.conversation, world.options.clone())
        .await;
    if let Err(error) = &retried {
        assert_eq!(error.code(), Some("already_settled"), "{error:?}");
        let mut options = world.options.clone();
        options.tool_approval_responses.clear();
        retried = world
            .client
            .get_response(&world.conversation, options)
            .await;
    }
    let retried = retried.unwrap_or_else(|error| panic!("the next leg failed: {error:?}"));
    assert_eq!(retried.finish_reason, FinishReason::Stop);
    assert!(world.log.entries() <= 1);
    assert_holds(check_entries(&world.log.calls()));
    let mut conversation = world.conversation.clone();
    conversation.extend(retried.messages);
    assert!(validate_history(&normalise(&conversation)).is_ok());
    let outcomes: Vec<_> = conversation
        .iter()
        .flat_map(ChatMessage::tool_results)
        .filter(|result| result.call_id() == "c1")
        .map(raf_core::ToolResult::outcome)
        .collect();
    assert!(outcomes.len() <= 1, "{outcomes:?}");
    let may_have_run = world.log.entries() == 1;
    for outcome in outcomes {
        // An outcome that says that nothing was done is true.
        assert!(!may_have_run || outcome != (ToolOutcome::Cancelled { started: false }));
        assert!(outcome != ToolOutcome::Ok || may_have_run);
    }
}

#[test]
fn b5_a_resumed_leg_dropped_at_any_poll_enters_its_body_at_most_once_and_the_next_leg_works() {
    for reload in [Reload::Nothing, Reload::SameStore] {
        let (entered, not) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let runs = drop_after_polls(
            async || {
                let world = world(reload).await;
                let stream = world.client.run(&world.conversation, world.options.clone());
                (stream.await.unwrap(), world)
            },
            async |left| {
                let world = left.world;
                assert_eq!(world.log.running(), 0);
                let before = world.log.entries();
                let count = if before == 0 { &not } else { &entered };
                count.set(count.get() + 1);
                if !left.ended_by_itself {
                    goes_on(&world).await;
                }
                if before == 1 {
                    assert_eq!(world.log.entries(), 1, "the body was entered again");
                }
            },
        );
        assert!(runs > 5);
        assert!(
            entered.get() > 0 && not.get() > 0,
            "both sides of the entry"
        );
    }
}

#[test]
fn h1_a_resumed_leg_cancelled_at_any_poll_ends_once_and_leaves_the_conversation_usable() {
    let runs = cancel_after_polls(
        async |token| {
            let mut world = world(Reload::Nothing).await;
            world.options = world.options.with_cancellation(token);
            let stream = world.client.run(&world.conversation, world.options.clone());
            (stream.await.unwrap(), world)
        },
        async |left| {
            let mut world = left.world;
            let terminal = left.items.last().expect("there is a terminal item");
            let mut fold = raf_core::ResponseFold::new();
            for update in left.items.iter().flatten() {
                fold.push(update);
            }
            let settled = fold
                .messages()
                .iter()
                .flat_map(ChatMessage::tool_results)
                .count();
            match terminal {
                Ok(AgentResponseUpdate::Finish { finish }) => {
                    assert_eq!(finish.reason, FinishReason::Stop);
                    return;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
                other => panic!("{other:?}"),
            }
            let entered = world.log.entries();
            assert!(settled == 1 || entered == 0);
            world.conversation.extend(fold.messages().to_vec());
            world.conversation.push(ChatMessage::user("and now?"));
            let next = world
                .client
                .get_response(&world.conversation, ChatClientRunOptions::new())
                .await
                .unwrap();
            assert_eq!(next.finish_reason, FinishReason::Stop);
            assert_eq!(world.log.entries(), entered);
        },
    );
    assert!(runs > 5);
}
