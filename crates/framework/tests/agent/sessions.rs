//! Sessions: written message by message, one writer, continued after any end.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use raf_core::{
    AgentResponseUpdate, BusyPolicy, ChatMessage, Error, ErrorKind, FinishReason, ISession,
    InMemorySessionStore, Result, Session, SessionChange, SessionLease, SessionRecord, SessionView,
    ToolApprovalResponse, WriteOutcome, validate_history,
};
use raf_framework::{AgentRequest, AgentRuntime};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool, transcript_lines};
use raf_tools::{ToolRegistry, ToolRegistryBuilder, tool_fn};

fn agent(
    model: &ScriptedChatClient,
    tools: impl IntoIterator<Item = ScriptedTool>,
) -> AgentRuntime {
    let tools = tools
        .into_iter()
        .fold(ToolRegistry::builder(), ToolRegistryBuilder::with_tool);
    AgentRuntime::builder(model.clone())
        .tools(tools)
        .build()
        .unwrap()
}

fn ask(text: &str, session: &Session) -> AgentRequest {
    AgentRequest::new(text).in_session(session.clone())
}

async fn lines(session: &Session) -> Vec<String> {
    transcript_lines(&session.load().await.unwrap().transcript())
}

#[tokio::test]
async fn an_assistant_message_is_kept_before_its_tools_start_and_each_result_when_it_happens() {
    let session = Session::in_memory();
    let seen = session.clone();
    let slow = tool_fn("look", "Looks at the session.", move |(): ()| {
        let session = seen.clone();
        async move { lines(&session).await.join(" ") }
    });
    let model =
        ScriptedChatClient::new([Reply::calls([("c1", "look", "{}")]), Reply::text("done")]);
    let agent = AgentRuntime::builder(model).tools([slow]).build().unwrap();
    let mut run = agent.run(ask("go", &session));
    let mut kept = 0;
    while let Some(update) = run.next().await {
        let update = update.unwrap();
        if matches!(update, AgentResponseUpdate::ToolCalled { .. }) {
            kept = lines(&session).await.len();
        }
    }
    assert_eq!(kept, 3);
    let expected = ["U:go", "A:[c1]", "R(c1, ok: 'U:go A:[c1]')", "A:done"];
    assert_eq!(lines(&session).await, expected);
}

#[tokio::test(start_paused = true)]
async fn it_goes_on_after_any_end_of_a_run() {
    for end in ["answer", "error", "cancel", "limit", "drop", "length"] {
        let session = Session::in_memory();
        let first = match end {
            "error" => Reply::text("half").error(Error::new(ErrorKind::Server, "down")),
            "length" => Reply::text("half").finish(FinishReason::Length),
            _ => Reply::calls([("c1", "t", "{}"), ("c2", "t", "{}")]),
        };
        let model = ScriptedChatClient::new([first, Reply::text("second"), Reply::text("third")]);
        let tool = ScriptedTool::new("t")
            .then(Behaviour::text("x"))
            .always(match end {
                "cancel" | "drop" => Behaviour::hang(),
                _ => Behaviour::text("y"),
            });
        let agent = AgentRuntime::builder(model.clone())
            .tools(ToolRegistry::builder().with_tool(tool))
            .max_rounds(if end == "limit" { 1 } else { 9 })
            .build()
            .unwrap();
        let options = raf_core::ChatClientRunOptions::new();
        let cancellation = options.cancellation.clone();
        let mut run = agent.run(ask("go", &session).with_options(options));
        while let Some(update) = run.next().await {
            let called = matches!(update, Ok(AgentResponseUpdate::ToolCalled { .. }));
            match end {
                "cancel" if called => cancellation.cancel(),
                "drop" if called => break,
                _ => {}
            }
        }
        drop(run);
        validate_history(&session.load().await.unwrap().history()).unwrap();
        let response = agent.ask(ask("and?", &session)).await;
        let response = response.unwrap_or_else(|error| panic!("{end}: {error}"));
        assert!(["second", "third"].contains(&&*response.text()), "{end}");
        for request in model.requests() {
            validate_history(&request.messages).unwrap();
        }
        let last = model.requests().last().unwrap().lines();
        assert_eq!(
            (&*last[0], &**last.last().unwrap()),
            ("U:go", "U:and?"),
            "{end}"
        );
        if end == "drop" {
            assert_eq!(last[2], "R(c1, ok: 'x')");
            assert!(last[3].starts_with("R(c2, cancelled"), "{last:?}");
        }
    }
}

#[tokio::test]
async fn a_run_that_waits_is_kept_with_its_session_and_resumed_by_another_agent() {
    let store = Arc::new(InMemorySessionStore::new());
    let session = Session::new(store, "s");
    let tool = || ScriptedTool::returning("delete", "gone").gated();
    let model = ScriptedChatClient::new([Reply::calls([("c1", "delete", "{}")])]);
    let paused = agent(&model, [tool()])
        .ask(ask("go", &session))
        .await
        .unwrap();
    assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
    let bytes = serde_json::to_vec(&session.load().await.unwrap()).unwrap();

    // Another process: nothing is shared but the bytes.
    let record: SessionRecord = serde_json::from_slice(&bytes).unwrap();
    let elsewhere = Session::in_memory();
    let change = SessionChange::messages(record.messages).with_paused_run(record.paused_run);
    let _ = elsewhere.write(0, change).await.unwrap();
    let tool = tool();
    let log = tool.log().clone();
    let model = ScriptedChatClient::new([Reply::text("done"), Reply::text("welcome")]);
    let other = agent(&model, [tool]);
    // Its id is another one, so the record must not name the first: a session resumes its own runs.
    let error = other
        .ask(AgentRequest::answers([]).in_session(elsewhere))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    let answer = ToolApprovalResponse::approve(paused.pending[0].request_id().unwrap());
    let resumed = other
        .ask(AgentRequest::answers([answer]).in_session(session.clone()))
        .await
        .unwrap();
    assert_eq!((resumed.text().as_str(), log.entries()), ("done", 1));
    assert_eq!(session.load().await.unwrap().paused_run, None);
    other.ask(ask("thanks", &session)).await.unwrap();
    let expected = ["U:go", "A:[c1]", "R(c1, ok: 'gone')", "A:done", "U:thanks"];
    assert_eq!(model.requests()[1].lines(), expected);
}

