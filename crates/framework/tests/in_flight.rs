//! Batches in flight when their process dies: what was kept of them by then, and what is entered again.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

mod durable_run;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, AnswerOutcome, ChatClientExt, ChatClientRunOptions, ChatMessage,
    FinishReason, IChatClient, JournalEntry, JournalKind, RefusalReason, ToolApprovalResponse,
    ToolOutcome, WaitsFor,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::ToolLimits;
use serde_json::json;

use crate::durable_run::{client, durable_store, journal, outcomes_of, run_in};

/// Polls a run until an update of this kind, then drops it: its process dies there.
async fn dies_at(
    client: &FunctionInvokingChatClient,
    options: ChatClientRunOptions,
    is_there: impl Fn(&AgentResponseUpdate) -> bool,
) {
    let input = [ChatMessage::user("book it")];
    let mut stream = client.run(&input, options).await.unwrap();
    while let Some(update) = stream.next().await {
        if is_there(&update.unwrap()) {
            return;
        }
    }
    panic!("the run ended first")
}

/// A tool whose first call hangs, and a client whose model calls it.
fn hanging(idempotent: bool) -> (Arc<ScriptedTool>, FunctionInvokingChatClient) {
    let tool = ScriptedTool::new("book")
        .then(Behaviour::hang())
        .always(Behaviour::text("booked"))
        .with_limits(ToolLimits::new().with_idempotent(idempotent));
    let tool = Arc::new(tool);
    let model = ScriptedChatClient::new([Reply::calls([("c1", "book", "{}")]), Reply::text("ok")]);
    let client = client(&model, &[&tool], FunctionInvokingOptions::new());
    (tool, client)
}

#[tokio::test]
async fn i7_a_start_without_an_outcome_is_entered_again_only_if_its_tool_is_idempotent() {
    let cases = [(true, ToolOutcome::Ok, 2), (false, ToolOutcome::Unknown, 1)];
    for (idempotent, outcome, entered) in cases {
        let store = durable_store();
        let (tool, client) = hanging(idempotent);
        let started = |update: &_| matches!(update, AgentResponseUpdate::ToolStarted { .. });
        dies_at(&client, run_in(&store), started).await;
        let done = client.get_response(&[], run_in(&store)).await.unwrap();
        assert_eq!(outcomes_of("c1", &done.messages), [outcome]);
        assert_eq!(tool.log().entries(), entered);
    }
}

#[tokio::test]
async fn i6_an_outcome_is_kept_while_nobody_polls_the_run() {
    let store = durable_store();
    let book = Arc::new(ScriptedTool::returning("book", "booked"));
    let model = ScriptedChatClient::always(Reply::calls([("c1", "book", "{}")]));
    let client = client(&model, &[&book], FunctionInvokingOptions::new());
    let input = [ChatMessage::user("book it")];
    let mut stream = client.run(&input, run_in(&store)).await.unwrap();
    let is_kept = async || {
        let entries = journal(&store).await;
        entries
            .iter()
            .any(|entry| entry.kind == JournalKind::Settled)
    };
    // Polled until the start is kept, and no further.
    let mut is_started = false;
    for _ in 0..1_000 {
        let _ = futures::poll!(stream.next());
        let entries = journal(&store).await;
        let started = |entry: &JournalEntry| entry.kind == JournalKind::Started;
        is_started = entries.iter().any(started);
        if is_started {
            break;
        }
    }
    assert!(is_started);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(book.log().entries(), 1);
    assert!(is_kept().await);
    drop(stream);
}

#[tokio::test]
async fn i6_a_question_is_kept_while_another_body_runs() {
    let store = durable_store();
    let asks = ScriptedTool::new("asks").always(Behaviour::interrupt(json!("which?"), json!(1)));
    let (asks, slow) = (Arc::new(asks), ScriptedTool::new("slow"));
    let slow = Arc::new(slow.always(Behaviour::hang()));
    let calls = Reply::calls([("c1", "slow", "{}"), ("c2", "asks", "{}")]);
    let model = ScriptedChatClient::new([calls]);
    let client = client(&model, &[&slow, &asks], FunctionInvokingOptions::new());
    let asked = |update: &_| matches!(update, AgentResponseUpdate::ToolInterrupted { .. });
    dies_at(&client, run_in(&store), asked).await;
    let waits = client.get_response(&[], run_in(&store)).await.unwrap();
    assert_eq!(waits.pending.len(), 1);
    assert_eq!(waits.pending[0].call.id(), "c2");
    assert_eq!(outcomes_of("c1", &waits.messages), [ToolOutcome::Unknown]);
    assert_eq!((slow.log().entries(), asks.log().entries()), (1, 1));
}

