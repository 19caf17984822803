//! Runs over a durable store: what was kept is taken, nothing is lost, nothing runs twice.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage,
    ErrorKind, FinishReason, IChatClient, IRunStore, InMemoryRunStore, JournalKey, JournalKind,
    MessageRole, ResponseFold, Result, RunId, ToolApprovalResponse, ToolOutcome, UpdateStream,
    WaitsFor, validate_history,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions, RunStoreOptionsExt};
use raf_testing::{
    FaultyRunStore, Reply, ScriptedChatClient, ScriptedTool, WriteFault, transcript_lines,
};
use raf_tools::{ExecutionOptions, ToolLimits, ToolRegistry};

/// A model that says what follows from the conversation alone.
#[derive(Debug)]
struct Stateless;

#[async_trait]
impl IChatClient for Stateless {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let asked = messages
            .iter()
            .filter(|message| message.tool_calls().next().is_some());
        let reply = match asked.count() {
            0 => Reply::calls([("c1", "book", "{}"), ("c2", "look", "{}")]),
            1 => Reply::calls([("c3", "book", r#"{"n":2}"#)]),
            _ => Reply::text("done"),
        };
        ScriptedChatClient::new([reply])
            .run(messages, options)
            .await
    }
}

struct Bench {
    book: Arc<ScriptedTool>,
    look: Arc<ScriptedTool>,
    store: Arc<dyn IRunStore>,
    client: FunctionInvokingChatClient,
}

fn bench(gated: bool) -> Bench {
    bench_with(gated, true, 16)
}

fn bench_with(gated: bool, idempotent: bool, bound: usize) -> Bench {
    let execution = ExecutionOptions::new().with_max_concurrency(bound);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    let book = ScriptedTool::returning("book", "booked");
    let book = Arc::new(if gated { book.gated() } else { book });
    let look = ScriptedTool::returning("look", "seen");
    let look = Arc::new(look.with_limits(ToolLimits::new().with_idempotent(idempotent)));
    let tools = ToolRegistry::builder()
        .with_shared_tool(book.clone())
        .with_shared_tool(look.clone())
        .build()
        .unwrap();
    Bench {
        book,
        look,
        store: Arc::new(InMemoryRunStore::new().with_durable(true)),
        client: FunctionInvokingChatClient::with_options(Arc::new(Stateless), tools, options),
    }
}

impl Bench {
    fn options(&self) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&self.store))
            .with_run_id("r".into())
    }

    /// A worker goes on with the run, of which it knows the id alone.
    async fn recovered(&self) -> AgentResponse {
        self.client.get_response(&[], self.options()).await.unwrap()
    }
}

fn outcomes(messages: &[ChatMessage]) -> Vec<ToolOutcome> {
    let results = messages.iter().flat_map(ChatMessage::tool_results);
    results.map(raf_core::ToolResult::outcome).collect()
}

#[tokio::test(start_paused = true)]
async fn i6_i7_a_run_dropped_behind_any_update_is_finished_by_a_worker() {
    let input = [ChatMessage::user("book it")];
    let whole = bench(false);
    let reference = whole
        .client
        .get_response(&input, whole.options())
        .await
        .unwrap();
    let reference = transcript_lines(&reference.messages);
    let mut points = 0;
    loop {
        let bench = bench(false);
        let mut stream = bench.client.run(&input, bench.options()).await.unwrap();
        let mut seen = ResponseFold::new();
        let mut ended = false;
        // The first poll begins the run: before it there is nothing to go on with.
        for _ in 0..=points {
            let Some(update) = stream.next().await else {
                break;
            };
            let update = update.unwrap();
            ended |= matches!(update, AgentResponseUpdate::Finish { .. });
            seen.push(&update);
        }
        drop(stream);
        if ended {
            break;
        }
        points += 1;
        let done = bench.recovered().await;
        assert_eq!(done.finish_reason, FinishReason::Stop, "point {points}");
        let mut transcript = input.to_vec();
        transcript.extend(done.messages.clone());
        validate_history(&transcript).unwrap();
        // A body that was entered and has no outcome is not entered again, unless it may be.
        let entered = bench.book.log().entries();
        let unknown = outcomes(&done.messages)
            .into_iter()
            .filter(|outcome| *outcome == ToolOutcome::Unknown)
            .count();
        assert!(
            entered <= 2 && entered + unknown >= 2,
            "point {points}: {entered}"
        );
        if unknown == 0 {
            assert_eq!(
                transcript_lines(&done.messages),
                reference,
                "point {points}"
            );
        }
        // What was told of as settled is not lost.
        let told = outcomes(seen.messages());
        let kept = outcomes(&done.messages);
        assert!(told.iter().all(|outcome| outcome.is_ok()));
        assert!(kept.iter().filter(|outcome| outcome.is_ok()).count() >= told.len());
        assert!(bench.store.load(&"r".into()).await.unwrap().unwrap().closed);
    }
    assert!(points > 12, "{points} points");
}

