//! The approval layer: what a handler settles goes on in the same stream, what it leaves open passes
//! through.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ApprovalRequest, ApprovalScope, CancellationToken,
    ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, IChatClient,
    ResponseFold, Result, ToolApprovalResponse, ToolDeclaration, ToolOutcome, ToolResult, WaitsFor,
    normalise,
};
use raf_framework::{
    ApprovalAnswer, ApprovingChatClient, ChatClientBuilderExt, HandlerError, IApprovalHandler,
    PendingQuestion, QuestionAnswer,
};
use raf_testing::invariants::{assert_holds, check_prefixes, check_requests, check_updates};
use raf_testing::{
    Behaviour, Latch, Reply, ScriptedChatClient, ScriptedTool, drop_after_polls, transcript_lines,
};
use raf_tools::ToolRegistry;
use serde_json::json;

/// A stack of approval layer, loop and scripted model.
struct Stack {
    model: ScriptedChatClient,
    client: Arc<dyn IChatClient>,
}

impl Stack {
    fn new(
        replies: impl IntoIterator<Item = Reply>,
        tools: &[&ScriptedTool],
        handler: impl IApprovalHandler + 'static,
    ) -> Self {
        Self::with(replies, tools, handler, |approving| approving)
    }

    fn with(
        replies: impl IntoIterator<Item = Reply>,
        tools: &[&ScriptedTool],
        handler: impl IApprovalHandler + 'static,
        configure: impl FnOnce(ApprovingChatClient) -> ApprovingChatClient + Send + 'static,
    ) -> Self {
        let model = ScriptedChatClient::new(replies);
        let mut registry = ToolRegistry::builder();
        for tool in tools {
            registry = registry.with_tool((*tool).clone());
        }
        let client = model
            .clone()
            .into_builder()
            .layer(ApprovingChatClient::layer_with(handler, configure))
            .function_invoking(registry.build().expect("good tools"))
            .build()
            .expect("a good stack");
        Self { model, client }
    }

    async fn read(&self, options: ChatClientRunOptions) -> Vec<Result<AgentResponseUpdate>> {
        let question = [ChatMessage::user("go")];
        let stream = self
            .client
            .run(&question, options)
            .await
            .expect("it starts");
        let items: Vec<_> = stream.collect().await;
        assert_holds(check_updates(&items));
        assert_holds(check_requests(&self.model.requests()));
        assert_holds(check_prefixes(&self.model.requests()));
        items
    }

    /// The response; that what was sent last is what the caller has, is checked (B2).
    async fn respond(&self) -> AgentResponse {
        let response = fold(&self.read(ChatClientRunOptions::new()).await);
        if response.finish_reason == FinishReason::Stop {
            let mut whole = vec![ChatMessage::user("go")];
            whole.extend(response.messages.clone());
            whole.pop();
            let sent = self.model.requests().pop().expect("a request").messages;
            assert_eq!(
                transcript_lines(&sent),
                transcript_lines(&normalise(&whole))
            );
        }
        response
    }
}

fn fold(items: &[Result<AgentResponseUpdate>]) -> AgentResponse {
    let mut fold = ResponseFold::new();
    for item in items {
        fold.push(item.as_ref().expect("no failure"));
    }
    fold.finish().expect("a whole stream")
}

fn kinds(items: &[Result<AgentResponseUpdate>]) -> Vec<&'static str> {
    let kinds = items.iter().map(|item| match item {
        Ok(update) => update.kind(),
        Err(_) => "err",
    });
    kinds.collect()
}

fn waiting(response: &AgentResponse) -> Vec<&str> {
    let calls = response.pending.iter().map(|pending| pending.call.id());
    calls.collect()
}

fn gated(name: &str) -> ScriptedTool {
    ScriptedTool::returning(name, format!("{name}: done")).gated()
}

fn call(id: &str, tool: &str) -> Reply {
    Reply::calls([(id, tool, "{}")]).usage(10, 1)
}

async fn yes(_: ApprovalRequest) -> ApprovalAnswer {
    ApprovalAnswer::approve()
}

async fn silence(_: ApprovalRequest) -> Option<ApprovalAnswer> {
    None
}

