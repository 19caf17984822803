//! What a host of steps is trusted with: what it holds decides, what it cannot read stops a leg, and
//! nothing is written behind a write that failed.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

mod durable_run;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage, ClaimOutcome,
    DurableStepHost, Error, ErrorKind, FinishReason, IChatClient, IRunStore, IStepHost,
    JournalEntry, JournalKey, JournalKind, RetryStatus, RunClaim, RunId, RunRecord, Step,
    ToolOutcome, WriteOutcome,
};
use raf_framework::{FunctionInvokingOptions, HookBatch, HookDecision, IRunHook};
use raf_testing::{
    Behaviour, FaultyRunStore, ReplayHost, Reply, ScriptedChatClient, ScriptedTool, WriteFault,
};
use raf_tools::{ExecutionMode, ExecutionOptions};
use serde_json::{Value, json};

use crate::durable_run::{client, durable_store, journal, outcomes_of, run_in};

fn hosted(host: &ReplayHost) -> ChatClientRunOptions {
    ChatClientRunOptions::new().with_step_host(Arc::new(host.clone()))
}

/// Puts an entry at the end of the run's journal, as another process would.
async fn append(store: &Arc<dyn IRunStore>, kind: JournalKind, value: Value) {
    let claim = RunClaim::new();
    let held = store.claim(&"r".into(), &claim).await.unwrap();
    assert!(matches!(held, ClaimOutcome::Claimed(_)));
    let length = journal(store).await.len() as u64;
    let entries = [JournalEntry::new(9, "round/0/batch", kind, value)];
    let key = JournalKey::root("r".into());
    let written = store.append(&key, &claim, length, &entries, None).await;
    assert!(matches!(written.unwrap(), WriteOutcome::Written(_)));
    store.release(&"r".into(), &claim).await.unwrap();
}

#[tokio::test]
async fn k13_what_a_later_version_wrote_stops_the_leg_and_nothing_runs() {
    let step = json!({"format": 99, "decided": "go_on"});
    let outcome = json!({"is": "ended", "position": 1, "value": {"format": 99, "position": 1}});
    for (kind, value) in [(JournalKind::Step, step), (JournalKind::Settled, outcome)] {
        let store = durable_store();
        let book = Arc::new(ScriptedTool::returning("book", "booked"));
        let model = ScriptedChatClient::always(Reply::calls([("c1", "book", "{}")]));
        let client = client(&model, &[&book], FunctionInvokingOptions::new());
        let input = [ChatMessage::user("book it")];
        let mut stream = client.run(&input, run_in(&store)).await.unwrap();
        while let Some(update) = stream.next().await {
            if matches!(update.unwrap(), AgentResponseUpdate::ToolStarted { .. }) {
                break;
            }
        }
        drop(stream);
        append(&store, kind, value).await;
        let (entered, asked) = (book.log().entries(), model.request_count());
        let refused = client.get_response(&[], run_in(&store)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Store);
        assert_eq!(refused.code(), Some("later_format"));
        assert_eq!(
            (book.log().entries(), model.request_count()),
            (entered, asked)
        );
        let record = store.load(&"r".into()).await.unwrap().unwrap();
        assert!(!record.closed, "a later version goes on with it");
    }
}