#[tokio::test(start_paused = true)]
async fn i7_the_original_caller_is_shown_what_it_lacks_and_nothing_twice() {
    let bench = bench(false);
    let mut conversation = vec![ChatMessage::user("book it")];
    let mut stream = bench
        .client
        .run(&conversation, bench.options())
        .await
        .unwrap();
    let mut fold = ResponseFold::new();
    while fold.messages().len() < 3 {
        fold.push(&stream.next().await.unwrap().unwrap());
    }
    drop(stream);
    conversation.push(fold.messages()[0].clone());
    let done = bench
        .client
        .get_response(&conversation, bench.options())
        .await
        .unwrap();
    conversation.extend(done.messages);
    validate_history(&conversation).unwrap();
    let asked = conversation
        .iter()
        .filter(|message| message.tool_calls().next().is_some());
    assert_eq!(asked.count(), 2);
    assert_eq!(
        (bench.book.log().entries(), bench.look.log().entries()),
        (2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn e8_a_worker_acts_on_an_answer_that_the_store_kept() {
    let bench = bench(true);
    let input = [ChatMessage::user("book it")];
    let paused = bench
        .client
        .get_response(&input, bench.options())
        .await
        .unwrap();
    assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
    let WaitsFor::Approval(request) = &paused.pending[0].waits_for else {
        panic!("no approval")
    };
    let yes = ToolApprovalResponse::approve(&request.request_id);
    let kept = bench.store.answer(&yes).await.unwrap();
    assert_eq!(kept, raf_core::AnswerOutcome::Kept);
    assert_eq!(
        bench.store.list_resumable(9).await.unwrap(),
        [RunId::from("r")]
    );
    let next = bench.recovered().await;
    assert_eq!(next.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(bench.book.log().entries(), 1);
    assert!(bench.store.answers(&"r".into()).await.unwrap().is_empty());
    let mut transcript = input.to_vec();
    transcript.extend(next.messages);
    let roles: Vec<MessageRole> = transcript.iter().map(ChatMessage::role).collect();
    assert_eq!(
        roles
            .iter()
            .filter(|role| **role == MessageRole::User)
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn k12_k13_entries_hold_only_what_is_new_under_stable_names() {
    let bench = bench(false);
    let input = [ChatMessage::user("book it")];
    bench
        .client
        .get_response(&input, bench.options())
        .await
        .unwrap();
    let entries = bench
        .store
        .journal(&JournalKey::root("r".into()), 0)
        .await
        .unwrap();
    let steps: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.kind == JournalKind::Step)
        .map(|entry| entry.step.as_str())
        .collect();
    assert_eq!(
        steps,
        [
            "begin",
            "round/0/model",
            "round/0/plan",
            "round/0/batch",
            "round/1/model",
            "round/1/plan",
            "round/1/batch",
            "round/2/model",
            "end"
        ]
    );
    let settled = entries
        .iter()
        .filter(|entry| entry.kind == JournalKind::Settled);
    assert_eq!(settled.count(), 3);
    let all = serde_json::to_string(&entries).unwrap();
    assert_eq!(all.matches("book it").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_at_its_end_or_unknown_is_a_typed_error() {
    let bench = bench(false);
    let missing = bench
        .client
        .get_response(&[], bench.options())
        .await
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Misuse);
    let input = [ChatMessage::user("book it")];
    bench
        .client
        .get_response(&input, bench.options())
        .await
        .unwrap();
    let closed = bench
        .client
        .get_response(&[], bench.options())
        .await
        .unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Misuse);
}

#[tokio::test(start_paused = true)]
async fn i6_a_failed_save_leaves_the_run_open_and_a_worker_finishes_it() {
    let input = [ChatMessage::user("book it")];
    for fault in [WriteFault::Before, WriteFault::After] {
        let mut number = 0;
        loop {
            let bench = bench(false);
            let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
            faulty.fail_write(number, fault);
            let options = ChatClientRunOptions::new()
                .with_run_store(faulty.clone())
                .with_run_id("r".into());
            let failed = bench.client.get_response(&input, options).await;
            if faulty.failed() == 0 {
                assert!(failed.is_ok());
                break;
            }
            let place = format!("{fault:?} {number}");
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::Store, "{place}");
            let record = bench.store.load(&"r".into()).await.unwrap();
            // Nothing was begun, or the last write was made although it was said to have failed.
            if let Some(record) = record.filter(|record| !record.closed) {
                assert!(record.working, "{place}");
                let done = bench.recovered().await;
                assert_eq!(done.finish_reason, FinishReason::Stop, "{place}");
                let mut transcript = input.to_vec();
                transcript.extend(done.messages);
                validate_history(&transcript).unwrap();
                assert!(
                    !outcomes(&transcript).contains(&ToolOutcome::Cancelled { started: false })
                );
            }
            assert!(bench.book.log().entries() <= 2, "{place}");
            number += 1;
        }
        assert!(number > 8, "{number} writes");
    }
}

#[tokio::test(start_paused = true)]
async fn i6_i7_what_a_failed_save_left_in_hand_is_saved_first_and_no_body_runs_again() {
    let input = [ChatMessage::user("book it")];
    let cases = [1, 16].map(|bound| [(bound, WriteFault::Before), (bound, WriteFault::After)]);
    for (bound, fault) in cases.into_iter().flatten() {
        let mut number = 0;
        loop {
            let bench = bench_with(false, false, bound);
            let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
            faulty.fail_write(number, fault);
            let options = ChatClientRunOptions::new()
                .with_run_store(faulty.clone())
                .with_run_id("r".into());
            let first = bench.client.get_response(&input, options.clone()).await;
            if faulty.failed() == 0 {
                assert!(first.is_ok());
                break;
            }
            let place = format!("{fault:?} {number}, {bound} at once");
            let record = bench.store.load(&"r".into()).await.unwrap();
            if record.is_none_or(|record| !record.closed) {
                let done = bench.client.clone().get_response(&input, options).await;
                let outcomes = outcomes(&done.unwrap().messages);
                assert_eq!(outcomes, [ToolOutcome::Ok; 3], "{place}");
            }
            let entered = (bench.book.log().entries(), bench.look.log().entries());
            assert_eq!(entered, (2, 1), "{place}");
            number += 1;
        }
        assert!(number > 8, "{number} writes");
    }
}