#[tokio::test]
async fn a_new_message_supersedes_what_waits() {
    let session = Session::in_memory();
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "delete", "{}")]),
        Reply::text("never mind"),
    ]);
    let agent = agent(&model, [ScriptedTool::new("delete").gated()]);
    agent.ask(ask("go", &session)).await.unwrap();
    agent.ask(ask("no, wait", &session)).await.unwrap();
    let kept = session.load().await.unwrap();
    assert_eq!(kept.paused_run, None);
    let lines = transcript_lines(&raf_core::normalise(&kept.transcript()));
    assert_eq!(lines[0], "U:go");
    assert!(lines[2].contains("skipped superseded"), "{lines:?}");
    assert_eq!(lines[3..], ["U:no, wait", "A:never mind"]);
}

#[tokio::test]
async fn ten_runs_at_once_are_refused_or_queue_as_the_agent_says() {
    for policy in [BusyPolicy::Refuse, BusyPolicy::Queue] {
        let session = Session::in_memory();
        let model = ScriptedChatClient::always(Reply::calls([("c", "t", "{}")]));
        let model = model.with_fallback(Reply::from_fn(|request| {
            if request
                .lines()
                .last()
                .is_some_and(|line| line.starts_with("R("))
            {
                Reply::text(format!("answer to {}", request.user_text()))
            } else {
                Reply::calls([("c", "t", "{}")])
            }
        }));
        let agent = AgentRuntime::builder(model)
            .tools(ToolRegistry::builder().with_tool(ScriptedTool::returning("t", "x")))
            .busy_sessions(policy)
            .build()
            .unwrap();
        let runs = (0..10).map(|run| agent.ask(ask(&run.to_string(), &session)));
        let ends = join_all(runs).await;
        let done = ends.iter().filter(|end| end.is_ok()).count();
        let expected = if policy == BusyPolicy::Queue { 10 } else { 1 };
        assert_eq!(done, expected);
        for error in ends.iter().filter_map(|end| end.as_ref().err()) {
            assert_eq!(error.kind(), ErrorKind::BusySession);
            assert!(error.is_temporary());
        }
        // Each turn is whole, one behind another.
        let lines = lines(&session).await;
        assert_eq!(lines.len(), 4 * expected);
        for (run, turn) in lines.chunks(4).enumerate() {
            let answer = format!("A:answer to {run}");
            let question = format!("U:{run}");
            assert_eq!(turn, [&*question, "A:[c]", "R(c, ok: 'x')", &*answer]);
        }
    }
}

#[tokio::test]
async fn a_run_sees_a_view_and_the_session_keeps_everything() {
    let session = Session::in_memory();
    let model = ScriptedChatClient::always(Reply::text("ok"));
    let agent = AgentRuntime::builder(model.clone())
        .history(SessionView::LastTurns(1))
        .build()
        .unwrap();
    for turn in ["a", "b", "c"] {
        agent.ask(ask(turn, &session)).await.unwrap();
    }
    assert_eq!(model.requests()[2].lines(), ["U:b", "A:ok", "U:c"]);
    assert_eq!(lines(&session).await.len(), 6);
    let nothing = agent
        .ask(AgentRequest::default().in_session(Session::in_memory()))
        .await;
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::Misuse);
}

/// A session whose n-th write fails.
#[derive(Debug)]
struct FailingSession(Session, std::sync::atomic::AtomicU32);

#[async_trait]
impl ISession for FailingSession {
    fn id(&self) -> &str {
        self.0.id()
    }

    async fn load(&self) -> Result<SessionRecord> {
        self.0.load().await
    }

    async fn lease(&self, policy: BusyPolicy) -> Result<SessionLease> {
        self.0.lease(policy).await
    }

    async fn write(&self, base: u64, change: SessionChange) -> Result<WriteOutcome> {
        if self.1.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            return Err(Error::new(ErrorKind::Store, "the disk is full"));
        }
        self.0.write(base, change).await
    }
}

#[tokio::test]
async fn a_failing_write_ends_the_run_and_the_session_goes_on() {
    for write in 1..=5 {
        let session = Session::in_memory();
        let failing = FailingSession(session.clone(), write.into());
        let replies = || [Reply::calls([("c1", "t", "{}")]), Reply::text("done")];
        let model = ScriptedChatClient::new(replies());
        let tool = ScriptedTool::returning("t", "x");
        let log = tool.log().clone();
        let agent = agent(&model, [tool]);
        let request = AgentRequest::new("go").in_session(failing);
        let error = agent.ask(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store);
        assert_eq!(log.entries(), usize::from(write > 2), "write {write}");
        let kept = session.load().await.unwrap().history();
        validate_history(&kept).unwrap();
        let model = ScriptedChatClient::new([Reply::text("again")]);
        let other = self::agent(&model, [ScriptedTool::returning("t", "x")]);
        other.ask(ask("and?", &session)).await.unwrap();
        let _: Vec<ChatMessage> = kept;
    }
}