#[tokio::test]
async fn k9_a_leg_that_is_taken_up_is_steered_by_the_limits_that_it_began_with() {
    let book = Arc::new(ScriptedTool::returning("book", "booked"));
    let model = ScriptedChatClient::always(Reply::from_fn(|request| {
        let place = request.lines().len().to_string();
        Reply::new().call("c1", "book", &format!(r#"{{"n": {place}}}"#))
    }));
    let options = |rounds| {
        FunctionInvokingOptions::new()
            .with_max_rounds(rounds)
            .with_wrap_up(false)
    };
    let host = ReplayHost::new();
    let input = [ChatMessage::user("book it")];
    let began = client(&model, &[&book], options(2));
    let whole = began.get_response(&input, hosted(&host)).await.unwrap();
    assert_eq!(whole.finish_reason, FinishReason::MaxRounds);
    assert_eq!(model.request_count(), 2);

    let changed = client(&model, &[&book], options(5));
    let again = host.taken_up_behind(1);
    let taken_up = changed.get_response(&input, hosted(&again)).await.unwrap();
    assert_eq!(taken_up.finish_reason, FinishReason::MaxRounds);
    assert_eq!(model.request_count(), 4, "two requests, as it began with");
    assert_eq!(again.names(), host.names());
}

/// The most bodies that ran at once in a leg that is taken up behind its beginning.
async fn most_at_once(began: ExecutionOptions, taken_up: ExecutionOptions) -> usize {
    let book = ScriptedTool::new("book");
    let book = book.always(Behaviour::text("booked").after_sleep(Duration::from_secs(1)));
    let book = Arc::new(book);
    let model = ScriptedChatClient::always(Reply::from_fn(|request| {
        if request.lines().iter().any(|line| line.starts_with("R(")) {
            return Reply::text("done");
        }
        Reply::calls(["c1", "c2", "c3", "c4"].map(|id| (id, "book", "{}")))
    }));
    let options = |execution| FunctionInvokingOptions::new().with_execution(execution);
    let input = [ChatMessage::user("book it")];
    let host = ReplayHost::new().stopping_behind(1);
    let first = client(&model, &[&book], options(began));
    let mut stream = first.run(&input, hosted(&host)).await.unwrap();
    let stopped = host.stopped();
    let dies = tokio::select! {
        biased;
        _ = stream.next() => false,
        () = stopped.wait() => true,
    };
    assert!(dies);
    drop(stream);
    let again = host.taken_up_behind(1);
    let second = client(&model, &[&book], options(taken_up));
    let done = second.get_response(&input, hosted(&again)).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(book.log().entries(), 4);
    book.log().max_concurrent()
}

#[tokio::test(start_paused = true)]
async fn k9_a_leg_that_is_taken_up_keeps_its_mode_and_its_bound() {
    let parallel = ExecutionOptions::new;
    let sequential = || ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
    let two = || ExecutionOptions::new().with_max_concurrency(2);
    assert_eq!(most_at_once(sequential(), parallel()).await, 1);
    assert_eq!(most_at_once(parallel(), sequential()).await, 4);
    assert_eq!(most_at_once(two(), parallel()).await, 2);
    assert_eq!(most_at_once(parallel(), two()).await, 4);
}

#[tokio::test]
async fn m_the_journal_of_a_failed_run_has_its_message_and_not_its_source() {
    let store = durable_store();
    let error = Error::new(ErrorKind::Transport, "the provider failed")
        .with_source(std::io::Error::other("Authorization: Bearer sk-secret"));
    let model = ScriptedChatClient::always(Reply::error_at_start(error));
    let client = client(&model, &[], FunctionInvokingOptions::new());
    let input = [ChatMessage::user("hello")];
    let failed = client
        .get_response(&input, run_in(&store))
        .await
        .unwrap_err();
    assert!(std::error::Error::source(&failed).is_some());
    let record = store.load(&"r".into()).await.unwrap().unwrap();
    assert!(record.closed);
    let kept = serde_json::to_string(&journal(&store).await).unwrap();
    assert!(kept.contains("the provider failed"), "{kept}");
    assert!(!kept.contains("sk-secret"), "{kept}");
    assert!(!record.to_json().unwrap().contains("sk-secret"));
}

#[tokio::test]
async fn k8_a_request_that_failed_fails_the_same_way_where_its_value_is_known() {
    let error = Error::new(ErrorKind::RateLimit, "too many requests")
        .with_retry_after(Some(Duration::from_millis(1_500)))
        .with_retry(RetryStatus::Persistent)
        .with_status(429)
        .with_code("slow_down")
        .with_request_id("req_1")
        .with_context("model", "large");
    let model = ScriptedChatClient::new([Reply::error_at_start(error.clone())]);
    let client = client(&model, &[], FunctionInvokingOptions::new());
    let input = [ChatMessage::user("hello")];
    let host = ReplayHost::new();
    let live = client.get_response(&input, hosted(&host)).await;
    assert_eq!(live.unwrap_err().context(), error.context());
    let request = host.names().iter().position(|name| name == "round/0/model");
    let again = host.taken_up_behind(request.unwrap() + 1);
    let known = client.get_response(&input, hosted(&again)).await;
    let known = known.unwrap_err();
    assert_eq!(model.request_count(), 1);
    assert_eq!(known.kind(), ErrorKind::RateLimit);
    assert_eq!(known.to_string(), error.to_string());
    assert_eq!(known.context(), error.context());
    assert_eq!(known.retry_status(), RetryStatus::Persistent);
    assert_eq!(known.retry_after(), Some(Duration::from_millis(1_500)));
    assert_eq!(known.status(), Some(429));
    assert_eq!(known.code(), Some("slow_down"));
    assert_eq!(known.request_id(), Some("req_1"));
}

#[tokio::test]
async fn i6_behind_a_write_that_failed_nothing_is_written() {
    let faults = [
        WriteFault::Before,
        WriteFault::After,
        WriteFault::HangBefore,
        WriteFault::HangAfter,
    ];
    for fault in faults {
        let store = durable_store();
        let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&store)));
        let host = DurableStepHost::new(faulty.clone(), RunClaim::new());
        let key = JournalKey::root("r".into());
        host.resume_at(key, 0, 0, 0).await;
        let step = async |name: &str, revision: u64| {
            let mut record = RunRecord::new(RunId::from("r"));
            record.revision = revision;
            let value = json!({"format": 1, "decided": name, "record": record});
            let step = Step::new("r".into(), name);
            host.step(&step, Box::pin(async { Ok(value) })).await
        };
        step("begin", 0).await.unwrap();
        faulty.fail_write(1, fault);
        if matches!(fault, WriteFault::HangBefore | WriteFault::HangAfter) {
            // Its consumer gives it up part-way: nobody knows whether it was made.
            let dropped = step("round/0/before", 1).now_or_never();
            assert!(dropped.is_none(), "{fault:?}");
            assert!(faulty.hangs().is_open(), "{fault:?}");
        }
        for name in ["round/0/before", "round/0/model", "end"] {
            let failed = step(name, 1).await.unwrap_err();
            assert_eq!(failed.kind(), ErrorKind::Store, "{name}");
        }
        let written: Vec<String> = journal(&store)
            .await
            .into_iter()
            .map(|entry| entry.step)
            .collect();
        let expected: &[&str] = match fault {
            WriteFault::Before | WriteFault::HangBefore => &["begin"],
            WriteFault::After | WriteFault::HangAfter => &["begin", "round/0/before"],
        };
        assert_eq!(written, expected, "{fault:?}");
    }
}

