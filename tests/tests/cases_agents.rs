//! The cases about agents: approval across serialisation with everything attached (C09), one budget
//! (fx11), interrupts at depth (te20).
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, future::join_all};
use raf_core::{
    AgentResponse, AgentResponseUpdate, ApprovalRequest, BudgetLimit, ChatMessage, FinishReason,
    ISession, InMemorySessionStore, Result, Session, SessionChange, SessionRecord,
    ToolApprovalResponse, ToolErrorClass, ToolOutcome, collect, validate_history,
};
use raf_framework::{
    AgentConfigBuilder, AgentRequest, AgentRuntime, ApprovalAnswer, ContextOutcome, ContextRequest,
    IContextProvider, ProvidedContext,
};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ITool, IToolMiddleware, Next, ToolError, ToolInvocation, ToolOutput};
use serde_json::json;

/// An agent of a script and tools.
fn agent(
    name: &str,
    replies: impl IntoIterator<Item = Reply>,
    tools: Vec<Arc<dyn ITool>>,
) -> AgentConfigBuilder {
    AgentRuntime::builder(ScriptedChatClient::new(replies))
        .name(name)
        .description("Does it.")
        .tools(tools)
}

fn task(id: &str, tool: &str) -> Reply {
    Reply::calls([(id, tool, r#"{"task": "do it"}"#)])
}

/// A run in both forms: the fold of the stream, and the updates themselves.
async fn play(
    agent: &AgentRuntime,
    request: AgentRequest,
) -> (AgentResponse, Vec<AgentResponseUpdate>) {
    let items: Vec<_> = agent.run(request).collect().await;
    let updates = items.iter().map(|item| item.clone().unwrap()).collect();
    let response = collect(futures::stream::iter(items)).await.unwrap();
    (response, updates)
}

/// Remembers how many legs there were, and says so.
#[derive(Debug, Default)]
struct Memory(std::sync::atomic::AtomicUsize);

#[async_trait]
impl IContextProvider for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn provide(&self, _: &ContextRequest<'_>) -> Result<ProvidedContext> {
        let legs = self.0.load(std::sync::atomic::Ordering::SeqCst);
        Ok(ProvidedContext::new().with_message(format!("{legs} legs").as_str()))
    }

    async fn finished(&self, _: &ContextOutcome<'_>) -> Result<()> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
}

#[derive(Debug)]
struct Passing;

#[async_trait]
impl IToolMiddleware for Passing {
    async fn around(
        &self,
        invocation: ToolInvocation,
        next: Next<'_>,
    ) -> std::result::Result<ToolOutput, ToolError> {
        next.run(invocation).await
    }
}

/// State to bytes, and in a new process back to state.
async fn reload(session: &Session, id: &str) -> Session {
    let bytes = serde_json::to_vec(&session.load().await.unwrap()).unwrap();
    let record: SessionRecord = serde_json::from_slice(&bytes).unwrap();
    let session = Session::new(Arc::new(InMemorySessionStore::new()), id);
    let change = SessionChange::messages(record.messages).with_paused_run(record.paused_run);
    let _ = session.write(0, change).await.unwrap();
    session
}

#[tokio::test]
async fn c09_variant_with_a_context_provider_and_middleware_attached() {
    let tool = ScriptedTool::returning("weather", "rain").gated();
    let log = tool.log().clone();
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "weather", r#"{"city":"A"}"#)]),
        Reply::text("Rain."),
        Reply::text("Welcome."),
    ]);
    let process = || {
        AgentRuntime::builder(model.clone())
            .instructions("Be kind.")
            .tools([tool.clone()])
            .context_provider(Memory::default())
            .limits(|mut limits| {
                limits.execution = limits.execution.with_middleware(Passing);
                limits
            })
            .build()
            .unwrap()
    };
    let session = Session::new(Arc::new(InMemorySessionStore::new()), "s");
    let request = AgentRequest::new("weather in A?").in_session(session.clone());
    let (paused, updates) = play(&process(), request).await;
    assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
    let mut asked = count_requests(&updates);
    let session = reload(&session, "s").await;
    let answer = ToolApprovalResponse::approve(paused.pending[0].request_id().unwrap());
    let request = AgentRequest::answers([answer]).in_session(session.clone());
    let (done, updates) = play(&process(), request).await;
    assert_eq!(
        (done.text().as_str(), done.finish_reason),
        ("Rain.", FinishReason::Stop)
    );
    asked += count_requests(&updates);
    let session = reload(&session, "s").await;
    let request = AgentRequest::new("thanks").in_session(session.clone());
    let (thanks, updates) = play(&process(), request).await;
    assert_eq!(thanks.finish_reason, FinishReason::Stop);
    asked += count_requests(&updates);
    assert_eq!((asked, log.entries()), (1, 1));
    let front = ["S:Be kind.", "U:0 legs"];
    let second = ["U:weather in A?", "A:[c1]", "R(c1, ok: 'rain')"];
    assert_eq!(model.requests()[1].lines(), [&front[..], &second].concat());
    let third = [&front[..], &second, &["A:Rain.", "U:thanks"]].concat();
    assert_eq!(model.requests()[2].lines(), third);
}

fn count_requests(updates: &[AgentResponseUpdate]) -> usize {
    fn is_request(update: &AgentResponseUpdate) -> bool {
        match update {
            AgentResponseUpdate::ToolApprovalRequest { .. }
            | AgentResponseUpdate::ToolInterrupted { .. } => true,
            AgentResponseUpdate::Nested { nested, .. } => is_request(&nested.update),
            _ => false,
        }
    }
    updates.iter().filter(|update| is_request(update)).count()
}

#[tokio::test]
async fn fx11_nested_loops_and_auto_approval_share_one_budget() {
    let gated = ScriptedTool::returning("gated", "x").gated();
    let log = gated.log().clone();
    let yes = |_: ApprovalRequest| async { ApprovalAnswer::approve() };
    let sub = |name: &str| {
        let replies = [
            Reply::calls([("s1", "gated", "{}"), ("s2", "gated", "{}")]),
            Reply::calls([("s3", "gated", "{}")]),
            Reply::text("enough"),
        ];
        let tools: Vec<Arc<dyn ITool>> = vec![Arc::new(gated.clone())];
        let sub = agent(name, replies, tools).approving(yes).build().unwrap();
        Arc::new(sub.as_tool().unwrap()) as Arc<dyn ITool>
    };
    let replies = [
        task("c1", "first"),
        task("c2", "second"),
        task("c3", "first"),
    ];
    let outer = agent("outer", replies, vec![sub("first"), sub("second")])
        .approving(yes)
        .max_calls(6)
        .build()
        .unwrap();
    let (response, _) = play(&outer, "go".into()).await;
    // Six: the first agent and its three calls, the second and one of its own.
    assert_eq!(log.entries(), 4);
    assert_eq!(
        response.finish_reason,
        FinishReason::Budget(BudgetLimit::Calls)
    );
    validate_history(&response.messages).unwrap();
}

/// outer → middle → inner → leaves: a gated one, one that asks.
fn three_levels(leaves: Vec<Arc<dyn ITool>>, calls: Reply) -> AgentRuntime {
    let inner = agent("inner", [calls, Reply::text("inner done")], leaves)
        .build()
        .unwrap();
    let inner = Arc::new(inner.as_tool().unwrap());
    let middle = agent(
        "middle",
        [task("m1", "inner"), Reply::text("middle done")],
        vec![inner],
    );
    let middle = Arc::new(middle.build().unwrap().as_tool().unwrap());
    let sibling = Arc::new(ScriptedTool::returning("sibling", "x"));
    let first = Reply::new()
        .call("o1", "middle", r#"{"task": "do it"}"#)
        .call("o2", "sibling", "{}");
    agent("outer", [first, Reply::text("done")], vec![middle, sibling])
        .build()
        .unwrap()
}

fn leaves() -> (Vec<Arc<dyn ITool>>, ScriptedTool, ScriptedTool) {
    let gated = ScriptedTool::returning("gated", "deleted").gated();
    let asks = ScriptedTool::new("asks")
        .then(Behaviour::interrupt(
            json!("which one?"),
            json!({"kept": 1}),
        ))
        .always(Behaviour::from_fn(|context, _| {
            let answer = context.resumption().unwrap();
            assert_eq!(answer.state, json!({"kept": 1}));
            Behaviour::text(format!("chose {}", answer.data))
        }));
    (
        vec![Arc::new(gated.clone()), Arc::new(asks.clone())],
        gated,
        asks,
    )
}

#[tokio::test]
async fn te20_interrupts_at_depth_are_answered_together_or_one_by_one_and_reach_the_leaf() {
    for together in [true, false] {
        let (tools, gated, asks) = leaves();
        let outer = three_levels(
            tools,
            Reply::calls([("i1", "gated", "{}"), ("i2", "asks", "{}")]),
        );
        let session = Session::new(Arc::new(InMemorySessionStore::new()), "s");
        let request = AgentRequest::new("go").in_session(session.clone());
        let (paused, updates) = play(&outer, request).await;
        assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
        assert_eq!(count_requests(&updates), 2);
        // One pending list; each address leads from the outer call to the leaf.
        let run = paused.run_id.clone().unwrap();
        let addresses: Vec<String> = paused
            .pending
            .iter()
            .map(|call| call.address().unwrap())
            .collect();
        let expected = ["gated", "asks"]
            .iter()
            .enumerate()
            .map(|(position, leaf)| format!("{run}/0/0/middle/0/0/inner/0/{position}/{leaf}"));
        // Behind the leaf stands which of its questions it is.
        for (address, expected) in addresses.iter().zip(expected) {
            assert!(address.starts_with(&expected), "{address}");
        }
        assert_eq!(addresses.len(), 2);
        let ids: Vec<&str> = paused
            .pending
            .iter()
            .map(|call| call.request_id().unwrap())
            .collect();
        let answers = [
            ToolApprovalResponse::approve(ids[0]),
            ToolApprovalResponse::resume(ids[1], json!("b")),
        ];
        let session = reload(&session, "s").await;
        let last = if together {
            AgentRequest::answers(answers)
        } else {
            let [first, second] = answers;
            let request = AgentRequest::answers([second]).in_session(session.clone());
            let (paused, updates) = play(&outer, request).await;
            assert_eq!(paused.pending.len(), 1);
            assert_eq!(paused.pending[0].request_id(), Some(ids[0]));
            assert_eq!(count_requests(&updates), 0, "no request is announced again");
            assert_eq!((gated.log().entries(), asks.log().entries()), (0, 2));
            AgentRequest::answers([first])
        };
        let (done, updates) = play(&outer, last.in_session(session.clone())).await;
        assert_eq!(
            (done.text().as_str(), done.finish_reason),
            ("done", FinishReason::Stop)
        );
        assert_eq!(count_requests(&updates), 0);
        assert_eq!((gated.log().entries(), asks.log().entries()), (1, 2));
        let kept = session.load().await.unwrap().transcript();
        validate_history(&kept).unwrap();
        let lines = raf_testing::transcript_lines(&kept);
        let expected = [
            "U:go",
            "A:[o1,o2]",
            "R(o1, ok: 'middle done')",
            "R(o2, ok: 'x')",
            "A:done",
        ];
        assert_eq!(lines, expected);
        let late = ToolApprovalResponse::approve(ids[0]);
        let late = AgentRequest::answers([late]).in_session(session);
        let error = outer.ask(late).await.unwrap_err();
        assert_eq!(error.code(), Some("already_settled"));
    }
}

#[tokio::test]
async fn te20_wrong_answers_leave_the_leaf_waiting() {
    let (tools, gated, _) = leaves();
    let outer = three_levels(tools, Reply::calls([("i1", "gated", "{}")]));
    let session = Session::in_memory();
    let paused = outer
        .ask(AgentRequest::new("go").in_session(session.clone()))
        .await
        .unwrap();
    let id = paused.pending[0].request_id().unwrap().to_owned();
    let answer = |answer| outer.ask(AgentRequest::answers([answer]).in_session(session.clone()));
    for (wrong, code) in [
        (
            ToolApprovalResponse::resume(&id, json!(1)),
            "wrong_category",
        ),
        (ToolApprovalResponse::approve("nobody"), "unknown_request"),
        (
            ToolApprovalResponse::approve(&id).with_arguments(json!({"x": 1})),
            "args_mismatch",
        ),
    ] {
        let error = answer(wrong).await.unwrap_err();
        assert_eq!(error.code(), Some(code));
        assert_eq!(error.leg().unwrap().pending.len(), 1);
    }
    // What only the nested run can see: edited arguments that are no object.
    let edited = ToolApprovalResponse::approve_edited(&id, json!("x"));
    let still = answer(edited).await.unwrap();
    assert_eq!(still.pending[0].request_id(), Some(&*id));
    assert_eq!(gated.log().entries(), 0);
    let denied = answer(ToolApprovalResponse::deny(&id, "not today"))
        .await
        .unwrap();
    assert_eq!(denied.text(), "done");
    assert_eq!(gated.log().entries(), 0);
}

#[tokio::test]
async fn te20_a_new_message_closes_what_waits_at_depth() {
    let (tools, gated, _) = leaves();
    let outer = three_levels(tools, Reply::calls([("i1", "gated", "{}")]));
    let session = Session::in_memory();
    let paused = outer
        .ask(AgentRequest::new("go").in_session(session.clone()))
        .await
        .unwrap();
    let id = paused.pending[0].request_id().unwrap();
    let request = AgentRequest::new("leave it").in_session(session.clone());
    let (done, updates) = play(&outer, request).await;
    assert_eq!(done.text(), "done");
    let closed = updates.iter().any(|update| {
        matches!(update, AgentResponseUpdate::ToolApprovalClosed { request_id, .. } if **request_id == *id)
    });
    assert!(closed);
    let late = AgentRequest::answers([ToolApprovalResponse::approve(id)]).in_session(session);
    assert_eq!(outer.ask(late).await.unwrap_err().code(), Some("stale"));
    assert_eq!(gated.log().entries(), 0);
}

#[tokio::test]
async fn te20_an_ordinary_error_or_panic_below_is_one_ordinary_result() {
    for behaviour in [Behaviour::fatal("secret"), Behaviour::panics("secret")] {
        let leaf = ScriptedTool::new("leaf").always(behaviour);
        let outer = three_levels(vec![Arc::new(leaf)], Reply::calls([("i1", "leaf", "{}")]));
        let (done, _) = play(&outer, "go".into()).await;
        assert_eq!(done.text(), "done");
        assert!(done.pending.is_empty());
        assert!(
            !serde_json::to_string(&done.messages)
                .unwrap()
                .contains("secret")
        );
    }
    let broken = Reply::new().error(raf_core::Error::new(raf_core::ErrorKind::Server, "secret"));
    let (done, _) = play(&three_levels(vec![], broken), "go".into()).await;
    let results: Vec<ToolOutcome> = done
        .messages
        .iter()
        .flat_map(ChatMessage::tool_results)
        .map(raf_core::ToolResult::outcome)
        .collect();
    assert_eq!(results, [ToolOutcome::Ok, ToolOutcome::Ok]);
    let sub = agent("sub", [Reply::from_fn(|_| panic!("broken model"))], vec![])
        .build()
        .unwrap();
    let replies = [task("c1", "sub"), Reply::text("done")];
    let outer = agent("outer", replies, vec![Arc::new(sub.as_tool().unwrap())])
        .build()
        .unwrap();
    let (done, _) = play(&outer, "go".into()).await;
    let outcome = done.messages[1].tool_results().next().unwrap().outcome();
    assert_eq!(outcome, ToolOutcome::Error(ToolErrorClass::Panicked));
    assert_eq!(done.text(), "done");
}

#[tokio::test]
async fn ten_nested_runs_at_once_need_no_permits_of_the_outer_run() {
    let model =
        ScriptedChatClient::always(Reply::from_fn(|request| match request.lines().last() {
            Some(line) if line.starts_with("R(") => Reply::text("done"),
            _ => Reply::calls([("c", "t", "{}")]),
        }));
    let sub = AgentRuntime::builder(model)
        .name("sub")
        .description("Does it.")
        .tools([ScriptedTool::returning("t", "x")])
        .build()
        .unwrap();
    let ids: Vec<String> = (0..10).map(|id| format!("c{id}")).collect();
    let calls = ids.iter().map(|id| (&**id, "sub", r#"{"task": "do it"}"#));
    let outer = agent(
        "outer",
        [Reply::calls(calls), Reply::text("done")],
        vec![Arc::new(sub.as_tool().unwrap())],
    )
    .limits(|mut limits| {
        limits.execution = limits.execution.with_max_concurrency(1);
        limits
    })
    .build()
    .unwrap();
    let ends = join_all([outer.ask("go")]).await;
    let response = ends.into_iter().next().unwrap().unwrap();
    let nested = response
        .rounds
        .iter()
        .filter(|round| round.nested.is_some());
    assert_eq!(nested.count(), 20);
}

#[tokio::test]
async fn te20_two_nested_runs_that_wait_are_answered_in_one_leg_or_one_after_the_other() {
    for sequential in [false, true] {
        let gated = ScriptedTool::returning("gated", "x").gated();
        let model =
            ScriptedChatClient::always(Reply::from_fn(|request| match request.lines().last() {
                Some(line) if line.starts_with("R(") => Reply::text("found"),
                _ => Reply::calls([("s", "gated", "{}")]),
            }));
        let sub = AgentRuntime::builder(model)
            .name("sub")
            .description("Does it.")
            .tools([gated.clone()])
            .build()
            .unwrap();
        let task = r#"{"task": "do it"}"#;
        let replies = [
            Reply::calls([("c1", "sub", task), ("c2", "sub", task)]),
            Reply::text("done"),
        ];
        let outer = agent("outer", replies, vec![Arc::new(sub.as_tool().unwrap())])
            .limits(|mut limits| {
                if sequential {
                    limits.execution.mode = raf_tools::ExecutionMode::Sequential;
                }
                limits
            })
            .build()
            .unwrap();
        let session = Session::in_memory();
        let mut response = outer
            .ask(AgentRequest::new("go").in_session(session.clone()))
            .await
            .unwrap();
        let mut legs = 0;
        while response.finish_reason.is_pause() {
            legs += 1;
            let waiting = response
                .pending
                .iter()
                .filter_map(raf_core::PendingCall::request_id);
            let answers: Vec<_> = waiting.map(ToolApprovalResponse::approve).collect();
            assert_eq!(answers.len(), if sequential { 1 } else { 2 });
            let request = AgentRequest::answers(answers).in_session(session.clone());
            response = outer.ask(request).await.unwrap();
        }
        assert_eq!(
            (legs, gated.log().entries()),
            (if sequential { 2 } else { 1 }, 2)
        );
        assert_eq!(response.text(), "done");
        let own = response
            .rounds
            .iter()
            .filter(|round| round.nested.is_none());
        assert_eq!((own.count(), response.rounds.len()), (2, 6));
    }
}

#[tokio::test(start_paused = true)]
async fn f5_wall_time_holds_for_a_run_and_those_nested_in_it() {
    let slow = ScriptedTool::new("slow")
        .always(Behaviour::text("x").after_sleep(std::time::Duration::from_secs(3)));
    let calls = ["s1", "s2", "s3", "s4"].map(|id| Reply::calls([(id, "slow", "{}")]));
    let log = slow.log().clone();
    let sub = agent("sub", calls, vec![Arc::new(slow)]);
    let sub = sub
        .limits(|limits| limits.with_no_progress_rounds(0))
        .build()
        .unwrap();
    let outer = agent(
        "outer",
        [task("c1", "sub"), Reply::text("never")],
        vec![Arc::new(sub.as_tool().unwrap())],
    )
    .limits(|limits| limits.with_max_wall_time(std::time::Duration::from_secs(5)))
    .build()
    .unwrap();
    let response = outer.ask("go").await.unwrap();
    assert_eq!(
        response.finish_reason,
        FinishReason::Budget(BudgetLimit::WallTime)
    );
    assert_eq!(log.entries(), 2);
}
