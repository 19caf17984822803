//! What must not run, and what must not be lost, in the corners of pausing: answers by address, rules,
//! calls that are held back, stores that fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ApprovalRule, ApprovalScope, BudgetLimit,
    CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage, ClaimOutcome, Error,
    ErrorKind, FinishReason, IChatClient, IRunStore, InMemoryRunStore, Result, RunClaim, RunId,
    RunRecord, ToolApprovalResponse, ToolDeclaration, ToolOutcome, ToolResult, WriteOutcome,
    validate_history,
};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingOptions, PolicyDecision, policy_fn};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{
    ExecutionMode, ExecutionOptions, IToolMiddleware, IToolSource, Next, RegisteredTool, ToolError,
    ToolInvocation, ToolOutput, ToolRegistry,
};
use serde_json::{Value, json};

fn request_ids(response: &AgentResponse) -> Vec<String> {
    let pending = response.pending.iter();
    pending
        .filter_map(|call| call.request_id().map(str::to_owned))
        .collect()
}

/// Runs the first leg, to its pause: the conversation from then on, and what the leg came to.
async fn pause(
    agent: &Arc<dyn IChatClient>,
    options: ChatClientRunOptions,
) -> (Vec<ChatMessage>, AgentResponse) {
    let mut conversation = vec![ChatMessage::user("go")];
    let paused = agent
        .get_response(&conversation, options)
        .await
        .expect("a pause");
    conversation.extend(paused.messages.clone());
    (conversation, paused)
}

fn yes(request_id: &str) -> ChatClientRunOptions {
    ChatClientRunOptions::new()
        .with_tool_approval_responses([ToolApprovalResponse::approve(request_id)])
}

fn sequential() -> FunctionInvokingOptions {
    let execution = ExecutionOptions::new().with_mode(ExecutionMode::Sequential);
    FunctionInvokingOptions::new().with_execution(execution)
}

#[tokio::test(start_paused = true)]
async fn e2_an_answer_by_address_is_for_the_question_that_it_was_given_for() {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let told = Arc::clone(&seen);
    let tool = ScriptedTool::new("pay").always(Behaviour::custom(move |context, _| {
        let told = Arc::clone(&told);
        async move {
            let Some(back) = context.resumption() else {
                return Err(ToolError::interrupt(json!("pay 10?"), json!(1)));
            };
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(json!([back.state, back.data]));
            match told.len() {
                1 => Err(ToolError::interrupt(json!("pay 10000?"), json!(2))),
                _ => Ok("paid".into()),
            }
        }
    }));
    let model = ScriptedChatClient::new([Reply::calls([("c1", "pay", "{}")]), Reply::text("ok")]);
    let agent = model
        .into_builder()
        .function_invoking([tool])
        .build()
        .unwrap();
    let mut conversation = vec![ChatMessage::user("go")];
    let first = agent
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    conversation.extend(first.messages);
    let address = first.pending[0].address().unwrap();
    let answer = || {
        let answer = ToolApprovalResponse::resume(&address, json!("yes"));
        ChatClientRunOptions::new().with_tool_approval_responses([answer])
    };
    let second = agent.get_response(&conversation, answer()).await.unwrap();
    conversation.extend(second.messages);
    assert_eq!(second.pending.len(), 1);
    assert_ne!(second.pending[0].address().unwrap(), address);
    let again = agent
        .get_response(&conversation, answer())
        .await
        .unwrap_err();
    assert_eq!(again.code(), Some("already_settled"));
    assert_eq!(*seen.lock().unwrap(), [json!([1, "yes"])]);
}