/// Vetoes the second call of a reply, and counts how often it is asked.
#[derive(Clone, Debug, Default)]
struct OneAtATime(Arc<AtomicUsize>);

#[async_trait]
impl IRunHook for OneAtATime {
    async fn before_batch(&self, batch: &mut HookBatch) -> HookDecision {
        self.0.fetch_add(1, Ordering::SeqCst);
        batch.veto(1, "one at a time");
        HookDecision::GoOn
    }
}

#[tokio::test]
async fn k8_what_a_hook_vetoed_stays_vetoed_and_it_is_not_asked_again() {
    let store = durable_store();
    let tools = ["look", "book"].map(|name| Arc::new(ScriptedTool::returning(name, "x")));
    let [look, book] = &tools;
    let hook = OneAtATime::default();
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "look", "{}"), ("c2", "book", "{}")]),
        Reply::text("done"),
    ]);
    // In order, so that the vetoed call has not come to its outcome when the process dies.
    let execution = ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
    let options = FunctionInvokingOptions::new()
        .with_hook(hook.clone())
        .with_execution(execution);
    let client = client(&model, &[look, book], options);
    let input = [ChatMessage::user("book it")];
    let mut stream = client.run(&input, run_in(&store)).await.unwrap();
    while let Some(update) = stream.next().await {
        if matches!(update.unwrap(), AgentResponseUpdate::ToolStarted { .. }) {
            break;
        }
    }
    drop(stream);
    let done = client.get_response(&[], run_in(&store)).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(outcomes_of("c2", &done.messages), [ToolOutcome::Denied]);
    assert_eq!(book.log().entries(), 0);
    assert_eq!(hook.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn k8_behind_a_plan_that_is_known_its_vetoes_hold_and_no_hook_is_asked() {
    let tools = ["look", "book"].map(|name| Arc::new(ScriptedTool::returning(name, "x")));
    let [look, book] = &tools;
    let hook = OneAtATime::default();
    let model = ScriptedChatClient::always(Reply::from_fn(|request| {
        if request.lines().iter().any(|line| line.starts_with("R(")) {
            return Reply::text("done");
        }
        Reply::calls([("c1", "look", "{}"), ("c2", "book", "{}")])
    }));
    let options = FunctionInvokingOptions::new().with_hook(hook.clone());
    let client = client(&model, &[look, book], options);
    let input = [ChatMessage::user("book it")];
    let host = ReplayHost::new();
    client.get_response(&input, hosted(&host)).await.unwrap();
    assert_eq!(hook.0.load(Ordering::SeqCst), 1);
    let plan = host.names().iter().position(|name| name == "round/0/plan");
    let again = host.taken_up_behind(plan.unwrap() + 1);
    let done = client.get_response(&input, hosted(&again)).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(outcomes_of("c1", &done.messages), [ToolOutcome::Ok]);
    assert_eq!(outcomes_of("c2", &done.messages), [ToolOutcome::Denied]);
    assert_eq!(book.log().entries(), 0);
    assert_eq!(hook.0.load(Ordering::SeqCst), 1, "its word is in the plan");
}

#[tokio::test]
async fn i6_a_request_that_was_announced_is_in_the_store() {
    let input = [ChatMessage::user("book it")];
    let mut failed = 0;
    for number in 0.. {
        let store = durable_store();
        let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&store)));
        faulty.fail_write(number, WriteFault::Before);
        let book = Arc::new(ScriptedTool::returning("book", "booked").gated());
        let model = ScriptedChatClient::always(Reply::calls([("c1", "book", "{}")]));
        let client = client(&model, &[&book], FunctionInvokingOptions::new());
        let shared: Arc<dyn IRunStore> = faulty.clone();
        let mut stream = client.run(&input, run_in(&shared)).await.unwrap();
        let mut announced = 0;
        while let Some(update) = stream.next().await {
            if let Ok(AgentResponseUpdate::ToolApprovalRequest { request }) = update {
                announced += 1;
                let found = store.find_request(&request.request_id).await.unwrap();
                assert_eq!(found, Some("r".into()), "write {number}");
            }
        }
        if faulty.failed() == 0 {
            assert_eq!(announced, 1);
            break;
        }
        failed += 1;
    }
    assert!(failed > 1, "{failed} writes");
}
