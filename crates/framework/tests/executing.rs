//! The loop runs tools by the executor alone: its middleware and callbacks are around automatic,
//! approved and resumed calls alike, once each.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use raf_core::{
    AgentResponse, ChatClientExt, ChatClientRunOptions, ChatMessage, FinishReason, PausedRun,
    PendingCall, SkipReason, TerminationCause, ToolApprovalResponse, ToolChoice, ToolOutcome,
};
use raf_framework::{
    FunctionInvokingChatClient, FunctionInvokingOptions, HookDecision, HookRequest, IRunHook,
};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{
    CallbackCall, ExecutionOptions, IToolCallback, IToolMiddleware, Interrupt, Next, PreparingCall,
    ToolAliases, ToolArguments, ToolError, ToolInvocation, ToolOutput, ToolRegistry,
    UnknownToolPolicy,
};
use serde_json::json;

/// Writes down what passes it.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, line: String) {
        self.0.lock().expect("no test panics here").push(line);
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panics here"))
    }
}

#[async_trait]
impl IToolMiddleware for Log {
    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        self.say(format!("prepare {}", call.call.id()));
        Ok(())
    }

    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        self.say(format!("around {}", call.context.call_id()));
        next.run(call).await
    }
}

impl IToolCallback for Log {
    fn on_start(&self, call: &CallbackCall, _: &ToolArguments) {
        self.say(format!("start {}", call.context.call_id()));
    }

    fn on_end(&self, call: &CallbackCall, _: Option<&ToolOutput>) {
        self.say(format!("end {}", call.context.call_id()));
    }

    fn on_error(&self, call: &CallbackCall, _: &ToolError) {
        self.say(format!("error {}", call.context.call_id()));
    }

    fn on_interrupt(&self, call: &CallbackCall, _: &Interrupt) {
        self.say(format!("interrupt {}", call.context.call_id()));
    }
}

struct Setup {
    model: Arc<ScriptedChatClient>,
    client: FunctionInvokingChatClient,
    conversation: Vec<ChatMessage>,
}

impl Setup {
    fn new(
        replies: impl IntoIterator<Item = Reply>,
        tools: &[&ScriptedTool],
        options: FunctionInvokingOptions,
    ) -> Self {
        let mut registry = ToolRegistry::builder();
        for tool in tools {
            registry = registry.with_tool((*tool).clone());
        }
        let registry = registry.build().expect("names of their own");
        let model = Arc::new(ScriptedChatClient::new(replies));
        Self {
            client: FunctionInvokingChatClient::with_options(model.clone(), registry, options),
            model,
            conversation: vec![ChatMessage::user("go")],
        }
    }

    /// One leg; its paused run is given by value, as to another process.
    async fn leg(&mut self, before: Option<&AgentResponse>, answer: Answer) -> AgentResponse {
        let mut options = ChatClientRunOptions::new();
        if let Some(before) = before {
            let ids = before.pending.iter().filter_map(PendingCall::request_id);
            options = options.with_tool_approval_responses(ids.map(|id| match &answer {
                Answer::Yes => ToolApprovalResponse::approve(id),
                Answer::Data(data) => ToolApprovalResponse::resume(id, data.clone()),
            }));
            if let Some(paused) = &before.paused_run {
                let paused = serde_json::to_string(paused).expect("a record serialises");
                let paused: PausedRun = serde_json::from_str(&paused).expect("and back");
                options = options.with_paused_run(paused);
            }
        }
        let response = self.client.get_response(&self.conversation, options).await;
        let response = response.expect("the leg ends well");
        self.conversation.extend(response.messages.clone());
        response
    }
}

fn registry_of(tool: &ScriptedTool) -> ToolRegistry {
    let tools = ToolRegistry::builder().with_tool(tool.clone());
    tools.build().expect("a name of its own")
}

enum Answer {
    Yes,
    Data(serde_json::Value),
}

fn with(execution: ExecutionOptions) -> FunctionInvokingOptions {
    FunctionInvokingOptions::new().with_execution(execution)
}

fn lines_of<'a>(log: &'a [String], id: &str) -> Vec<&'a str> {
    log.iter()
        .filter_map(|line| line.strip_suffix(id))
        .map(str::trim_end)
        .collect()
}