#[tokio::test(start_paused = true)]
async fn d1_arguments_that_a_rule_allowed_may_not_change_around_the_call() {
    #[derive(Debug)]
    struct Raises(Arc<AtomicBool>);
    #[async_trait]
    impl IToolMiddleware for Raises {
        async fn around(
            &self,
            mut call: ToolInvocation,
            next: Next<'_>,
        ) -> Result<ToolOutput, ToolError> {
            if self.0.load(Ordering::SeqCst) {
                call.arguments.insert("amount".into(), json!(10_000));
            }
            next.run(call).await
        }
    }
    let raises = Arc::new(AtomicBool::new(false));
    let tool = ScriptedTool::returning("pay", "paid").gated();
    let arguments = r#"{"amount":1}"#;
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "pay", arguments)]),
        Reply::calls([("c2", "pay", arguments)]),
        Reply::text("ok"),
    ]);
    let middleware = Raises(Arc::clone(&raises));
    let options = FunctionInvokingOptions::new()
        .with_execution(ExecutionOptions::new().with_middleware(middleware));
    let agent = model
        .into_builder()
        .function_invoking_with([tool.clone()], options)
        .build()
        .unwrap();
    let session = |options: ChatClientRunOptions| options.with_session_id("s");
    let (conversation, paused) = pause(&agent, session(ChatClientRunOptions::new())).await;
    let answer = ToolApprovalResponse::approve(request_ids(&paused)[0].clone())
        .with_remember(ApprovalScope::ArgumentsInSession);
    let options = ChatClientRunOptions::new().with_tool_approval_responses([answer]);
    let mut updates = agent.run(&conversation, session(options)).await.unwrap();
    let mut outcomes = Vec::new();
    while let Some(update) = updates.next().await {
        if let AgentResponseUpdate::ToolCalled { result, .. } = update.unwrap() {
            outcomes.push(result.outcome());
            raises.store(true, Ordering::SeqCst);
        }
    }
    assert_eq!(
        tool.log().entries(),
        1,
        "the second call's body is not entered"
    );
    assert!(
        outcomes[0].is_ok() && outcomes[1].is_error(),
        "{outcomes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn c1_a_call_that_is_held_back_is_not_told_as_started_after_a_drop() {
    let slow = ScriptedTool::new("slow").gated().always(Behaviour::hang());
    let gated = ScriptedTool::returning("gated", "g").gated();
    let plain = ScriptedTool::returning("plain", "p");
    let model = ScriptedChatClient::new([
        Reply::calls([
            ("c1", "slow", "{}"),
            ("c2", "gated", "{}"),
            ("c3", "plain", "{}"),
        ]),
        Reply::text("ok"),
    ]);
    let agent = model
        .into_builder()
        .function_invoking_with([slow.clone(), gated, plain.clone()], sequential())
        .build()
        .unwrap();
    let (conversation, paused) = pause(&agent, ChatClientRunOptions::new()).await;
    let ids = request_ids(&paused);
    let mut updates = agent.run(&conversation, yes(&ids[0])).await.unwrap();
    while let Some(update) = updates.next().await {
        if matches!(update, Ok(AgentResponseUpdate::ToolStarted { .. })) {
            break;
        }
    }
    drop(updates);
    let ended = agent
        .get_response(&conversation, yes(&ids[1]))
        .await
        .unwrap();
    let outcomes: Vec<_> = ended
        .messages
        .iter()
        .flat_map(ChatMessage::tool_results)
        .map(|result| (result.name().to_owned(), result.outcome()))
        .collect();
    let cancelled = ToolOutcome::Cancelled { started: true };
    assert_eq!(
        outcomes,
        [
            ("slow".to_owned(), cancelled),
            ("gated".to_owned(), ToolOutcome::Ok),
            ("plain".to_owned(), ToolOutcome::Ok)
        ]
    );
    assert_eq!((slow.log().entries(), plain.log().entries()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn d10_a_call_that_is_held_back_meets_the_gate_that_its_tool_has_by_then() {
    for denies in [false, true] {
        let gated = ScriptedTool::returning("gated", "g").gated();
        let plain = ScriptedTool::returning("plain", "p");
        let registry = |plain: ScriptedTool| {
            let tools = [plain, gated.clone()].map(|tool| RegisteredTool::new(tool).unwrap());
            ToolRegistry::from_tools(tools).unwrap()
        };
        let source = Arc::new(RwLock::new(registry(plain.clone())));
        let model = ScriptedChatClient::new([
            Reply::calls([("c1", "gated", "{}"), ("c2", "plain", "{}")]),
            Reply::text("ok"),
        ]);
        let policy = policy_fn(move |call| {
            if denies && call.tool == "plain" && call.requires_approval {
                PolicyDecision::Deny { reason: None }
            } else {
                PolicyDecision::Inherit
            }
        });
        let options = sequential()
            .with_tool_source(Arc::clone(&source))
            .with_approval_policy(policy);
        let agent = model
            .into_builder()
            .function_invoking_with(ToolRegistry::new(), options)
            .build()
            .unwrap();
        let (conversation, paused) = pause(&agent, ChatClientRunOptions::new()).await;
        *source.write().unwrap() = registry(plain.clone().gated());
        let next = agent
            .get_response(&conversation, yes(&request_ids(&paused)[0]))
            .await
            .unwrap();
        assert_eq!(plain.log().entries(), 0);
        let expected = if denies {
            FinishReason::Stop
        } else {
            FinishReason::AwaitingApproval
        };
        assert_eq!(next.finish_reason, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn c3_an_error_names_the_run_that_waits() {
    let gated = ScriptedTool::returning("gated", "g").gated();
    let model = ScriptedChatClient::new([Reply::calls([("c1", "gated", "{}")]).usage(5, 5)]);
    let agent = model
        .into_builder()
        .function_invoking([gated])
        .build()
        .unwrap();
    let (conversation, paused) = pause(&agent, ChatClientRunOptions::new()).await;
    let error = agent
        .get_response(&conversation, yes("nope"))
        .await
        .unwrap_err();
    let leg = error.leg().unwrap();
    assert_eq!(leg.run_id, paused.run_id);
    assert_eq!(leg.run_usage, paused.run_usage);
    assert_eq!(leg.pending, paused.pending);
}

#[tokio::test(start_paused = true)]
async fn h1_a_tool_source_that_hangs_is_cancelled_and_timed_out() {
    #[derive(Debug)]
    struct Hangs;
    #[async_trait]
    impl IToolSource for Hangs {
        async fn tools(&self) -> Result<Vec<RegisteredTool>> {
            std::future::pending().await
        }
    }
    let agent = ScriptedChatClient::new([])
        .into_builder()
        .function_invoking_with(
            ToolRegistry::new(),
            FunctionInvokingOptions::new().with_tool_source(Hangs),
        )
        .build()
        .unwrap();
    let messages = [ChatMessage::user("x")];
    let deadline = ChatClientRunOptions::new().with_deadline(Duration::from_millis(100));
    let late = agent.get_response(&messages, deadline).await.unwrap();
    assert_eq!(
        late.finish_reason,
        FinishReason::Budget(BudgetLimit::Deadline)
    );
    let token = CancellationToken::new();
    let options = ChatClientRunOptions::new().with_cancellation(token.clone());
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        token.cancel();
    };
    let (ended, ()) = tokio::join!(agent.get_response(&messages, options), stop);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn i4_a_result_goes_to_the_declared_call_whatever_else_has_its_id() {
    let gated = ScriptedTool::returning("gated", "g").gated();
    let model = ScriptedChatClient::new([Reply::calls([
        ("x", "gated", "{}"),
        ("x", "declared", "{}"),
    ])]);
    let agent = model
        .into_builder()
        .function_invoking([gated])
        .build()
        .unwrap();
    let options = || ChatClientRunOptions::new().with_tools([ToolDeclaration::new("declared", "")]);
    let (mut conversation, paused) = pause(&agent, options()).await;
    assert_eq!(paused.pending.len(), 2);
    conversation.push(ChatMessage::tool(ToolResult::ok("x", "from the caller")));
    let next = agent.get_response(&conversation, options()).await.unwrap();
    assert_eq!(next.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(next.pending.len(), 1);
    assert!(next.pending[0].approval().is_some());
}

#[tokio::test(start_paused = true)]
async fn f1_wall_time_ends_a_batch_between_its_bodies() {
    let tool =
        ScriptedTool::new("f").always(Behaviour::text("x").after_sleep(Duration::from_secs(50)));
    let calls: Vec<String> = (0..8).map(|index| format!("c{index}")).collect();
    let calls = calls.iter().map(|id| (id.as_str(), "f", "{}"));
    let model = ScriptedChatClient::new([Reply::calls(calls)]);
    let options = sequential().with_max_wall_time(Duration::from_secs(60));
    let agent = model
        .into_builder()
        .function_invoking_with([tool.clone()], options)
        .build()
        .unwrap();
    let ended = agent
        .get_response(&[ChatMessage::user("x")], ChatClientRunOptions::new())
        .await
        .unwrap();
    assert_eq!(tool.log().entries(), 2);
    assert_eq!(
        ended.finish_reason,
        FinishReason::Budget(BudgetLimit::WallTime)
    );
    assert_eq!(
        validate_history(&raf_core::normalise(&ended.messages)),
        Ok(())
    );
}

/// A store whose rules cannot be read or written while the flags are up.
#[derive(Debug, Default)]
struct Rules {
    inner: InMemoryRunStore,
    unreadable: AtomicUsize,
    unwritable: AtomicUsize,
}

#[async_trait]
impl IRunStore for Rules {
    async fn create(&self, record: &RunRecord, claim: Option<&RunClaim>) -> Result<WriteOutcome> {
        self.inner.create(record, claim).await
    }
    async fn load(&self, run_id: &RunId) -> Result<Option<RunRecord>> {
        self.inner.load(run_id).await
    }
    async fn claim(&self, run_id: &RunId, claim: &RunClaim) -> Result<ClaimOutcome> {
        self.inner.claim(run_id, claim).await
    }
    async fn release(&self, run_id: &RunId, claim: &RunClaim) -> Result<()> {
        self.inner.release(run_id, claim).await
    }
    async fn save(&self, record: &RunRecord) -> Result<WriteOutcome> {
        self.inner.save(record).await
    }
    async fn find_request(&self, request_id: &str) -> Result<Option<RunId>> {
        self.inner.find_request(request_id).await
    }
    async fn list_open(&self, session_id: Option<&str>) -> Result<Vec<RunRecord>> {
        self.inner.list_open(session_id).await
    }
    async fn expire(&self) -> Result<usize> {
        self.inner.expire().await
    }
    async fn remember(&self, scope: &str, rule: ApprovalRule) -> Result<()> {
        if self.unwritable.load(Ordering::SeqCst) > 0 {
            return Err(Error::new(ErrorKind::Store, "down"));
        }
        self.inner.remember(scope, rule).await
    }
    async fn remembered(&self, scope: &str) -> Result<Vec<ApprovalRule>> {
        if self.unreadable.load(Ordering::SeqCst) > 0 {
            return Err(Error::new(ErrorKind::Store, "down"));
        }
        self.inner.remembered(scope).await
    }
}

#[tokio::test(start_paused = true)]
async fn a2_rules_that_cannot_be_read_leave_no_call_open() {
    let store = Arc::new(Rules::default());
    store.unreadable.store(1, Ordering::SeqCst);
    let tool = ScriptedTool::returning("f", "x");
    let model = ScriptedChatClient::new([Reply::calls([("c1", "f", "{}")])]);
    let agent = model
        .into_builder()
        .function_invoking_with(
            [tool.clone()],
            FunctionInvokingOptions::new().with_run_store(store),
        )
        .build()
        .unwrap();
    let error = agent
        .get_response(&[ChatMessage::user("x")], ChatClientRunOptions::new())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert_eq!(validate_history(&error.leg().unwrap().messages), Ok(()));
    assert_eq!(tool.log().entries(), 0);
}

#[tokio::test(start_paused = true)]
async fn e3_a_rule_that_cannot_be_written_does_not_swallow_the_yes() {
    let store = Arc::new(Rules::default());
    store.unwritable.store(1, Ordering::SeqCst);
    let tool = ScriptedTool::returning("f", "x").gated();
    let model = ScriptedChatClient::new([Reply::calls([("c1", "f", "{}")]), Reply::text("ok")]);
    let agent = model
        .into_builder()
        .function_invoking_with(
            [tool.clone()],
            FunctionInvokingOptions::new().with_run_store(store.clone()),
        )
        .build()
        .unwrap();
    let (conversation, paused) = pause(&agent, ChatClientRunOptions::new()).await;
    let always = || {
        let answer = ToolApprovalResponse::approve(request_ids(&paused)[0].clone());
        let answer = answer.with_remember(ApprovalScope::ToolInSession);
        ChatClientRunOptions::new().with_tool_approval_responses([answer])
    };
    let error = agent
        .get_response(&conversation, always())
        .await
        .unwrap_err();
    assert_eq!(
        error.leg().unwrap().pending,
        paused.pending,
        "still pending"
    );
    assert_eq!(tool.log().entries(), 0);
    store.unwritable.store(0, Ordering::SeqCst);
    let done = agent.get_response(&conversation, always()).await.unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!(tool.log().entries(), 1);
}
