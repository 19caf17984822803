//! What a caller can give that is at the edge: endless durations, a runtime without timers, a paused
//! run whose record is gone, tools that panic when they are asked what they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use raf_core::{
    CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason,
    InMemoryRunStore, PendingCall, ToolApprovalResponse, ToolDeclaration, ToolOutcome,
};
use raf_framework::{
    AgentRuntime, ChatClientBuilderExt, FunctionInvokingChatClient, FunctionInvokingOptions,
};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{
    ExecutionOptions, ITool, RegisteredTool, ToolArguments, ToolContext, ToolError, ToolLimits,
    ToolOutput, ToolRegistry, UnknownToolPolicy,
};

fn model() -> ScriptedChatClient {
    ScriptedChatClient::new([Reply::calls([("c1", "f", "{}")]), Reply::text("ok")])
}

fn client(tool: &ScriptedTool, options: FunctionInvokingOptions) -> FunctionInvokingChatClient {
    client_of(model(), tool, options)
}

fn client_of(
    model: ScriptedChatClient,
    tool: &ScriptedTool,
    options: FunctionInvokingOptions,
) -> FunctionInvokingChatClient {
    let tools = ToolRegistry::builder().with_tool(tool.clone());
    let tools = tools.build().expect("a name of its own");
    FunctionInvokingChatClient::with_options(Arc::new(model), tools, options)
}

fn go() -> [ChatMessage; 1] {
    [ChatMessage::user("go")]
}

#[tokio::test]
async fn i2_a_paused_run_whose_record_gave_way_runs_nothing_again() {
    let tool = ScriptedTool::new("f")
        .gated()
        .always(Behaviour::text("paid"));
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "f", "{}")]),
        Reply::text("ok"),
        Reply::calls([("c9", "f", "{}")]),
        Reply::text("never reached by a replay that runs"),
    ]);
    let store = Arc::new(InMemoryRunStore::new().with_max_runs(1));
    let options = FunctionInvokingOptions::new().with_run_store(store);
    let client = client_of(model, &tool, options);
    let mut conversation = go().to_vec();
    let first = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .expect("it pauses");
    conversation.extend(first.messages.clone());
    let paused = first.paused_run.clone().expect("a value");
    let request = first.pending[0].request_id().expect("a request").to_owned();
    let yes = || {
        ChatClientRunOptions::new()
            .with_paused_run(paused.clone())
            .with_tool_approval_responses([ToolApprovalResponse::approve(request.clone())])
    };
    let done = client
        .get_response(&conversation, yes())
        .await
        .expect("an answer");
    assert_eq!(done.finish_reason, FinishReason::Stop);
    let other = client
        .get_response(&[ChatMessage::user("other")], ChatClientRunOptions::new())
        .await
        .expect("it pauses");
    assert_eq!(
        other
            .pending
            .iter()
            .filter_map(PendingCall::request_id)
            .count(),
        1
    );
    let again = client.get_response(&conversation, yes()).await;
    assert_eq!(
        again.expect_err("refused").kind(),
        ErrorKind::ApprovalRefused
    );
    assert_eq!(tool.log().entries(), 1);
}

#[tokio::test]
async fn a_deadline_of_a_leg_without_end_never_comes() {
    let tool = ScriptedTool::returning("f", "x");
    let options = ChatClientRunOptions::new().with_deadline(Duration::MAX);
    let done = client(&tool, FunctionInvokingOptions::new())
        .get_response(&go(), options)
        .await;
    assert_eq!(done.expect("an answer").text(), "ok");
}

#[tokio::test]
async fn a_deadline_of_a_tool_without_end_never_comes() {
    let limits = ToolLimits::new().with_deadline(Duration::MAX);
    let tool = ScriptedTool::returning("f", "x").with_limits(limits);
    let done = client(&tool, FunctionInvokingOptions::new())
        .get_response(&go(), ChatClientRunOptions::new())
        .await;
    assert_eq!(done.expect("an answer").text(), "ok");
}

