//! A durable store that does not answer: it holds up nobody who wants the run to stop, and what was going on
//! when it was given up is taken up later.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponse, CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage, Error,
    ErrorKind, FinishReason, IChatClient, IRunStore, InMemoryRunStore, Result, RetryStatus,
    ToolApprovalResponse, ToolOutcome, ToolResult, UpdateStream, validate_history,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions, RunStoreOptionsExt};
use raf_testing::{Behaviour, FaultyRunStore, Reply, ScriptedChatClient, ScriptedTool, WriteFault};
use raf_tools::{ExecutionOptions, ToolRegistry};
use tokio::time::Instant;

const GRACE: Duration = Duration::from_secs(2);
/// How long a batch leaves a body that blocks its thread, beyond its grace.
const BACKSTOP: Duration = Duration::from_millis(250);
/// Longer than anything here takes on the paused clock.
const HELD_UP: Duration = Duration::from_hours(1);
const HANGS: [WriteFault; 2] = [WriteFault::HangBefore, WriteFault::HangAfter];

/// A loop whose model books twice at once, then once more, then answers. No body may run again.
struct Bench {
    book: Arc<ScriptedTool>,
    store: Arc<dyn IRunStore>,
    /// The one that hangs; what is in hand is found by it.
    faulty: Arc<FaultyRunStore>,
    client: FunctionInvokingChatClient,
}

impl Bench {
    fn new(gated: bool, number: u64, fault: WriteFault) -> Self {
        let store: Arc<dyn IRunStore> = Arc::new(InMemoryRunStore::new().with_durable(true));
        let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&store)));
        faulty.fail_write(number, fault);
        let book = ScriptedTool::new("book").always(Behaviour::text("booked"));
        let book = Arc::new(if gated { book.gated() } else { book });
        let client = client(&book);
        Self {
            book,
            store,
            faulty,
            client,
        }
    }

    fn options(&self) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&self.faulty) as _)
            .with_run_id("r".into())
    }

    /// Begins the run, or goes on with it if it is there.
    async fn run(&self, options: ChatClientRunOptions) -> Result<UpdateStream> {
        let is_there = self.store.load(&"r".into()).await?.is_some();
        let input = [ChatMessage::user("book it")];
        let input = if is_there { &[][..] } else { &input };
        self.client.run(input, options).await
    }

    /// Plays a leg until it ends by itself, or a write hangs: then the token is cancelled, and it ends of that.
    async fn cancelled_when_it_hangs(
        &self,
        options: ChatClientRunOptions,
    ) -> (Option<Error>, Duration) {
        let token = CancellationToken::new();
        let stream = self.run(options.with_cancellation(token.clone())).await;
        let mut stream = stream.unwrap();
        let hangs = self.faulty.hangs();
        let mut hung = None;
        loop {
            let next = tokio::select! {
                biased;
                next = tokio::time::timeout(HELD_UP, stream.next()) => next.expect("it is held up"),
                () = hangs.wait(), if hung.is_none() => {
                    token.cancel();
                    hung = Some(Instant::now());
                    continue;
                }
            };
            let took = hung.map(|since| since.elapsed()).unwrap_or_default();
            match next {
                Some(Ok(_)) => {}
                Some(Err(error)) => return (Some(error), took),
                None => return (None, took),
            }
        }
    }

    /// A worker goes on with the run, over the store that answers again.
    async fn recovered(&self, client: &FunctionInvokingChatClient) -> AgentResponse {
        client.get_response(&[], self.options()).await.unwrap()
    }

    async fn is_open(&self) -> bool {
        let record = self.store.load(&"r".into()).await.unwrap();
        record.is_some_and(|record| !record.closed)
    }
}

