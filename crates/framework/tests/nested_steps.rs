//! A run nested in a call of a durable run, when its process dies: it goes on from its own journal, it is
//! not begun anew, and what it used is counted once.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage, Error, ErrorKind,
    FinishReason, IChatClient, IRunStore, InMemoryRunStore, JournalKey, JournalKind, ResponseFold,
    Result, RetryStatus, ToolErrorClass, ToolOutcome, UpdateStream, validate_history,
};
use raf_framework::{
    AgentTool, FunctionInvokingChatClient, FunctionInvokingOptions, RunStoreOptionsExt,
};
use raf_testing::{
    FaultyRunStore, ReplayHost, Reply, ScriptedChatClient, ScriptedTool, WriteFault,
};
use raf_tools::{
    ExecutionOptions, IToolMiddleware, Next, ToolError, ToolInvocation, ToolOutput, ToolRegistry,
};
use serde_json::Value;

/// An agent that asks another one, which calls a tool that may run once.
struct Bench {
    book: Arc<ScriptedTool>,
    inner: ScriptedChatClient,
    store: Arc<dyn IRunStore>,
}

/// A model that calls a tool once, then answers: what it says follows from the request alone.
fn model(tool: &'static str, arguments: &'static str, tokens: u64) -> ScriptedChatClient {
    ScriptedChatClient::always(Reply::from_fn(move |request| {
        let has_result = request.lines().iter().any(|line| line.starts_with("R("));
        let reply = if has_result {
            Reply::text("done")
        } else {
            Reply::calls([("c1", tool, arguments)])
        };
        reply.usage(tokens, 1)
    }))
}

impl Bench {
    fn new() -> Self {
        Self {
            book: Arc::new(ScriptedTool::returning("book", "booked")),
            inner: model("book", "{}", 10),
            store: Arc::new(InMemoryRunStore::new().with_durable(true)),
        }
    }

    /// A stack of another process: nothing is in hand.
    fn client(&self) -> FunctionInvokingChatClient {
        self.client_with(self.inner.clone())
    }

    fn client_with(&self, inner: ScriptedChatClient) -> FunctionInvokingChatClient {
        self.client_of(inner, FunctionInvokingOptions::new())
    }