#[tokio::test(start_paused = true)]
async fn a_yes_runs_the_call_and_the_stream_goes_on() {
    let delete = gated("delete");
    let replies = [call("c1", "delete"), Reply::text("gone").usage(20, 2)];
    let stack = Stack::new(replies, &[&delete], yes);
    let items = stack.read(ChatClientRunOptions::new()).await;
    assert_eq!(
        kinds(&items),
        [
            "message_start",
            "tool_call_start",
            "tool_call_args",
            "tool_call_end",
            "usage",
            "message_end",
            "tool_approval_request",
            "tool_started",
            "tool_called",
            "message_start",
            "text_delta",
            "usage",
            "message_end",
            "finish",
        ]
    );
    let response = fold(&items);
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.text(), "gone");
    assert_eq!(response.usage.input_tokens, Some(30));
    assert_eq!(response.run_usage, response.usage);
    assert_eq!(response.rounds.len(), 2);
    assert!(response.pending.is_empty() && response.paused_run.is_none());
    assert_eq!(response.messages.len(), 3);
    assert_eq!(delete.log().entries(), 1);
    stack.model.assert_done();
}

#[tokio::test(start_paused = true)]
async fn settled_requests_can_be_hidden_and_open_ones_are_still_seen() {
    let tools = [gated("delete"), gated("pay")];
    let only_delete =
        async |request: ApprovalRequest| (request.tool == "delete").then(ApprovalAnswer::approve);
    let both = Reply::calls([("c1", "delete", "{}"), ("c2", "pay", "{}")]);
    let hide = |approving: ApprovingChatClient| approving.with_settled_requests_hidden(true);
    let stack = Stack::with([both], &[&tools[0], &tools[1]], only_delete, hide);
    let items = stack.read(ChatClientRunOptions::new()).await;
    let announced: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            Ok(AgentResponseUpdate::ToolApprovalRequest { request }) => Some(&*request.tool),
            _ => None,
        })
        .collect();
    assert_eq!(announced, ["pay"]);
    assert_eq!(waiting(&fold(&items)), ["c2"]);
    assert_eq!(tools[0].log().entries(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_denial_reaches_the_model_with_its_reason() {
    let delete = gated("delete");
    let no = async |_: ApprovalRequest| ApprovalAnswer::deny("not on a Friday");
    let stack = Stack::new([call("c1", "delete"), Reply::text("ok")], &[&delete], no);
    let response = stack.respond().await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    let result = response.messages[1].tool_results().next().unwrap();
    assert_eq!(result.outcome(), ToolOutcome::Denied);
    assert_eq!(result.text(), "Rejected: not on a Friday");
    assert_eq!(delete.log().entries(), 0);
}

#[tokio::test(start_paused = true)]
async fn edited_arguments_are_what_runs() {
    let pay = gated("pay");
    let less = async |request: ApprovalRequest| {
        assert_eq!(request.arguments, json!({"amount": 500}));
        ApprovalAnswer::approve_edited(json!({"amount": 5}))
    };
    let replies = [
        Reply::calls([("c1", "pay", r#"{"amount": 500}"#)]),
        Reply::text("paid"),
    ];
    let stack = Stack::new(replies, &[&pay], less);
    let response = stack.respond().await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    let arguments = &pay.log().calls()[0].arguments;
    assert_eq!(json!(arguments), json!({"amount": 5}));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_do_not_fit_are_refused_and_the_call_passes_through() {
    let pay = gated("pay").with_parameters(&json!({
        "type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"],
    }));
    let wrong =
        async |_: ApprovalRequest| ApprovalAnswer::approve_edited(json!({"amount": "much"}));
    let reply = Reply::calls([("c1", "pay", r#"{"amount": 500}"#)]).usage(10, 1);
    for hidden in [false, true] {
        let stack = Stack::with([reply.clone()], &[&pay], wrong, move |approving| {
            approving.with_settled_requests_hidden(hidden)
        });
        let items = stack.read(ChatClientRunOptions::new()).await;
        assert!(kinds(&items).contains(&"tool_approval_refused"));
        assert!(kinds(&items).contains(&"tool_approval_request"));
        let response = fold(&items);
        assert_eq!(response.finish_reason, FinishReason::AwaitingApproval);
        assert_eq!(waiting(&response), ["c1"]);
        assert_eq!(response.usage.input_tokens, Some(10));
        assert!(response.paused_run.is_some());
    }
    assert_eq!(pay.log().entries(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_open_passes_through_and_is_resumed_by_the_caller() {
    let (delete, pay) = (gated("delete"), gated("pay"));
    let only_delete =
        async |request: ApprovalRequest| (request.tool == "delete").then(ApprovalAnswer::approve);
    let both = Reply::calls([("c1", "pay", "{}"), ("c2", "delete", "{}")]).usage(10, 1);
    let replies = [both, Reply::text("both done").usage(20, 2)];
    let stack = Stack::new(replies, &[&delete, &pay], only_delete);
    let response = stack.respond().await;
    assert_eq!(response.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(waiting(&response), ["c1"]);
    assert_eq!((delete.log().entries(), pay.log().entries()), (1, 0));

    let WaitsFor::Approval(request) = &response.pending[0].waits_for else {
        panic!("{:?}", response.pending)
    };
    let yes = ToolApprovalResponse::approve(&request.request_id);
    let mut conversation = vec![ChatMessage::user("go")];
    conversation.extend(response.messages);
    let options = ChatClientRunOptions::new().with_tool_approval_responses([yes]);
    let rest = stack.client.get_response(&conversation, options).await;
    let rest = rest.unwrap();
    assert_eq!(rest.text(), "both done");
    assert_eq!(rest.run_usage.input_tokens, Some(30));
    assert_eq!((delete.log().entries(), pay.log().entries()), (1, 1));
    assert_eq!(
        stack.model.requests()[1].lines(),
        [
            "U:go",
            "A:[c1,c2]",
            "R(c1, ok: 'pay: done')",
            "R(c2, ok: 'delete: done')"
        ]
    );
    assert_holds(check_prefixes(&stack.model.requests()));
}

#[tokio::test(start_paused = true)]
async fn several_pauses_in_one_stream_and_a_yes_for_the_session() {
    let delete = gated("delete");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let remember = move |_: ApprovalRequest| {
        let asked = count.fetch_add(1, Ordering::SeqCst);
        std::future::ready(match asked {
            0 => ApprovalAnswer::approve(),
            _ => ApprovalAnswer::approve().with_remember(ApprovalScope::ToolInSession),
        })
    };
    let delete_all = (1..=4).map(|n| {
        let arguments = format!(r#"{{"n": {n}}}"#);
        Reply::calls([("c", "delete", arguments.as_str())]).usage(10, 1)
    });
    let replies = delete_all.chain([Reply::text("all gone").usage(10, 1)]);
    let stack = Stack::new(replies, &[&delete], remember);
    let response = stack.respond().await;
    assert_eq!(response.text(), "all gone");
    assert_eq!(response.usage.input_tokens, Some(50));
    assert_eq!(response.rounds.len(), 5);
    assert_eq!(response.messages.len(), 9);
    assert_eq!(delete.log().entries(), 4);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_resumes_is_bounded() {
    let delete = gated("delete");
    let replies = (1..=3).map(|n| {
        let arguments = format!(r#"{{"n": {n}}}"#);
        Reply::calls([("c", "delete", arguments.as_str())])
    });
    let stack = Stack::with(replies, &[&delete], yes, |approving| {
        approving.with_max_resumes(2)
    });
    let response = stack.respond().await;
    assert_eq!(response.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(waiting(&response), ["c"]);
    assert_eq!(delete.log().entries(), 2);
    stack.model.assert_done();
}

#[tokio::test(start_paused = true)]
async fn silence_errors_and_panics_are_no_yes_and_are_not_repeated() {
    async fn fails(_: ApprovalRequest) -> Result<ApprovalAnswer, std::fmt::Error> {
        Err(std::fmt::Error)
    }
    async fn panics(_: ApprovalRequest) -> ApprovalAnswer {
        panic!("the handler is broken")
    }
    fn panics_at_once(_: ApprovalRequest) -> std::future::Ready<ApprovalAnswer> {
        panic!("the handler is broken")
    }
    let handlers: [Arc<dyn IApprovalHandler>; 4] = [
        Arc::new(silence),
        Arc::new(fails),
        Arc::new(panics),
        Arc::new(panics_at_once),
    ];
    for handler in handlers {
        let delete = gated("delete");
        let stack = Stack::new([call("c1", "delete")], &[&delete], handler);
        let response = stack.respond().await;
        assert_eq!(response.finish_reason, FinishReason::AwaitingApproval);
        assert_eq!(waiting(&response), ["c1"]);
        assert!(response.messages[0].paused_run_id().is_some());
        assert_eq!(delete.log().entries(), 0);
    }
}

/// Answers questions; says yes to calls.
struct Desk;

#[async_trait]
impl IApprovalHandler for Desk {
    async fn decide(&self, _: &ApprovalRequest) -> Result<Option<ApprovalAnswer>, HandlerError> {
        Ok(Some(ApprovalAnswer::approve()))
    }

    async fn answer(
        &self,
        question: &PendingQuestion,
    ) -> Result<Option<QuestionAnswer>, HandlerError> {
        assert_eq!(question.call.name(), "ask");
        Ok(match question.information["question"].as_str() {
            Some("which?") => Some(QuestionAnswer::data("the red one")),
            Some("why?") => Some(QuestionAnswer::decline("that is private")),
            _ => None,
        })
    }
}

fn asking(question: &str) -> ScriptedTool {
    ScriptedTool::new("ask")
        .then(Behaviour::interrupt(
            json!({"question": question}),
            json!("kept"),
        ))
        .then(Behaviour::custom(|context, _| async move {
            let resumption = context.resumption().expect("it was interrupted").clone();
            assert_eq!(resumption.state, json!("kept"));
            Ok(resumption.data.as_str().unwrap_or_default().into())
        }))
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_tool_is_answered_declined_or_left_open() {
    let replies = || [call("c1", "ask"), Reply::text("thanks")];
    let ask = asking("which?");
    let answered = Stack::new(replies(), &[&ask], Desk).respond().await;
    let result = answered.messages[1].tool_results().next().unwrap();
    assert_eq!(result.text(), "the red one");
    assert_eq!(ask.log().entries(), 2);

    let ask = asking("why?");
    let declined = Stack::new(replies(), &[&ask], Desk).respond().await;
    let result = declined.messages[1].tool_results().next().unwrap();
    assert_eq!(result.outcome(), ToolOutcome::Denied);
    assert_eq!(result.text(), "Rejected: that is private");
    assert_eq!(ask.log().entries(), 1);

    let ask = asking("when?");
    let open = Stack::new(replies(), &[&ask], Desk).respond().await;
    assert_eq!(open.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(waiting(&open), ["c1"]);

    // A closure answers no questions.
    let ask = asking("which?");
    let open = Stack::new(replies(), &[&ask], yes).respond().await;
    assert_eq!(waiting(&open), ["c1"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_declared_only_tools_pass_through() {
    let delete = gated("delete");
    let both = Reply::calls([("c1", "delete", "{}"), ("c2", "pick", "{}")]);
    let stack = Stack::new([both, Reply::text("done")], &[&delete], yes);
    let declared = ChatClientRunOptions::new().with_tools([ToolDeclaration::new("pick", "")]);
    let response = fold(&stack.read(declared.clone()).await);
    assert_eq!(response.finish_reason, FinishReason::AwaitingToolResults);
    assert_eq!(waiting(&response), ["c2"]);
    assert_eq!(delete.log().entries(), 1);
    let mut conversation = vec![ChatMessage::user("go")];
    conversation.extend(response.messages);
    conversation.push(ChatMessage::tool(ToolResult::ok("c2", "picked")));
    let rest = stack.client.get_response(&conversation, declared).await;
    assert_eq!(rest.unwrap().text(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_while_the_handler_waits_ends_the_leg_and_the_call_stays_open() {
    let delete = gated("delete");
    let handler_dropped = Arc::new(Mutex::new(None));
    let dropped = Arc::clone(&handler_dropped);
    let waits = move |_: ApprovalRequest| {
        let alive = Arc::new(());
        *dropped.lock().unwrap() = Some(Arc::downgrade(&alive));
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            ApprovalAnswer::approve()
        }
    };
    let stack = Stack::new([call("c1", "delete")], &[&delete], waits);
    let token = CancellationToken::new();
    let options = ChatClientRunOptions::new().with_cancellation(token.clone());
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        token.cancel();
    };
    let (items, ()) = tokio::join!(stack.read(options), cancel);
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let leg = error.leg().unwrap();
    assert_eq!(leg.pending.len(), 1);
    assert_eq!(leg.usage.input_tokens, Some(10));
    assert_eq!(leg.messages.len(), 1);
    assert!(leg.run_id.is_some());
    let handler = handler_dropped.lock().unwrap().take().unwrap();
    assert!(handler.upgrade().is_none());

    // A later answer is taken.
    let WaitsFor::Approval(request) = &leg.pending[0].waits_for else {
        panic!("{:?}", leg.pending)
    };
    let mut conversation = vec![ChatMessage::user("go")];
    conversation.extend(leg.messages.clone());
    stack.model.push(Reply::text("gone"));
    let yes = ToolApprovalResponse::approve(&request.request_id);
    let options = ChatClientRunOptions::new().with_tool_approval_responses([yes]);
    let rest = stack.client.get_response(&conversation, options).await;
    assert_eq!(rest.unwrap().text(), "gone");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_over_all_legs() {
    let delete = gated("delete");
    let slow = async |_: ApprovalRequest| {
        tokio::time::sleep(Duration::from_secs(40)).await;
        ApprovalAnswer::approve()
    };
    let replies = (1..=9).map(|n| {
        let arguments = format!(r#"{{"n": {n}}}"#);
        Reply::calls([("c", "delete", arguments.as_str())])
    });
    let stack = Stack::new(replies, &[&delete], slow);
    let options = ChatClientRunOptions::new().with_deadline(Duration::from_secs(100));
    let started = tokio::time::Instant::now();
    let response = fold(&stack.read(options).await);
    assert_eq!(started.elapsed(), Duration::from_secs(100));
    assert_eq!(response.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(waiting(&response), ["c"]);
    assert_eq!(delete.log().entries(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_after_a_resume_carries_everything() {
    let delete = gated("delete");
    let broken = Reply::text("I have").error(raf_core::Error::new(ErrorKind::Server, "down"));
    let replies = [call("c1", "delete"), broken];
    let stack = Stack::new(replies, &[&delete], yes);
    let items = stack.read(ChatClientRunOptions::new()).await;
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    let leg = error.leg().unwrap();
    assert_eq!(leg.usage.input_tokens, Some(10));
    assert_eq!(
        transcript_lines(&leg.messages)[..2],
        ["A:[c1]", "R(c1, ok: 'delete: done')"]
    );
    assert_eq!(leg.messages.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn requests_are_put_one_after_another_or_at_once() {
    for (at_once, seconds) in [(1, 30), (3, 10)] {
        let delete = gated("delete");
        let slow = async |_: ApprovalRequest| {
            tokio::time::sleep(Duration::from_secs(10)).await;
            ApprovalAnswer::approve()
        };
        let three = Reply::calls([
            ("c1", "delete", r#"{"n": 1}"#),
            ("c2", "delete", r#"{"n": 2}"#),
            ("c3", "delete", r#"{"n": 3}"#),
        ]);
        let stack = Stack::with(
            [three, Reply::text("ok")],
            &[&delete],
            slow,
            move |approving| approving.with_questions_at_once(at_once),
        );
        let started = tokio::time::Instant::now();
        let response = stack.respond().await;
        assert_eq!(response.text(), "ok");
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
        assert_eq!(delete.log().entries(), 3);
    }
}

/// Wherever the stream is dropped: nothing runs on, and a body is entered once at most.
#[test]
fn dropping_the_stream_stops_handler_and_legs() {
    let runs = drop_after_polls(
        async || {
            let delete = gated("delete");
            let slow = async |_: ApprovalRequest| {
                tokio::time::sleep(Duration::from_secs(1)).await;
                ApprovalAnswer::approve()
            };
            let replies = [call("c1", "delete"), Reply::text("gone")];
            let stack = Stack::new(replies, &[&delete], slow);
            let question = [ChatMessage::user("go")];
            let stream = stack
                .client
                .run(&question, ChatClientRunOptions::new())
                .await;
            (stream.unwrap(), (stack, delete))
        },
        async |left| {
            let (stack, delete) = left.world;
            assert_eq!(stack.model.probe().live(), 0);
            assert_eq!(delete.log().running(), 0);
            assert!(delete.log().entries() <= 1);
        },
    );
    assert!(runs > 14, "{runs}");
}

/// A handler that is asked from several runs at once answers each for itself.
#[tokio::test(start_paused = true)]
async fn runs_at_the_same_time_do_not_mix() {
    let delete = gated("delete");
    let latch = Latch::new();
    let gate = latch.clone();
    let by_argument = move |request: ApprovalRequest| {
        let gate = gate.clone();
        async move {
            gate.wait().await;
            if request.arguments["n"] == 1 {
                ApprovalAnswer::approve()
            } else {
                ApprovalAnswer::deny("only the first")
            }
        }
    };
    let rule = Reply::from_fn(|request| match request.messages.len() {
        1 => {
            let arguments = format!(r#"{{"n": {}}}"#, request.user_text());
            Reply::calls([("c", "delete", arguments.as_str())])
        }
        _ => Reply::text(request.lines().pop().unwrap()),
    });
    let replies = [rule.clone(), rule.clone(), rule.clone(), rule];
    let stack = Stack::new(replies, &[&delete], by_argument);
    let run = async |n: &str| {
        let question = [ChatMessage::user(n)];
        let options = ChatClientRunOptions::new();
        let response = stack.client.get_response(&question, options).await;
        response.unwrap().text()
    };
    let (first, second, ()) = tokio::join!(run("1"), run("2"), async { latch.open() });
    assert_eq!(first, "R(c, ok: 'delete: done')");
    assert!(second.contains("only the first"), "{second}");
    assert_eq!(delete.log().entries(), 1);
}

#[tokio::test]
async fn it_belongs_outside_the_loop() {
    let inside = ScriptedChatClient::new([])
        .into_builder()
        .function_invoking(ToolRegistry::new())
        .approving(yes)
        .build();
    assert_eq!(inside.unwrap_err().kind(), ErrorKind::Configuration);
}