fn client(book: &Arc<ScriptedTool>) -> FunctionInvokingChatClient {
    let model = ScriptedChatClient::always(Reply::from_fn(|request| {
        let asked = |message: &&ChatMessage| message.tool_calls().next().is_some();
        match request.messages.iter().filter(asked).count() {
            0 => Reply::calls([("c1", "book", r#"{"n":1}"#), ("c2", "book", r#"{"n":2}"#)]),
            1 => Reply::calls([("c3", "book", r#"{"n":3}"#)]),
            _ => Reply::text("done"),
        }
    }));
    let tools = ToolRegistry::builder().with_shared_tool(Arc::clone(book) as _);
    let execution = ExecutionOptions::new().with_grace(GRACE);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    FunctionInvokingChatClient::with_options(Arc::new(model), tools.build().unwrap(), options)
}

/// How often the body of each call was entered, and what the transcript says of it.
fn check(bench: &Bench, messages: &[ChatMessage], may_be: &[ToolOutcome], place: &str) {
    let mut transcript = vec![ChatMessage::user("book it")];
    transcript.extend_from_slice(messages);
    validate_history(&transcript).unwrap();
    let results: Vec<&ToolResult> = messages
        .iter()
        .flat_map(ChatMessage::tool_results)
        .collect();
    assert_eq!(results.len(), 3, "{place}");
    for result in results {
        let calls = bench.book.log().calls();
        let own = |call: &&raf_testing::RecordedCall| call.call_id == result.call_id();
        let entered = calls.iter().filter(own).count();
        assert!(entered <= 1, "{place}: entered twice");
        match result.outcome() {
            ToolOutcome::Ok => assert_eq!(entered, 1, "{place}"),
            ToolOutcome::Cancelled { started: false } => assert_eq!(entered, 0, "{place}"),
            outcome => assert!(may_be.contains(&outcome), "{place}: {outcome:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h1_i6_a_cancelled_run_does_not_wait_for_a_write_that_hangs_and_is_taken_up() {
    for fault in HANGS {
        let mut opened = 0;
        for number in 0.. {
            let place = format!("{fault:?} {number}");
            let bench = Bench::new(false, number, fault);
            let (error, took) = bench.cancelled_when_it_hangs(bench.options()).await;
            if bench.faulty.failed() == 0 {
                assert!(error.is_none());
                break;
            }
            let error = error.expect(&place);
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{place}");
            // A body has its grace, the write behind it another one.
            assert!(took <= 2 * GRACE + BACKSTOP, "{place}: {took:?}");
            if !bench.is_open().await {
                continue;
            }
            opened += 1;
            assert_eq!(error.code(), Some("unanswered"), "{place}");
            // What it came to is in hand of this process.
            let done = bench.recovered(&bench.client).await;
            assert_eq!(done.finish_reason, FinishReason::Stop, "{place}");
            check(&bench, &done.messages, &[], &place);
        }
        assert!(opened >= 8, "{fault:?}: {opened} writes left it open");
    }
}

#[tokio::test(start_paused = true)]
async fn b5_i7_a_run_that_is_dropped_while_a_write_hangs_is_taken_up_by_another_process() {
    for fault in HANGS {
        let mut unknown = 0;
        for number in 0.. {
            let place = format!("{fault:?} {number}");
            let bench = Bench::new(false, number, fault);
            let mut stream = bench.run(bench.options()).await.unwrap();
            let hangs = bench.faulty.hangs();
            let whole = loop {
                tokio::select! {
                    biased;
                    next = stream.next() => match next {
                        Some(next) => drop(next.unwrap()),
                        None => break true,
                    },
                    () = hangs.wait() => break false,
                }
            };
            drop(stream);
            // A body that was keeping its outcome holds the run until its task is dropped.
            tokio::task::yield_now().await;
            if whole {
                break;
            }
            if !bench.is_open().await {
                continue;
            }
            let done = bench.recovered(&client(&bench.book)).await;
            assert_eq!(done.finish_reason, FinishReason::Stop, "{place}");
            check(&bench, &done.messages, &[ToolOutcome::Unknown], &place);
            let results = done.messages.iter().flat_map(ChatMessage::tool_results);
            unknown += results
                .filter(|result| result.outcome() == ToolOutcome::Unknown)
                .count();
        }
        // A start whose body nobody saw enter, and an outcome that only the dropped run knew.
        assert!(unknown > 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn e2_nothing_unapproved_runs_beside_a_store_that_hangs_and_one_yes_is_one_execution() {
    for fault in HANGS {
        for number in 0.. {
            let place = format!("{fault:?} {number}");
            let bench = Bench::new(true, number, fault);
            bench.cancelled_when_it_hangs(bench.options()).await;
            let first = bench.faulty.failed();
            assert_eq!(bench.book.log().entries(), 0, "{place}");
            if first == 0 {
                let pending = bench.store.list_pending(None).await.unwrap();
                let ids = pending.iter().map(raf_core::PendingRequest::request_id);
                let yes = ids.map(ToolApprovalResponse::approve).collect::<Vec<_>>();
                assert_eq!(yes.len(), 2, "{place}");
                let options = bench.options().with_tool_approval_responses(yes);
                bench.cancelled_when_it_hangs(options).await;
            }
            if bench.faulty.failed() == 0 {
                break;
            }
            let before = bench.book.log().entries();
            if bench.is_open().await {
                let again = bench.recovered(&bench.client).await;
                assert!(!again.pending.is_empty(), "{place}");
            }
            let entered = bench.book.log().entries();
            if first == 1 {
                assert_eq!(entered, 0, "{place}: nobody said yes");
            }
            assert!(before <= entered && entered <= 2, "{place}");
            let calls = bench.book.log().calls();
            assert!(
                calls.iter().all(|call| call.call_id != "c3"),
                "{place}: nobody said yes to it"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h1_the_deadline_of_a_leg_does_not_wait_for_its_store_either() {
    let deadline = Duration::from_secs(30);
    let bench = Bench::new(false, 2, WriteFault::HangBefore);
    let options = bench.options().with_deadline(deadline);
    let began = Instant::now();
    let input = [ChatMessage::user("book it")];
    let late = bench.client.get_response(&input, options);
    let late = tokio::time::timeout(HELD_UP, late).await;
    let late = late.expect("it is held up").unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Store);
    assert_eq!(late.code(), Some("unanswered"));
    assert_eq!(late.retry_status(), RetryStatus::Temporary);
    let took = began.elapsed();
    assert!(
        deadline < took && took <= deadline + 2 * GRACE + BACKSTOP,
        "{took:?}"
    );
    let done = bench.recovered(&bench.client).await;
    check(&bench, &done.messages, &[], "behind its deadline");
}

#[tokio::test(start_paused = true)]
async fn i8_a_sign_of_life_that_hangs_gives_way_to_the_next() {
    let lease = Duration::from_secs(30);
    let store: Arc<dyn IRunStore> = Arc::new(InMemoryRunStore::new().with_durable(true));
    let faulty = FaultyRunStore::new(store).with_lease(lease);
    faulty.hang_renewals(2);
    let book = ScriptedTool::new("book");
    let almost_two = Duration::from_secs(58);
    let book = book.always(Behaviour::text("booked").after_sleep(almost_two));
    let client = client(&Arc::new(book));
    let options = ChatClientRunOptions::new()
        .with_run_store(Arc::new(faulty.clone()))
        .with_run_id("r".into());
    let input = [ChatMessage::user("book it")];
    let done = client.get_response(&input, options).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    // Two rounds of almost two leases each: one in each third of a lease, or two thirds behind one that hangs.
    assert!(faulty.renewals() >= 9, "{} renewals", faulty.renewals());
}
