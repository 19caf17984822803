//! Laws of a layer's stream: lazy, in step, dropped at once, one end.

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, CancellationToken, ChatClientRunOptions, ChatMessage, Error, ErrorKind,
    Result, UpdateStream, collect,
};

use super::{Subject, question, read};
use crate::contract::assert_no_task_is_left;
use crate::invariants::{assert_holds, check_reply_updates};
use crate::{Latch, Reply, ScriptedChatClient, poll_n};

async fn stream(subject: &Subject, inner: &ScriptedChatClient) -> UpdateStream {
    let layer = subject.around(inner);
    let stream = layer.run(&question(), ChatClientRunOptions::new()).await;
    stream.expect("a good request is not refused")
}

fn text_of(item: Option<Result<AgentResponseUpdate>>) -> Option<String> {
    match item {
        Some(Ok(AgentResponseUpdate::TextDelta { text })) => Some(text),
        Some(Ok(_)) => None,
        other => panic!("the stream gave {other:?} instead of the text"),
    }
}

async fn next_text(stream: &mut UpdateStream) -> String {
    loop {
        if let Some(text) = text_of(stream.next().await) {
            return text;
        }
    }
}

/// An update is out before the inner stream has ended.
pub async fn updates_come_before_the_inner_stream_ends(subject: &Subject) {
    let latch = Latch::new();
    let inner = ScriptedChatClient::new([Reply::text("early").gate(&latch).then_text("late")]);
    let mut stream = stream(subject, &inner).await;
    assert_eq!(next_text(&mut stream).await, "early");
    assert_eq!(inner.probe().ended(), 0);
    latch.open();
    assert_eq!(next_text(&mut stream).await, "late");
}

/// Making the stream sends nothing.
pub async fn nothing_is_sent_before_the_first_poll(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("answer")]);
    let stream = stream(subject, &inner).await;
    tokio::task::yield_now().await;
    assert_eq!(inner.probe().opened(), 0, "sent before the first poll");
    drop(stream);
    assert_eq!(inner.probe().opened(), 0);
    assert_no_task_is_left().await;
}

/// The layer does not read ahead of its consumer.
pub async fn at_most_one_item_ahead(subject: &Subject) {
    let pieces: Vec<String> = (0..20).map(|piece| format!("piece {piece};")).collect();
    let inner = ScriptedChatClient::new([Reply::text_pieces(pieces.clone())]);
    let mut stream = stream(subject, &inner).await;
    // The inner stream's items: the message's start, then the pieces.
    for (needed, piece) in (2..).zip(&pieces) {
        assert_eq!(next_text(&mut stream).await, *piece);
        let pulled = inner.probe().items();
        assert!(
            pulled <= needed + 1,
            "{pulled} items pulled when {needed} were needed"
        );
    }
}

/// Wherever the layer stands, its inner stream goes with it, and so do its tasks.
pub async fn dropping_the_stream_drops_the_inner_stream(subject: &Subject) {
    for polls in 0..20 {
        let inner = ScriptedChatClient::new([Reply::text_pieces(["a", "b"]).hang()]);
        let mut stream = stream(subject, &inner).await;
        tokio::select! {
            biased;
            () = tokio::time::sleep(std::time::Duration::from_secs(1)) => return,
            _ = poll_n(&mut stream, polls) => {}
        }
        drop(stream);
        assert_eq!(inner.probe().live(), 0, "dropped after {polls} polls");
        assert_no_task_is_left().await;
    }
}

/// A token that was given to the layer stops a model that waits for it.
pub async fn cancellation_reaches_the_inner_stream(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("a").hang_until_cancelled()]);
    let token = CancellationToken::new();
    let options = ChatClientRunOptions::new().with_cancellation(token.clone());
    let stream = subject.around(&inner).run(&question(), options).await;
    let mut stream = stream.expect("a good request is not refused");
    next_text(&mut stream).await;
    token.cancel();
    let error = collect(stream)
        .await
        .expect_err("a cancelled run is no success");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(inner.probe().live(), 0);
}

/// The inner stream's error is the last item, and says what it said.
pub async fn an_error_keeps_kind_and_source_and_is_last(subject: &Subject) {
    let error = Error::new(ErrorKind::Permission, "not allowed")
        .with_status(403)
        .with_code("forbidden")
        .with_source(std::fmt::Error);
    let inner = ScriptedChatClient::new([Reply::text("a").error(error)]);
    let read = read(stream(subject, &inner).await).await;
    let Some(Err(error)) = read.items.last() else {
        panic!("the last item is {:?}", read.items.last())
    };
    assert_eq!(error.kind(), ErrorKind::Permission);
    assert_eq!(error.status(), Some(403));
    assert_eq!(error.code(), Some("forbidden"));
    let mut source = std::error::Error::source(error);
    while let Some(below) = source {
        if below.is::<std::fmt::Error>() {
            return;
        }
        source = below.source();
    }
    panic!("the error's source is lost: {error:?}");
}

/// A stream that ends without its terminal item is no success above either.
pub async fn a_cut_stream_does_not_become_a_finish(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("a").cut()]);
    let response = collect(stream(subject, &inner).await).await;
    assert!(response.is_err(), "a cut stream became {response:?}");
}

/// One terminal item, last, and the messages in order, for a reply and for a failure.
pub async fn exactly_one_terminal_item(subject: &Subject) {
    let failing = Reply::text("a").error(Error::new(ErrorKind::Permission, "no"));
    for reply in [Reply::text("a").usage(1, 1), failing] {
        let inner = ScriptedChatClient::new([reply]);
        let read = read(stream(subject, &inner).await).await;
        assert_holds(check_reply_updates(&read.items));
    }
}

/// After `None` comes `None`.
pub async fn none_after_the_end_for_ever(subject: &Subject) {
    let failing = Reply::text("a").error(Error::new(ErrorKind::Permission, "no"));
    for reply in [Reply::text("a"), failing] {
        let inner = ScriptedChatClient::new([reply]);
        let mut stream = stream(subject, &inner).await;
        while stream.next().await.is_some() {}
        for _ in 0..3 {
            assert!(stream.next().await.is_none(), "an item after the end");
        }
    }
}

/// Runs at the same time each get their own answer.
pub async fn concurrent_runs_do_not_mix(subject: &Subject) {
    let inner = ScriptedChatClient::always(Reply::from_fn(|request| {
        Reply::text(request.user_text()).in_pieces_of(2)
    }));
    let layer = subject.around(&inner);
    let runs = (0..8).map(|run| {
        let layer = &layer;
        async move {
            let question = format!("the question of run {run}");
            let messages = [ChatMessage::user(&question)];
            let stream = layer.run(&messages, ChatClientRunOptions::new()).await?;
            let mut said = String::new();
            let mut stream = stream;
            while let Some(item) = stream.next().await {
                if let AgentResponseUpdate::TextDelta { text } = item? {
                    said.push_str(&text);
                }
                tokio::task::yield_now().await;
            }
            assert_eq!(said, question);
            Result::<()>::Ok(())
        }
    });
    for result in futures::future::join_all(runs).await {
        result.expect("each run succeeds");
    }
}
