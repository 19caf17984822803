//! What a reply comes to as updates.

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate as Update, Cancellation, Error, ErrorKind, Finish, FinishReason,
    MessageStatus, Result, ToolCall, ToolCallHead, Usage, collect, emit_stream,
};

use super::{Reply, play};

async fn items(reply: Reply) -> Vec<Result<Update>> {
    emit_stream(|out| play(reply, Cancellation::new(), out))
        .collect()
        .await
}

async fn updates(reply: Reply) -> Vec<Update> {
    let items = items(reply).await.into_iter();
    items.map(|item| item.unwrap()).collect()
}

fn finish(reason: FinishReason) -> Update {
    Update::finish(Finish::new(reason))
}

fn start(position: u32, id: &str) -> Update {
    let call = Box::new(ToolCallHead::new(id, "t"));
    Update::ToolCallStart { position, call }
}

fn arguments(position: u32, delta: &str) -> Update {
    let delta = delta.to_owned();
    Update::ToolCallArgs { position, delta }
}

fn end(position: u32, id: &str, arguments: &str) -> Update {
    let call = ToolCall::new(id, "t", arguments);
    Update::ToolCallEnd { position, call }
}

#[tokio::test]
async fn text_is_framed() {
    let expected = vec![
        Update::assistant_start(),
        Update::text("a"),
        Update::message_end(),
        finish(FinishReason::Stop),
    ];
    assert_eq!(updates(Reply::text("a")).await, expected);
}

#[tokio::test]
async fn usage_at_the_end_follows_the_message_and_stands_on_the_finish() {
    let usage = Usage::new(5, 2);
    let expected = vec![
        Update::assistant_start(),
        Update::usage(Usage::new(5, 1)),
        Update::text("a"),
        Update::message_end(),
        Update::usage(usage.clone()),
        Update::finish(Finish::new(FinishReason::Stop).with_usage(usage)),
    ];
    let reply = Reply::text("").usage(5, 1).then_text("a").usage(5, 2);
    let mut all = updates(reply).await;
    assert_eq!(all.remove(1), Update::text(""));
    assert_eq!(all, expected);
}

#[tokio::test]
async fn calls_end_with_tool_calls_unless_a_reason_is_given() {
    let reply = Reply::calls([("c1", "t", "{}")]);
    let expected = vec![
        Update::assistant_start(),
        start(0, "c1"),
        arguments(0, "{}"),
        end(0, "c1", "{}"),
        Update::message_end(),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(updates(reply.clone()).await, expected);
    let cut = updates(reply.length()).await;
    let status = MessageStatus::Incomplete;
    assert_eq!(cut[4], Update::MessageEnd { status });
    assert_eq!(cut[5], finish(FinishReason::Length));
}

#[tokio::test]
async fn interleaved_calls_take_turns() {
    let reply =
        Reply::new().interleaved_calls([("c1", "t", vec!["{", "}"]), ("c2", "t", vec!["{}"])]);
    let expected = vec![
        Update::assistant_start(),
        start(0, "c1"),
        start(1, "c2"),
        arguments(0, "{"),
        arguments(1, "{}"),
        arguments(0, "}"),
        end(0, "c1", "{}"),
        end(1, "c2", "{}"),
        Update::message_end(),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(updates(reply).await, expected);
}

#[tokio::test]
async fn pieces_split_between_characters() {
    let all = updates(Reply::text("aüb").call("c", "t", "{}").in_pieces_of(2)).await;
    assert_eq!(all[1], Update::text("aü"));
    assert_eq!(all[2], Update::text("b"));
    assert_eq!(all[4], arguments(0, "{}"));
}

#[tokio::test]
async fn an_empty_reply_is_an_empty_message() {
    let expected = vec![
        Update::assistant_start(),
        Update::message_end(),
        finish(FinishReason::Stop),
    ];
    assert_eq!(updates(Reply::new()).await, expected);
}

#[tokio::test]
async fn an_error_is_the_last_item_and_an_early_one_the_only_one() {
    let error = || Error::new(ErrorKind::Server, "down");
    let late = items(Reply::text("a").error(error()).then_text("b")).await;
    assert_eq!(late.len(), 3);
    assert!(late[2].is_err());
    let early = items(Reply::new().error(error())).await;
    assert_eq!(early.len(), 1);
}

#[tokio::test]
async fn a_cut_reply_has_no_terminal_item() {
    let all = updates(Reply::text("a").open_call("c", "t", "{\"x").cut()).await;
    assert_eq!(all.last(), Some(&arguments(0, "{\"x")));
}

#[tokio::test]
async fn raw_updates_are_not_framed() {
    let all = updates(Reply::raw([Update::text("a")])).await;
    assert_eq!(all, [Update::text("a")]);
}

#[tokio::test]
async fn a_second_attempt_starts_over() {
    let reply = Reply::text("Let me ")
        .call("c1", "t", "{}")
        .attempt_reset("lost")
        .then_text("Done.");
    let stream = emit_stream(|out| play(reply, Cancellation::new(), out));
    let response = collect(stream).await.unwrap();
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.messages.len(), 1);
    assert_eq!(response.text(), "Done.");
}

#[tokio::test]
async fn an_incomplete_call_says_so() {
    let all = updates(Reply::new().incomplete_call("c", "t", "{\"x").length()).await;
    let Update::ToolCallEnd { call, .. } = &all[3] else {
        panic!("{all:?}")
    };
    assert!(!call.is_complete());
}
