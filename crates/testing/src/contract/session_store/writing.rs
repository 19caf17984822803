//! Laws of what is written: message by message, on top of a revision, until it expires.

use futures::future::join;
use raf_core::{
    BusyPolicy, ChatMessage, PausedRun, RunId, RunRecord, SessionChange, SessionView, ToolCall,
    ToolResult, WriteOutcome, validate_history,
};
use serde_json::json;

use super::{ISessionStoreFixture, says};
use crate::contract::run_store::LIFETIME;

pub(super) async fn a_session_comes_back_message_by_message(fixture: &dyn ISessionStoreFixture) {
    let store = fixture.open().await;
    assert_eq!(store.load("s").await.unwrap(), None);
    let call = ToolCall::new("c", "weather", r#"{"z": 18446744073709551615, "a": 0.10}"#);
    let messages = [
        ChatMessage::system("be kind"),
        ChatMessage::user("\u{0} and 🦀"),
        ChatMessage::assistant_calls([call]),
        ChatMessage::tool(ToolResult::ok("c", "sunny")),
        ChatMessage::assistant("It is sunny."),
    ];
    for (base, message) in (0..).zip(&messages) {
        let change = SessionChange::messages([message.clone()]);
        let written = store.write("s", base, change).await.unwrap();
        assert_eq!(written, WriteOutcome::Written(base + 1));
    }
    let paused = PausedRun::new(RunRecord::new(RunId::from("run")));
    let change = SessionChange::default()
        .with_metadata("user", json!({"name": "Ada"}))
        .with_metadata("gone", 1)
        .with_paused_run(Some(paused.clone()));
    let written = store.write("s", 5, change).await.unwrap();
    assert_eq!(written, WriteOutcome::Written(6));
    let change = SessionChange::default().with_metadata("gone", ());
    let _ = store.write("s", 6, change).await.unwrap();
    let record = store.load("s").await.unwrap().unwrap();
    assert_eq!((record.id.as_str(), record.revision), ("s", 7));
    assert_eq!(record.messages, messages);
    let texts = |messages: &[ChatMessage]| serde_json::to_string(messages).unwrap();
    assert_eq!(texts(&record.messages), texts(&messages));
    assert_eq!(record.paused_run, Some(paused));
    let metadata = serde_json::Value::Object(record.metadata);
    assert_eq!(metadata, json!({"user": {"name": "Ada"}}));
    let _ = store
        .write("s", 7, SessionChange::default().with_paused_run(None))
        .await
        .unwrap();
    assert_eq!(store.load("s").await.unwrap().unwrap().paused_run, None);
}

pub(super) async fn i8_a_write_names_the_revision_that_it_is_based_on(
    fixture: &dyn ISessionStoreFixture,
) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    assert_eq!(
        store.write("s", 1, says("a")).await.unwrap(),
        WriteOutcome::Conflict
    );
    assert_eq!(
        store.write("s", 0, says("a")).await.unwrap(),
        WriteOutcome::Written(1)
    );
    assert_eq!(
        other.write("s", 0, says("b")).await.unwrap(),
        WriteOutcome::Conflict
    );
    assert_eq!(
        other.write("s", 1, says("b")).await.unwrap(),
        WriteOutcome::Written(2)
    );
    let record = store.load("s").await.unwrap().unwrap();
    assert_eq!(record.messages.len(), 2);
}

pub(super) async fn i8_of_two_writes_exactly_one_is_made(fixture: &dyn ISessionStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    for base in 0..200 {
        let (left, right) = join(
            store.write("s", base, says("left")),
            other.write("s", base, says("right")),
        )
        .await;
        let written = [left.unwrap(), right.unwrap()];
        let made = written
            .iter()
            .filter(|written| **written == WriteOutcome::Written(base + 1));
        assert_eq!(made.count(), 1, "base {base}: {written:?}");
    }
    assert_eq!(store.load("s").await.unwrap().unwrap().messages.len(), 200);
}