    fn client_of(
        &self,
        inner: ScriptedChatClient,
        options: FunctionInvokingOptions,
    ) -> FunctionInvokingChatClient {
        let tools = ToolRegistry::builder()
            .with_shared_tool(self.book.clone())
            .build()
            .unwrap();
        let inner = FunctionInvokingChatClient::new(Arc::new(inner), tools);
        let agent = AgentTool::new("clerk", "Books.", Arc::new(inner));
        let tools = ToolRegistry::builder().with_tool(agent).build().unwrap();
        let outer = model("clerk", r#"{"task": "book it"}"#, 100);
        FunctionInvokingChatClient::with_options(Arc::new(outer), tools, options)
    }

    fn options(store: &Arc<dyn IRunStore>) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::clone(store))
            .with_run_id("r".into())
    }

    /// Begins the run; its process dies while the nested one waits for its second reply.
    async fn dies_within(&self, options: ChatClientRunOptions) {
        let hangs = ScriptedChatClient::new([
            Reply::calls([("c1", "book", "{}")]).usage(10, 1),
            Reply::new().hang(),
        ]);
        let client = self.client_with(hangs);
        let input = [ChatMessage::user("book it")];
        let mut stream = client.run(&input, options).await.unwrap();
        while let Some(update) = stream.next().await {
            if let AgentResponseUpdate::Nested { nested, .. } = update.unwrap()
                && matches!(nested.update, AgentResponseUpdate::ToolCalled { .. })
            {
                break;
            }
        }
    }

    /// The steps of the nested run that are kept.
    async fn nested_steps(&self) -> Vec<String> {
        let key = JournalKey::nested("r".into(), "r/0/0/clerk".into());
        let entries = self.store.journal(&key, 0).await.unwrap();
        let steps = entries
            .into_iter()
            .filter(|entry| entry.kind == JournalKind::Step);
        steps.map(|entry| entry.step).collect()
    }

    /// Whether the outcome of the call around is kept.
    async fn is_settled(&self) -> bool {
        let key = JournalKey::root("r".into());
        let entries = self.store.journal(&key, 0).await.unwrap();
        entries
            .iter()
            .any(|entry| entry.kind == JournalKind::Settled)
    }

    /// Whether the nested run is kept to its end.
    async fn has_ended(&self) -> bool {
        self.nested_steps().await.contains(&"end".to_owned())
    }

    /// How many calls the run has counted, those of runs nested in it included.
    async fn calls(&self) -> Value {
        let record = self.store.load(&"r".into()).await.unwrap().unwrap();
        assert!(record.closed);
        record.counters["counters"]["calls"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn k5_a_nested_run_goes_on_from_its_journal() {
    let bench = Bench::new();
    let input = [ChatMessage::user("book it")];
    let options = Bench::options(&bench.store);
    bench.dies_within(options).await;
    assert!(!bench.has_ended().await);
    let options = Bench::options(&bench.store);
    let done = bench.client().get_response(&[], options).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(bench.book.log().entries(), 1);
    assert_eq!(
        bench.inner.request_count(),
        1,
        "only its answer is asked for"
    );
    assert_eq!(done.run_usage.input_tokens, Some(2 * 100 + 2 * 10));
    assert_eq!(bench.calls().await, 2);
    let mut transcript = input.to_vec();
    transcript.extend(done.messages);
    validate_history(&transcript).unwrap();
}

#[tokio::test(start_paused = true)]
async fn k5_b6_a_nested_run_that_had_ended_does_not_run_again_and_its_use_counts() {
    let input = [ChatMessage::user("book it")];
    let mut between = 0;
    for number in 0.. {
        let bench = Bench::new();
        let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
        faulty.fail_write(number, WriteFault::Before);
        let store: Arc<dyn IRunStore> = faulty.clone();
        let options = Bench::options(&store);
        let first = bench.client().get_response(&input, options).await;
        if faulty.failed() == 0 {
            assert_eq!(first.unwrap().run_usage.input_tokens, Some(220));
            assert_eq!(bench.calls().await, 2);
            break;
        }
        let had_ended = bench.has_ended().await;
        let record = bench.store.load(&"r".into()).await.unwrap();
        if first.is_ok() || !had_ended || record.is_none_or(|record| record.closed) {
            continue;
        }
        between += usize::from(!bench.is_settled().await);
        let asked = bench.inner.request_count();
        let options = Bench::options(&bench.store);
        let done = bench.client().get_response(&[], options).await.unwrap();
        assert_eq!(done.finish_reason, FinishReason::Stop, "write {number}");
        assert_eq!(bench.inner.request_count(), asked, "write {number}");
        assert_eq!(bench.book.log().entries(), 1, "write {number}");
        assert_eq!(done.run_usage.input_tokens, Some(220), "write {number}");
        assert_eq!(bench.calls().await, 2, "write {number}");
    }
    assert_eq!(between, 1, "the write of the call's outcome");
}

#[tokio::test(start_paused = true)]
async fn i6_a_store_that_fails_within_a_nested_run_leaves_both_runs_open() {
    let input = [ChatMessage::user("book it")];
    let mut nested_writes = 0;
    for number in 0.. {
        let bench = Bench::new();
        let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
        faulty.fail_write(number, WriteFault::Before);
        let store: Arc<dyn IRunStore> = faulty.clone();
        let client = bench.client();
        let mut stream = client.run(&input, Bench::options(&store)).await.unwrap();
        let (mut began, mut failed) = (false, None);
        while let Some(update) = stream.next().await {
            let Ok(update) = &update else {
                failed = update.err();
                break;
            };
            assert!(
                !matches!(update, AgentResponseUpdate::Nested { nested, .. }
                    if matches!(nested.update, AgentResponseUpdate::Error { .. })),
                "write {number}: it is told of as the leg's own end"
            );
            began |= matches!(update, AgentResponseUpdate::ToolStarted { .. });
            let told = matches!(update, AgentResponseUpdate::ToolCalled { .. });
            assert!(!told || faulty.failed() == 0, "write {number}");
        }
        drop(stream);
        if faulty.failed() == 0 {
            break;
        }
        let place = format!("write {number}");
        let failed = failed.unwrap();
        assert_eq!(failed.kind(), ErrorKind::Store, "{place}");
        assert_eq!(failed.code(), Some("injected"), "{place}");
        assert_eq!(failed.retry_status(), RetryStatus::Temporary, "{place}");
        let record = bench.store.load(&"r".into()).await.unwrap();
        // Nothing was begun, or it is let go behind its end.
        let Some(record) = record.filter(|record| began && !record.closed) else {
            continue;
        };
        assert!(record.working, "{place}");
        nested_writes += usize::from(!bench.is_settled().await && !bench.has_ended().await);
        // The same process, which has in hand what could not be kept.
        let again = client.get_response(&[], Bench::options(&bench.store)).await;
        let again = again.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(again.finish_reason, FinishReason::Stop, "{place}");
        assert_eq!(bench.book.log().entries(), 1, "{place}");
        assert_eq!(again.run_usage.input_tokens, Some(220), "{place}");
        assert_eq!(bench.calls().await, 2, "{place}");
    }
    assert_eq!(
        nested_writes, 5,
        "its beginning, start, outcome, batch and end"
    );
}

/// An agent that cannot begin, for a store of its own that is not that of the run.
#[derive(Debug)]
struct Unready;

#[async_trait]
impl IChatClient for Unready {
    async fn run(&self, _: &[ChatMessage], _: ChatClientRunOptions) -> Result<UpdateStream> {
        Err(Error::new(ErrorKind::Store, "the profile cannot be read"))
    }
}

#[tokio::test(start_paused = true)]
async fn c5_what_an_agent_itself_fails_with_is_its_call_s_result_whatever_its_kind() {
    let bench = Bench::new();
    let agent = AgentTool::new("clerk", "Books.", Arc::new(Unready));
    let tools = ToolRegistry::builder().with_tool(agent).build().unwrap();
    let outer = model("clerk", r#"{"task": "book it"}"#, 100);
    let client = FunctionInvokingChatClient::new(Arc::new(outer), tools);
    let input = [ChatMessage::user("book it")];
    let options = Bench::options(&bench.store);
    let done = client.get_response(&input, options).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    let mut results = done.messages.iter().flat_map(ChatMessage::tool_results);
    let failed = ToolOutcome::Error(ToolErrorClass::Failed);
    assert_eq!(results.next().unwrap().outcome(), failed);
    assert!(bench.store.load(&"r".into()).await.unwrap().unwrap().closed);
}

#[tokio::test(start_paused = true)]
async fn b6_what_a_nested_run_used_counts_where_the_conversation_has_left_it_behind() {
    let bench = Bench::new();
    let input = [ChatMessage::user("book it")];
    let client = bench.client();
    let mut stream = client
        .run(&input, Bench::options(&bench.store))
        .await
        .unwrap();
    let mut seen = ResponseFold::new();
    while let Some(update) = stream.next().await {
        let update = update.unwrap();
        let told = matches!(update, AgentResponseUpdate::ToolCalled { .. });
        seen.push(&update);
        if told {
            break;
        }
    }
    drop(stream);
    let mut conversation = input.to_vec();
    conversation.extend_from_slice(seen.messages());
    conversation.push(ChatMessage::assistant("I have asked the clerk."));
    conversation.push(ChatMessage::user("thanks"));
    let options = Bench::options(&bench.store);
    let done = client.get_response(&conversation, options).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    let record = bench.store.load(&"r".into()).await.unwrap().unwrap();
    assert!(record.closed);
    assert_eq!(record.usage.input_tokens, Some(100 + 2 * 10));
    assert_eq!(record.counters["counters"]["calls"], 2);
}

#[tokio::test(start_paused = true)]
async fn k12_the_journal_of_a_nested_run_that_is_taken_up_is_read_once() {
    let bench = Bench::new();
    let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
    let store: Arc<dyn IRunStore> = faulty.clone();
    bench.dies_within(Bench::options(&store)).await;
    let before = faulty.journals_read();
    let client = bench.client();
    let again = client.get_response(&[], Bench::options(&store)).await;
    assert_eq!(again.unwrap().finish_reason, FinishReason::Stop);
    assert_eq!(faulty.journals_read() - before, 2, "one of each run");
}

#[tokio::test(start_paused = true)]
async fn b6_what_a_nested_run_used_counts_where_a_host_knows_its_outcome_alone() {
    let bench = Bench::new();
    let input = [ChatMessage::user("book it")];
    let host = ReplayHost::new();
    let hosted =
        |host: &ReplayHost| ChatClientRunOptions::new().with_step_host(Arc::new(host.clone()));
    let client = bench.client();
    let whole = client.get_response(&input, hosted(&host)).await.unwrap();
    assert_eq!(whole.run_usage.input_tokens, Some(220));
    let batch = host.names().iter().position(|name| name == "round/0/batch");
    // The batch did not come to its value: what is known of it is what happened in it.
    let again = host.taken_up_behind(batch.unwrap() + 1).shuffling(1);
    let done = client.get_response(&input, hosted(&again)).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(bench.book.log().entries(), 1);
    assert_eq!(done.run_usage.input_tokens, Some(220));
}

/// Makes an answer of whatever a tool fails with.
#[derive(Debug)]
struct Hides;

#[async_trait]
impl IToolMiddleware for Hides {
    async fn around(
        &self,
        invocation: ToolInvocation,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let output = next.run(invocation).await;
        Ok(output.unwrap_or_else(|_| ToolOutput::Text("it is done".to_owned())))
    }
}

#[tokio::test(start_paused = true)]
async fn i6_no_middleware_makes_an_outcome_of_a_nested_run_that_could_not_be_kept() {
    let bench = Bench::new();
    let faulty = Arc::new(FaultyRunStore::new(Arc::clone(&bench.store)));
    // The claim, the beginning and the start of the run around come first.
    faulty.fail_write(3, WriteFault::Before);
    let store: Arc<dyn IRunStore> = faulty.clone();
    let execution = ExecutionOptions::new().with_middleware(Hides);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    let client = bench.client_of(bench.inner.clone(), options);
    let input = [ChatMessage::user("book it")];
    let failed = client.get_response(&input, Bench::options(&store)).await;
    assert_eq!(failed.unwrap_err().code(), Some("injected"));
    assert!(!bench.is_settled().await);
    let again = client.get_response(&[], Bench::options(&store)).await;
    assert_eq!(again.unwrap().run_usage.input_tokens, Some(220));
    assert_eq!(bench.book.log().entries(), 1);
}
