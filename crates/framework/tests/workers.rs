//! Workers take up what lies open, each run once, and one that fails holds up nobody.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use raf_core::{
    AnswerOutcome, CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind,
    IChatClient, IRunStore, ISession, ISessionStore, InMemoryRunStore, InMemorySessionStore,
    RefusalReason, Result, RunId, Session, ToolApprovalResponse, UpdateStream, WaitsFor,
    validate_history,
};
use raf_framework::{
    AgentRequest, AgentResumer, AgentRuntime, ClientResumer, FunctionInvokingChatClient,
    FunctionInvokingOptions, PassOptions, ResumedRun, RunProgress, RunStoreOptionsExt,
    WorkerOptions, resume_open_runs, run_worker,
};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::ToolRegistry;

/// A model that says what follows from the conversation alone.
#[derive(Clone, Debug)]
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
            .any(|message| message.tool_calls().next().is_some());
        let reply = if asked {
            Reply::text("done")
        } else {
            Reply::calls([("c1", "book", "{}")])
        };
        ScriptedChatClient::new([reply])
            .run(messages, options)
            .await
    }
}

struct Bench {
    book: Arc<ScriptedTool>,
    tools: ToolRegistry,
    store: Arc<dyn IRunStore>,
    client: Arc<dyn IChatClient>,
}

fn bench(gated: bool) -> Bench {
    let book = ScriptedTool::returning("book", "booked");
    let book = Arc::new(if gated { book.gated() } else { book });
    let tools = ToolRegistry::builder()
        .with_shared_tool(book.clone())
        .build()
        .expect("no fault");
    let client = FunctionInvokingChatClient::new(Arc::new(Stateless), tools.clone());
    Bench {
        book,
        tools,
        store: Arc::new(InMemoryRunStore::new().with_durable(true)),
        client: Arc::new(client),
    }
}

impl Bench {
    fn resumer(&self) -> ClientResumer {
        ClientResumer::new(self.client.clone())
    }

    fn options(&self, id: &str) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&self.store))
            .with_run_id(id.into())
    }

    /// A run whose owner dies right behind its first update.
    async fn left_open(&self, id: &str) {
        let input = [ChatMessage::user("book it")];
        let mut stream = self
            .client
            .run(&input, self.options(id))
            .await
            .expect("no fault");
        stream.next().await.expect("no fault").expect("no fault");
    }

    async fn pass(&self) -> Vec<ResumedRun> {
        resume_open_runs(&self.store, &self.resumer(), PassOptions::new())
            .await
            .expect("no fault")
    }

    async fn answer_what_waits(&self) -> AnswerOutcome {
        let pending = self.store.list_pending(None).await.expect("no fault");
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0].approval().expect("no fault").tool, "book");
        let yes = ToolApprovalResponse::approve(pending[0].request_id());
        self.store.answer(&yes).await.expect("no fault")
    }
}