#[tokio::test]
async fn d1_automatic_approved_and_resumed_calls_pass_the_same_middleware_and_callbacks_once() {
    let auto = ScriptedTool::returning("auto", "A");
    let gated = ScriptedTool::returning("gated", "G").gated();
    let asks = ScriptedTool::new("asks").always(Behaviour::interrupt(json!("which?"), json!(1)));
    let log = Log::default();
    let execution = ExecutionOptions::new()
        .with_middleware(log.clone())
        .with_callback(log.clone());
    let replies = [
        Reply::calls([("c1", "auto", "{}"), ("c2", "gated", "{}")]),
        Reply::calls([("c3", "asks", "{}")]),
        Reply::text("done"),
    ];
    let mut setup = Setup::new(replies, &[&auto, &gated, &asks], with(execution));
    let first = setup.leg(None, Answer::Yes).await;
    assert_eq!(first.finish_reason, FinishReason::AwaitingApproval);
    let said = log.said();
    assert_eq!(lines_of(&said, "c1"), ["prepare", "around", "start", "end"]);
    assert_eq!(lines_of(&said, "c2"), ["prepare"]);

    let second = setup.leg(Some(&first), Answer::Yes).await;
    assert_eq!(second.finish_reason, FinishReason::AwaitingApproval);
    let said = log.said();
    assert!(lines_of(&said, "c1").is_empty(), "it had finished");
    assert_eq!(lines_of(&said, "c2"), ["around", "start", "end"]);
    let asked = ["prepare", "around", "start", "interrupt"];
    assert_eq!(lines_of(&said, "c3"), asked);

    let third = setup.leg(Some(&second), Answer::Data(json!("this"))).await;
    assert_eq!(third.finish_reason, FinishReason::Stop);
    let said = log.said();
    assert_eq!(lines_of(&said, "c3"), ["around", "start", "end"]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(setup.model.request_count(), 3);
}

#[tokio::test]
async fn te_w23_limits_count_a_tool_by_its_canonical_name() {
    let search = ScriptedTool::returning("search", "found");
    let aliases = ToolAliases::new().with_name("search", "find");
    let options = with(ExecutionOptions::new().with_aliases(aliases)).with_max_calls_per_tool(2);
    let replies = [
        Reply::calls([
            ("c1", "search", r#"{"n":1}"#),
            ("c2", "find", r#"{"n":2}"#),
            ("c3", "find", r#"{"n":3}"#),
        ]),
        Reply::text("done"),
    ];
    let mut setup = Setup::new(replies, &[&search], options);
    let response = setup.leg(None, Answer::Yes).await;
    assert_eq!(search.log().entries(), 2);
    let last = response.messages.iter().flat_map(ChatMessage::tool_results);
    assert_eq!(
        last.last().expect("each call has a result").outcome(),
        ToolOutcome::skipped(SkipReason::Limit)
    );
}

#[tokio::test]
async fn te_w23_a_gated_alias_is_asked_about_and_resumed_by_its_canonical_name() {
    let search = ScriptedTool::new("search")
        .gated()
        .always(Behaviour::echo());
    let aliases = ToolAliases::new()
        .with_name("search", "find")
        .with_key("search", "query", "q");
    let replies = [
        Reply::calls([("c1", "find", r#"{"q":"x"}"#)]),
        Reply::text("done"),
    ];
    let options = with(ExecutionOptions::new().with_aliases(aliases));
    let mut setup = Setup::new(replies, &[&search], options);
    let paused = setup.leg(None, Answer::Yes).await;
    let request = paused.pending[0].approval().expect("it is gated");
    assert_eq!(request.tool, "search");
    assert_eq!(request.arguments, json!({"query": "x"}));
    let done = setup.leg(Some(&paused), Answer::Yes).await;
    assert_eq!(done.finish_reason, FinishReason::Stop);
    let calls = search.log().calls();
    assert_eq!(json!(calls[0].arguments), json!({"query": "x"}));
}

#[tokio::test]
async fn te_a_handler_of_unknown_tools_that_asks_is_found_again_by_the_loop() {
    let handler = ScriptedTool::new("handler").always(Behaviour::interrupt(json!("?"), json!(1)));
    let policy = UnknownToolPolicy::Handle(Arc::new(handler.clone()));
    let replies = [Reply::calls([("c1", "ghost", "{}")]), Reply::text("done")];
    let options = with(ExecutionOptions::new().with_unknown_tools(policy));
    let mut setup = Setup::new(replies, &[], options);
    let paused = setup.leg(None, Answer::Yes).await;
    assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
    let done = setup.leg(Some(&paused), Answer::Data(json!("found"))).await;
    assert_eq!(done.finish_reason, FinishReason::Stop);
    let result = done.messages[0].tool_results().next().expect("a result");
    assert_eq!(result.text(), "found");
    let attempts: Vec<u32> = handler
        .log()
        .calls()
        .iter()
        .map(|call| call.attempt)
        .collect();
    assert_eq!(attempts, [1, 2]);
}

#[tokio::test]
async fn d5_a_middleware_ends_the_run() {
    #[derive(Debug)]
    struct Ends;
    #[async_trait]
    impl IToolMiddleware for Ends {
        async fn around(&self, _: ToolInvocation, _: Next<'_>) -> Result<ToolOutput, ToolError> {
            Err(ToolError::terminate("enough"))
        }
    }
    let f = ScriptedTool::returning("f", "x");
    let replies = [Reply::calls([("c1", "f", "{}")])];
    let options = with(ExecutionOptions::new().with_middleware(Ends));
    let mut setup = Setup::new(replies, &[&f], options);
    let response = setup.leg(None, Answer::Yes).await;
    let cause = TerminationCause::Middleware;
    assert_eq!(response.finish_reason, FinishReason::Terminated(cause));
    assert_eq!((f.log().entries(), setup.model.request_count()), (0, 1));
}

/// Forbids what the caller did not.
#[derive(Debug)]
struct ForbidsCalls;

#[async_trait]
impl IRunHook for ForbidsCalls {
    async fn before_request(&self, request: &mut HookRequest) -> HookDecision {
        request.options.tool_choice = Some(ToolChoice::None);
        HookDecision::GoOn
    }
}

/// Some servers let a model call although the request says `none`: nobody approved that.
#[tokio::test]
async fn f2_a_call_of_a_reply_that_was_to_hold_none_is_not_run_and_the_model_is_told() {
    for by_hook in [false, true] {
        for gated in [false, true] {
            let tool = ScriptedTool::returning("f", "ran");
            let tool = if gated { tool.gated() } else { tool };
            let hidden = ScriptedTool::returning("hidden", "ran");
            let seen = Log::default();
            let mut options = with(ExecutionOptions::new().with_middleware(seen.clone()))
                .with_additional_tools(registry_of(&hidden));
            let mut run = ChatClientRunOptions::new();
            if by_hook {
                options = options.with_hook(ForbidsCalls);
            } else {
                run = run.with_tool_choice(ToolChoice::None);
            }
            let model = Arc::new(ScriptedChatClient::new([
                Reply::calls([("c1", "f", "{}"), ("c2", "hidden", "{}")]),
                Reply::text("as you wish"),
            ]));
            let client = FunctionInvokingChatClient::with_options(
                model.clone(),
                registry_of(&tool),
                options,
            );
            let answer = client.get_response(&[ChatMessage::user("go")], run).await;
            let answer = answer.expect("an answer");
            assert_eq!(answer.finish_reason, FinishReason::Stop);
            assert_eq!(answer.text(), "as you wish");
            assert!(answer.pending.is_empty());
            assert_eq!((tool.log().entries(), hidden.log().entries()), (0, 0));
            assert_eq!(seen.said(), Vec::<String>::new());
            let results: Vec<_> = answer
                .messages
                .iter()
                .flat_map(ChatMessage::tool_results)
                .collect();
            assert_eq!(results.len(), 2);
            for (result, id) in results.iter().zip(["c1", "c2"]) {
                assert_eq!(result.call_id(), id);
                let outcome = ToolOutcome::skipped(SkipReason::Limit);
                assert_eq!(result.outcome(), outcome);
                assert!(result.text().contains("tool choice `none`"), "{result:?}");
            }
            assert_eq!(model.request_count(), 2);
        }
    }
}

/// Where nothing is declared no choice is sent, and a model may know of a hidden tool all the same.
#[tokio::test]
async fn f2_a_hidden_tool_is_not_run_either_where_the_caller_wanted_no_calls() {
    let hidden = ScriptedTool::returning("hidden", "ran");
    let options = FunctionInvokingOptions::new().with_additional_tools(registry_of(&hidden));
    let model =
        ScriptedChatClient::new([Reply::calls([("c1", "hidden", "{}")]), Reply::text("ok")]);
    let client =
        FunctionInvokingChatClient::with_options(Arc::new(model), ToolRegistry::new(), options);
    let run = ChatClientRunOptions::new().with_tool_choice(ToolChoice::None);
    let answer = client.get_response(&[ChatMessage::user("go")], run).await;
    let answer = answer.expect("an answer");
    assert_eq!(hidden.log().entries(), 0);
    assert_eq!(answer.text(), "ok");
}