#[tokio::test]
async fn a_grace_without_end_is_waited_for() {
    let token = CancellationToken::new();
    let cancel = token.clone();
    let tool = ScriptedTool::new("f").always(Behaviour::custom(move |_, _| {
        cancel.cancel();
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(ToolOutput::from("x"))
        }
    }));
    let execution = ExecutionOptions::new().with_grace(Duration::MAX);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    let options_of_run = ChatClientRunOptions::new().with_cancellation(token);
    let stopped = client(&tool, options)
        .get_response(&go(), options_of_run)
        .await;
    assert_eq!(stopped.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    assert_eq!(tool.log().completions(), 1);
}

#[tokio::test]
async fn a_wall_time_without_end_is_lent_to_agents() {
    let inner = AgentRuntime::builder(ScriptedChatClient::new([Reply::text("inside")]))
        .name("inner")
        .description("Does it.")
        .build()
        .expect("it has all it needs");
    let outer = ScriptedChatClient::new([
        Reply::calls([("1", "inner", r#"{"task":"do"}"#)]),
        Reply::text("done"),
    ]);
    let tools = ToolRegistry::builder().with_tool(inner.as_tool().expect("it has a name"));
    let options = FunctionInvokingOptions::new().with_max_wall_time(Duration::MAX);
    let tools = tools.build().expect("a name");
    let client = FunctionInvokingChatClient::with_options(Arc::new(outer), tools, options);
    let done = client
        .get_response(&go(), ChatClientRunOptions::new())
        .await;
    assert_eq!(done.expect("an answer").text(), "done");
}

#[test]
fn a_runtime_without_timers_is_a_misuse_that_says_so() {
    let tool = ScriptedTool::returning("f", "x");
    let client = client(&tool, FunctionInvokingOptions::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let error = runtime
        .block_on(client.get_response(&go(), ChatClientRunOptions::new()))
        .expect_err("no timers");
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("enable_time"), "{error}");
    let error = client
        .get_response(&go(), ChatClientRunOptions::new())
        .now_or_never()
        .expect("at once")
        .expect_err("no runtime");
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[derive(Debug)]
struct Asked {
    declaration: ToolDeclaration,
    panics: bool,
    limits: AtomicUsize,
}

impl Asked {
    fn new(panics: bool) -> Self {
        Self {
            declaration: ToolDeclaration::new("f", ""),
            panics,
            limits: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl ITool for Asked {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn limits(&self) -> ToolLimits {
        assert!(!self.panics, "these limits");
        let asked = self.limits.fetch_add(1, Ordering::SeqCst);
        assert_eq!(asked, 0, "limits are read once");
        ToolLimits::default()
    }

    async fn call(&self, _: ToolContext, _: ToolArguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::from("x"))
    }
}

#[tokio::test]
async fn a_tool_is_asked_once_what_it_is() {
    let error = RegisteredTool::new(Asked::new(true)).expect_err("it panics");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("these limits"), "{error}");
    let registry = ToolRegistry::builder().with_tool(Asked::new(false));
    let client = model().into_builder().function_invoking(registry);
    let client = client.build().expect("one name");
    let done = client
        .get_response(&go(), ChatClientRunOptions::new())
        .await;
    assert_eq!(done.expect("an answer").text(), "ok");
}

#[tokio::test]
async fn a_handler_of_unknown_tools_that_panics_when_asked_handles_nothing() {
    let policy = UnknownToolPolicy::Handle(Arc::new(Asked::new(true)));
    let execution = ExecutionOptions::new().with_unknown_tools(policy);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    let done = client(&ScriptedTool::returning("other", "x"), options)
        .get_response(&go(), ChatClientRunOptions::new())
        .await
        .expect("an answer");
    let results: Vec<_> = done
        .messages
        .iter()
        .flat_map(ChatMessage::tool_results)
        .collect();
    assert!(matches!(results[0].outcome(), ToolOutcome::Error(_)));
    assert!(results[0].text().contains("Unknown tool 'f'"));
}