#[tokio::test(start_paused = true)]
async fn i7_a_pass_finishes_what_lies_open_and_finds_nothing_more() {
    let bench = bench(false);
    for id in ["a", "b", "c"] {
        bench.left_open(id).await;
    }
    let done = bench.pass().await;
    assert_eq!(done.len(), 3);
    for run in done {
        let RunProgress::Finished(response) = run.progress else {
            panic!("{run:?}")
        };
        assert_eq!(response.text(), "done");
    }
    assert_eq!(bench.book.log().entries(), 3);
    assert!(bench.pass().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn e2_e8_one_answer_is_one_execution_whoever_takes_it_up() {
    let bench = bench(true);
    let input = [ChatMessage::user("book it")];
    bench
        .client
        .get_response(&input, bench.options("r"))
        .await
        .unwrap();
    assert!(
        bench.pass().await.is_empty(),
        "nothing to do before an answer"
    );
    assert_eq!(bench.answer_what_waits().await, AnswerOutcome::Kept);
    let pending = bench.store.list_pending(None).await.unwrap();
    assert!(pending[0].answered);
    let again = ToolApprovalResponse::deny(pending[0].request_id(), "no");
    assert_eq!(
        bench.store.answer(&again).await.unwrap(),
        AnswerOutcome::Refused(RefusalReason::AlreadySettled)
    );
    let (one, other) = futures::join!(bench.pass(), bench.pass());
    let finished = |runs: &[ResumedRun]| {
        runs.iter()
            .filter(|run| matches!(run.progress, RunProgress::Finished(_)))
            .count()
    };
    assert_eq!(finished(&one) + finished(&other), 1, "{one:?} {other:?}");
    assert_eq!(bench.book.log().entries(), 1);
}

#[tokio::test(start_paused = true)]
async fn i7_a_worker_looks_again_until_it_is_stopped_and_ends_what_it_began() {
    let bench = bench(false);
    let (resumer, stop) = (bench.resumer(), CancellationToken::new());
    let mut ended = Vec::new();
    let worker = run_worker(&bench.store, &resumer, WorkerOptions::new(), &stop, |run| {
        ended.push(run.run_id.clone());
    });
    let outside = async {
        for id in ["a", "b"] {
            bench.left_open(id).await;
            tokio::time::sleep(Duration::from_millis(1500)).await;
            assert!(bench.store.load(&id.into()).await.unwrap().unwrap().closed);
        }
        stop.cancel();
    };
    futures::join!(worker, outside);
    assert_eq!(ended, [RunId::from("a"), RunId::from("b")]);
}

#[tokio::test(start_paused = true)]
async fn i7_a_run_that_fails_rests_and_holds_up_nobody() {
    let bench = bench(false);
    bench.left_open("broken").await;
    let empty = ToolRegistry::builder().build().unwrap();
    let without = FunctionInvokingChatClient::new(Arc::new(Failing), empty);
    let resumer = ClientResumer::new(Arc::new(without));
    let stop = CancellationToken::new();
    let mut failures = 0;
    let worker = run_worker(&bench.store, &resumer, WorkerOptions::new(), &stop, |run| {
        failures += u32::from(matches!(run.progress, RunProgress::Failed(_)));
    });
    let outside = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stop.cancel();
    };
    futures::join!(worker, outside);
    // At 0, 1, 3, 7, 15, 31 seconds and no more: twice as long each time.
    assert!((1..=6).contains(&failures), "{failures} failures");
}

/// A model whose every request ends in a failing store, as a stack over a broken disk does.
#[derive(Debug)]
struct Failing;

#[async_trait]
impl IChatClient for Failing {
    async fn run(&self, _: &[ChatMessage], _: ChatClientRunOptions) -> Result<UpdateStream> {
        Err(raf_core::Error::new(ErrorKind::Store, "no disk"))
    }
}

#[tokio::test(start_paused = true)]
async fn i8_an_agent_goes_on_with_the_session_of_its_run() {
    let bench = bench(false);
    let sessions: Arc<dyn ISessionStore> = Arc::new(InMemorySessionStore::new());
    let agent = AgentRuntime::builder(Stateless)
        .tools(bench.tools.clone())
        .build()
        .unwrap();
    let session = Session::new(Arc::clone(&sessions), "ada");
    let request = AgentRequest::new("book it")
        .with_options(bench.options("r"))
        .in_session(session.clone());
    let mut run = agent.run(request);
    run.next().await.unwrap().unwrap();
    drop(run);
    let resumer = AgentResumer::new(agent, sessions);
    let done = resume_open_runs(&bench.store, &resumer, PassOptions::new())
        .await
        .unwrap();
    assert!(
        matches!(done[0].progress, RunProgress::Finished(_)),
        "{done:?}"
    );
    let transcript = session.load().await.unwrap().transcript();
    validate_history(&transcript).unwrap();
    assert_eq!(transcript.last().unwrap().text(), "done");
    assert_eq!(bench.book.log().entries(), 1);
}

/// A yes that comes too late runs nothing, also where it is given to the run itself.
#[tokio::test]
async fn e2_an_answer_to_a_request_whose_time_is_over_is_stale() {
    let book = Arc::new(ScriptedTool::returning("book", "booked").gated());
    let tools = ToolRegistry::builder()
        .with_shared_tool(book.clone())
        .build()
        .unwrap();
    let limits = FunctionInvokingOptions::new().with_approval_lifetime(Duration::ZERO);
    let client = FunctionInvokingChatClient::with_options(Arc::new(Stateless), tools, limits);
    let mut conversation = vec![ChatMessage::user("book it")];
    let paused = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    let WaitsFor::Approval(request) = &paused.pending[0].waits_for else {
        panic!("no approval waits")
    };
    assert_eq!(request.expires_at_ms, request.asked_at_ms);
    let yes = ToolApprovalResponse::approve(&request.request_id);
    conversation.extend(paused.messages);
    let options = ChatClientRunOptions::new().with_tool_approval_responses(vec![yes]);
    let refused = client
        .get_response(&conversation, options)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ApprovalRefused);
    assert_eq!(refused.code(), Some(RefusalReason::Stale.as_str()));
    assert_eq!(book.log().entries(), 0);
}

/// Who decides sees the agent that asks, its session, and since when.
#[tokio::test]
async fn e8_what_waits_says_who_asked_and_when() {
    let bench = bench(true);
    let now = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    let agent = AgentRuntime::builder(Stateless)
        .name("clerk")
        .tools(bench.tools.clone())
        .build()
        .unwrap();
    let before = now();
    let request = AgentRequest::new("book it")
        .with_options(bench.options("r"))
        .in_session(Session::new(Arc::new(InMemorySessionStore::new()), "ada"));
    agent.ask(request).await.unwrap();
    let pending = bench.store.list_pending(None).await.unwrap();
    let request = pending[0].approval().unwrap();
    assert_eq!(request.session_id.as_deref(), Some("ada"));
    assert_eq!(request.asked_by.as_deref(), Some("clerk"));
    let asked_at = request.asked_at_ms.unwrap();
    assert!((before..=now()).contains(&asked_at));
}

#[tokio::test(start_paused = true)]
async fn k6_dropping_a_pass_leaves_its_runs_to_another() {
    let bench = bench(false);
    bench.left_open("r").await;
    let resumer = bench.resumer();
    let pass = resume_open_runs(&bench.store, &resumer, PassOptions::new());
    let _polled_once = pass.boxed().now_or_never();
    // Whatever of it was done: the run comes to its end, and its body was entered once at most.
    bench.pass().await;
    assert!(bench.store.load(&"r".into()).await.unwrap().unwrap().closed);
    assert!(bench.book.log().entries() <= 1);
}
