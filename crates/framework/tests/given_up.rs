//! A run that is dropped between the end of a body and the write of its outcome, on several threads: who
//! goes on with it enters no body again that may run once.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage,
    ErrorKind, IChatClient, IRunStore, InMemoryRunStore, ToolOutcome, ToolResult, UpdateStream,
};
use raf_framework::{FunctionInvokingChatClient, RunStoreOptionsExt};
use raf_testing::{Behaviour, FaultyRunStore, Reply, ScriptedChatClient, ScriptedTool, WriteFault};
use raf_tools::{ToolLimits, ToolRegistry};
use tokio::sync::Barrier;

/// Before the outcome of its first call a run writes its claim, its beginning and the start.
const OUTCOME: u64 = 3;

struct Bench {
    book: Arc<ScriptedTool>,
    store: Arc<dyn IRunStore>,
    faulty: FaultyRunStore,
    client: FunctionInvokingChatClient,
}

impl Bench {
    fn new(first: Behaviour, idempotent: bool) -> Self {
        let store: Arc<dyn IRunStore> = Arc::new(InMemoryRunStore::new().with_durable(true));
        let book = ScriptedTool::new("book")
            .then(first)
            .always(Behaviour::text("booked again"))
            .with_limits(ToolLimits::new().with_idempotent(idempotent));
        let book = Arc::new(book);
        let model =
            ScriptedChatClient::new([Reply::calls([("c1", "book", "{}")]), Reply::text("done")]);
        let tools = ToolRegistry::builder().with_shared_tool(book.clone());
        let tools = tools.build().unwrap();
        Self {
            client: FunctionInvokingChatClient::new(Arc::new(model), tools),
            faulty: FaultyRunStore::new(Arc::clone(&store)),
            store,
            book,
        }
    }

    fn options(&self) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::new(self.faulty.clone()))
            .with_run_id("r".into())
    }

    async fn begin(&self) -> UpdateStream {
        let input = [ChatMessage::user("book it")];
        self.client.run(&input, self.options()).await.unwrap()
    }

    /// Another process goes on, once the tasks of the dropped run are gone.
    async fn recovered(&self) -> AgentResponse {
        loop {
            let options = ChatClientRunOptions::new()
                .with_run_store(Arc::clone(&self.store))
                .with_run_id("r".into());
            match self.client.get_response(&[], options).await {
                Ok(done) => return done,
                Err(error) => assert_eq!(error.kind(), ErrorKind::BusySession, "{error}"),
            }
            tokio::task::yield_now().await;
        }
    }
}

/// The outcome of the one call.
fn outcome(response: &AgentResponse) -> ToolOutcome {
    let results = response.messages.iter().flat_map(ChatMessage::tool_results);
    let outcomes: Vec<ToolOutcome> = results.map(ToolResult::outcome).collect();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    outcomes[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_an_outcome_whose_write_was_given_up_is_unknown_unless_it_was_made() {
    let cases = [
        (WriteFault::HangBefore, false, ToolOutcome::Unknown, 1),
        (WriteFault::HangAfter, false, ToolOutcome::Ok, 1),
        (WriteFault::HangBefore, true, ToolOutcome::Ok, 2),
        (WriteFault::HangAfter, true, ToolOutcome::Ok, 1),
    ];
    for (fault, idempotent, expected, entries) in cases {
        let place = format!("{fault:?}, idempotent: {idempotent}");
        let bench = Bench::new(Behaviour::text("booked"), idempotent);
        bench.faulty.fail_write(OUTCOME, fault);
        let mut stream = bench.begin().await;
        let hangs = bench.faulty.hangs();
        loop {
            tokio::select! {
                biased;
                () = hangs.wait() => break,
                next = stream.next() => assert!(next.is_some(), "{place}"),
            }
        }
        assert_eq!(bench.book.log().completions(), 1, "{place}");
        drop(stream);
        let done = bench.recovered().await;
        assert_eq!(outcome(&done), expected, "{place}");
        assert_eq!(bench.book.log().entries(), entries, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i7_however_the_end_of_a_body_meets_the_drop_of_its_run_it_is_not_entered_again() {
    for turn in 0..200 {
        let barrier = Arc::new(Barrier::new(2));
        let bench = Bench::new(Behaviour::text("booked").after_barrier(&barrier), false);
        let mut stream = bench.begin().await;
        while let Some(update) = stream.next().await {
            if matches!(update.unwrap(), AgentResponseUpdate::ToolStarted { .. }) {
                break;
            }
        }
        // From here the body ends and keeps its outcome on one thread, and its run is dropped on another.
        barrier.wait().await;
        for _ in 0..turn % 8 {
            tokio::task::yield_now().await;
        }
        drop(stream);
        let done = bench.recovered().await;
        let outcome = outcome(&done);
        assert!(
            matches!(outcome, ToolOutcome::Ok | ToolOutcome::Unknown),
            "{outcome:?}"
        );
        assert_eq!(bench.book.log().entries(), 1, "turn {turn}: {outcome:?}");
    }
}
