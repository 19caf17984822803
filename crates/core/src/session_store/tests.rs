//! The in-memory session store: one writer, turns in order, versions, expiry, bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{FutureExt, future::join_all};

use super::{ISessionStore, InMemorySessionStore};
use crate::{
    BusyPolicy, ChatMessage, ErrorKind, MessageRole, Occurrence, SessionChange, SessionRecord,
    ToolCall, ToolOutcome, ToolResult, WriteOutcome,
};

fn says(text: &str) -> SessionChange {
    SessionChange::messages([ChatMessage::user(text)])
}

#[tokio::test]
async fn one_writes_and_the_others_wait_in_order_or_are_refused() {
    let store = InMemorySessionStore::new();
    let first = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    let refused = store.lease("s", BusyPolicy::Refuse).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BusySession);
    assert!(store.lease("other", BusyPolicy::Refuse).await.is_ok());
    let mut second = store.lease("s", BusyPolicy::Queue);
    let mut third = store.lease("s", BusyPolicy::Queue);
    let mut gone = store.lease("s", BusyPolicy::Queue);
    let mut fourth = store.lease("s", BusyPolicy::Queue);
    for waits in [&mut second, &mut third, &mut gone, &mut fourth] {
        assert!(waits.as_mut().now_or_never().is_none());
    }
    drop(gone);
    drop(first);
    assert!(third.as_mut().now_or_never().is_none());
    drop(second.await.unwrap());
    drop(third.await.unwrap());
    drop(fourth.await.unwrap());
    assert!(store.lease("s", BusyPolicy::Refuse).await.is_ok());
}

#[tokio::test]
async fn a_turn_that_nobody_takes_goes_to_the_next() {
    let store = InMemorySessionStore::new();
    let first = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    let mut dropped = store.lease("s", BusyPolicy::Queue);
    let mut next = store.lease("s", BusyPolicy::Queue);
    assert!(dropped.as_mut().now_or_never().is_none());
    assert!(next.as_mut().now_or_never().is_none());
    drop(first);
    // It has the lease by now, and goes away without looking.
    drop(dropped);
    assert!(next.now_or_never().is_some_and(|lease| lease.is_ok()));
}

#[tokio::test]
async fn a_write_names_the_revision_that_it_is_based_on() {
    let store = InMemorySessionStore::new();
    assert_eq!(store.load("s").await.unwrap(), None);
    assert_eq!(
        store.write("s", 0, says("a")).await.unwrap(),
        WriteOutcome::Written(1)
    );
    assert_eq!(
        store.write("s", 0, says("b")).await.unwrap(),
        WriteOutcome::Conflict
    );
    let change = says("b")
        .with_metadata("user", "Ada")
        .with_metadata("gone", ());
    assert_eq!(
        store.write("s", 1, change).await.unwrap(),
        WriteOutcome::Written(2)
    );
    let record = store.load("s").await.unwrap().unwrap();
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<SessionRecord>(&json).unwrap(),
        record
    );
    assert_eq!((record.messages.len(), record.revision), (2, 2));
    assert_eq!(
        serde_json::Value::Object(record.metadata),
        serde_json::json!({"user": "Ada"})
    );
    assert!(store.delete("s").await.unwrap());
    assert!(!store.delete("s").await.unwrap());
}

#[tokio::test]
async fn sessions_expire_and_give_way_unless_they_are_leased() {
    let now = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now);
    let store = InMemorySessionStore::new()
        .with_max_sessions(2)
        .with_lifetime(Duration::from_secs(10))
        .with_clock(move || Duration::from_secs(clock.load(Ordering::SeqCst)));
    let _ = store.write("a", 0, says("1")).await.unwrap();
    now.store(1, Ordering::SeqCst);
    let _ = store.write("b", 0, says("1")).await.unwrap();
    let lease = store.lease("a", BusyPolicy::Refuse).await.unwrap();
    now.store(2, Ordering::SeqCst);
    let _ = store.write("c", 0, says("1")).await.unwrap();
    let kept = join_all(["a", "b", "c"].map(|id| store.load(id))).await;
    let kept: Vec<bool> = kept
        .into_iter()
        .map(|kept| kept.unwrap().is_some())
        .collect();
    assert_eq!(kept, [true, false, true]);
    now.store(100, Ordering::SeqCst);
    assert_eq!(store.expire().await.unwrap(), 1);
    drop(lease);
    assert_eq!(store.expire().await.unwrap(), 1);
    assert!(store.is_empty());
}

#[test]
fn a_transcript_has_results_in_call_order_and_a_history_is_balanced() {
    let result = |id: &str, position| {
        let result = ToolResult::builder(id, ToolOutcome::Ok).text(id);
        ChatMessage::tool(result.occurrence(Occurrence::new(0, position)).build())
    };
    let calls = ["a", "b", "c"].map(|id| ToolCall::new(id, "t", "{}"));
    let mut record = SessionRecord::new("s");
    record.apply(SessionChange::messages([
        ChatMessage::user("go"),
        ChatMessage::assistant_calls(calls),
        result("c", 2),
        result("a", 0),
    ]));
    let texts = |messages: &[ChatMessage]| -> Vec<String> {
        let results = messages
            .iter()
            .filter(|message| message.role() == MessageRole::Tool);
        results
            .flat_map(ChatMessage::tool_results)
            .map(|result| result.call_id().to_owned())
            .collect()
    };
    assert_eq!(texts(&record.transcript()), ["a", "c"]);
    assert_eq!(texts(&record.history()), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_lifetime_without_end_is_no_overflow() {
    let store = InMemorySessionStore::new().with_lifetime(Duration::MAX);
    let written = store.write("s", 0, says("a")).await.unwrap();
    assert_eq!(written, WriteOutcome::Written(1));
    assert_eq!(store.expire().await.unwrap(), 0);
    assert!(store.load("s").await.unwrap().is_some());
}