pub(super) async fn what_was_written_is_there_when_opened_again(
    fixture: &dyn ISessionStoreFixture,
) {
    let store = fixture.open().await;
    let _ = store.write("s", 0, says("a")).await.unwrap();
    let before = store.load("s").await.unwrap();
    drop(store);
    assert_eq!(fixture.open().await.load("s").await.unwrap(), before);
}

pub(super) async fn a_session_is_forgotten(fixture: &dyn ISessionStoreFixture) {
    let store = fixture.open().await;
    let _ = store.write("s", 0, says("a")).await.unwrap();
    let _ = store.write("other", 0, says("b")).await.unwrap();
    assert!(store.delete("s").await.unwrap());
    assert!(!store.delete("s").await.unwrap());
    assert_eq!(store.load("s").await.unwrap(), None);
    assert_eq!(
        store.write("s", 0, says("new")).await.unwrap(),
        WriteOutcome::Written(1)
    );
    assert_eq!(store.load("s").await.unwrap().unwrap().messages.len(), 1);
    assert!(store.load("other").await.unwrap().is_some());
}

pub(super) async fn sessions_expire_unless_they_are_leased(fixture: &dyn ISessionStoreFixture) {
    let store = fixture.open().await;
    for id in ["a", "b"] {
        let _ = store.write(id, 0, says("1")).await.unwrap();
    }
    fixture.pass(LIFETIME / 2);
    let _ = store.write("b", 1, says("2")).await.unwrap();
    fixture.pass(LIFETIME / 2);
    assert_eq!(store.load("a").await.unwrap(), None);
    assert!(store.load("b").await.unwrap().is_some());
    let _ = store.expire().await.unwrap();
    fixture.pass(LIFETIME / 2);
    let lease = store.lease("b", BusyPolicy::Refuse).await.unwrap();
    assert_eq!(store.expire().await.unwrap(), 0);
    assert!(store.load("b").await.unwrap().is_some());
    // A drop cannot wait: what comes next may be there before it.
    drop(lease);
    for _ in 0..1000 {
        let _ = store.expire().await.unwrap();
        if store.load("b").await.unwrap().is_none() {
            return;
        }
    }
    panic!("a session whose lease was dropped does not expire");
}

pub(super) async fn a_trimmed_view_never_parts_a_call_from_its_result(
    fixture: &dyn ISessionStoreFixture,
) {
    let store = fixture.open().await;
    let mut base = 0;
    for turn in 0..5 {
        let ids: Vec<String> = (0..=turn).map(|call| format!("c{turn}-{call}")).collect();
        let calls = ids.iter().map(|id| ToolCall::new(id.as_str(), "t", "{}"));
        let mut messages = vec![ChatMessage::user("go"), ChatMessage::assistant_calls(calls)];
        let results = ids
            .iter()
            .map(|id| ChatMessage::tool(ToolResult::ok(id, "x")));
        messages.extend(results);
        messages.push(ChatMessage::assistant("done"));
        for message in messages {
            let _ = store
                .write("s", base, SessionChange::messages([message]))
                .await
                .unwrap();
            base += 1;
        }
    }
    let transcript = store.load("s").await.unwrap().unwrap().transcript();
    for count in 0..transcript.len() {
        for view in [
            SessionView::LastMessages(count),
            SessionView::LastTurns(count),
        ] {
            let seen = view.of(&transcript);
            assert!(validate_history(&seen).is_ok(), "{view:?} parts a pair");
        }
    }
}

pub(super) async fn a_hundred_thousand_messages(fixture: &dyn ISessionStoreFixture) {
    let store = fixture.open().await;
    for base in 0..100 {
        let messages = (0..1_000).map(|n| ChatMessage::user(format!("{base}/{n}")));
        let change = SessionChange::messages(messages);
        let written = store.write("s", base, change).await.unwrap();
        assert_eq!(written, WriteOutcome::Written(base + 1));
    }
    let record = store.load("s").await.unwrap().unwrap();
    assert_eq!(record.messages.len(), 100_000);
    assert_eq!(record.messages[99_999].text(), "99/999");
}