#[tokio::test]
async fn f1_a_batch_that_its_dropped_leg_has_counted_is_not_counted_again() {
    let store = durable_store();
    let fails = ScriptedTool::new("book").always(Behaviour::tell_model("no room"));
    let fails = Arc::new(fails);
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "book", "{}")]),
        Reply::new().hang(),
        Reply::text("there is no room"),
    ]);
    // One failed round is tolerated, a second one ends the run.
    let limits = FunctionInvokingOptions::new().with_max_failed_rounds(1);
    let client = client(&model, &[&fails], limits);
    let input = [ChatMessage::user("book it")];
    let mut stream = client.run(&input, run_in(&store)).await.unwrap();
    for _ in 0..1_000 {
        let _ = futures::poll!(stream.next());
        if model.request_count() == 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(model.request_count(), 2);
    drop(stream);
    let done = client.get_response(&[], run_in(&store)).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(done.text(), "there is no room");
    assert_eq!(fails.log().entries(), 1);
}

#[tokio::test]
async fn e2_a_yes_is_used_once_also_while_its_run_waits_for_another() {
    let store = durable_store();
    let book = Arc::new(ScriptedTool::returning("book", "booked").gated());
    let calls = Reply::calls([("c1", "book", "{}"), ("c2", "book", "{}")]);
    let model = ScriptedChatClient::new([calls]);
    let client = client(&model, &[&book], FunctionInvokingOptions::new());
    let mut conversation = vec![ChatMessage::user("book it")];
    let paused = client.get_response(&conversation, run_in(&store)).await;
    let paused = paused.unwrap();
    conversation.extend(paused.messages);
    let first = paused.pending[0].request_id().unwrap().to_owned();
    let yes = || {
        let yes = ToolApprovalResponse::approve(&first);
        run_in(&store).with_tool_approval_responses(vec![yes])
    };
    let waits = client.get_response(&conversation, yes()).await.unwrap();
    assert_eq!(waits.pending.len(), 1);
    conversation.extend(waits.messages);
    let again = client.get_response(&conversation, yes()).await.unwrap_err();
    let settled = RefusalReason::AlreadySettled;
    assert_eq!(again.code(), Some(settled.as_str()));
    let kept = store.answer(&ToolApprovalResponse::approve(&first)).await;
    assert_eq!(kept.unwrap(), AnswerOutcome::Refused(settled));
    assert_eq!(book.log().entries(), 1);
}

#[tokio::test]
async fn e2_a_late_yes_is_stale_also_where_the_run_waits_for_something_else() {
    let book = Arc::new(ScriptedTool::returning("book", "booked").gated());
    let asks = ScriptedTool::new("asks").always(Behaviour::interrupt(json!("which?"), json!(1)));
    let asks = Arc::new(asks);
    let calls = Reply::calls([("c1", "book", "{}"), ("c2", "asks", "{}")]);
    let model = ScriptedChatClient::new([calls]);
    let limits = FunctionInvokingOptions::new().with_approval_lifetime(Duration::ZERO);
    let client = client(&model, &[&book, &asks], limits);
    let mut conversation = vec![ChatMessage::user("book it")];
    let options = ChatClientRunOptions::new();
    let paused = client.get_response(&conversation, options).await.unwrap();
    let request = paused
        .pending
        .iter()
        .find_map(|pending| match &pending.waits_for {
            WaitsFor::Approval(request) => Some(request.request_id.clone()),
            _ => None,
        });
    conversation.extend(paused.messages);
    let yes = ToolApprovalResponse::approve(request.unwrap());
    let options = ChatClientRunOptions::new().with_tool_approval_responses(vec![yes]);
    let late = client
        .get_response(&conversation, options)
        .await
        .unwrap_err();
    assert_eq!(late.code(), Some(RefusalReason::Stale.as_str()));
    assert_eq!(book.log().entries(), 0);
}
