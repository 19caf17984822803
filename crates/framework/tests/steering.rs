//! What steers a run in flight from outside: the message inbox and run hooks.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, FinishReason, IChatClient, MessageSource,
    TerminationCause, ToolOutcome,
};
use raf_framework::{
    FunctionInvokingChatClient, FunctionInvokingOptions, HookBatch, HookDecision, HookReply,
    HookRequest, HookResults, IRunHook, MessageInbox, MessageInboxOptionsExt,
};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ToolOutput, ToolRegistry, tool_fn};

fn stack(
    model: &ScriptedChatClient,
    tool: ScriptedTool,
    options: FunctionInvokingOptions,
) -> impl IChatClient + use<> {
    let tools = ToolRegistry::builder().with_tool(tool).build().unwrap();
    FunctionInvokingChatClient::with_options(Arc::new(model.clone()), tools, options)
}

#[tokio::test]
async fn a5_a_message_goes_behind_the_results_of_the_open_batch() {
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "t", "{}"), ("c2", "t", "{}")]),
        Reply::text("done"),
    ]);
    let inbox = MessageInbox::new();
    let mail = inbox.clone();
    let tool = ScriptedTool::new("t").always(Behaviour::returns(move || {
        mail.push("and be quick").unwrap();
        ToolOutput::text("x")
    }));
    let client = stack(
        &model,
        tool,
        FunctionInvokingOptions::new().with_max_calls_per_turn(2),
    );
    let options = ChatClientRunOptions::new().with_message_inbox(inbox.clone());
    let response = client.get_response(&["go".into()], options).await.unwrap();
    let expected = [
        "U:go",
        "A:[c1,c2]",
        "R(c1, ok: 'x')",
        "R(c2, ok: 'x')",
        "U:and be quick",
        "U:and be quick",
    ];
    assert_eq!(model.requests()[1].lines(), expected);
    let from_inbox = |message: &&ChatMessage| message.source() == MessageSource::Inbox;
    assert_eq!(response.messages.iter().filter(from_inbox).count(), 2);
    assert!(inbox.is_empty());
    inbox.push(ChatMessage::assistant("I said so")).unwrap_err();
}

#[tokio::test]
async fn a5_a_message_that_comes_with_the_last_answer_is_answered_if_a_request_is_left() {
    for (max_rounds, expected) in [(2, "second"), (1, "first")] {
        let inbox = MessageInbox::new();
        let mail = inbox.clone();
        let late = Reply::from_fn(move |_| {
            mail.push("wait").unwrap();
            Reply::text("first")
        });
        let model = ScriptedChatClient::new([late, Reply::text("second")]);
        let options = FunctionInvokingOptions::new().with_max_rounds(max_rounds);
        let client = stack(&model, ScriptedTool::new("t"), options);
        let options = ChatClientRunOptions::new().with_message_inbox(inbox.clone());
        let response = client.get_response(&["go".into()], options).await.unwrap();
        assert_eq!(response.text(), expected);
        assert_eq!(response.finish_reason, FinishReason::Stop);
        assert_eq!(inbox.len(), usize::from(max_rounds == 1));
    }
}

#[derive(Clone, Debug, Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<String>>>,
    stop_at: Option<&'static str>,
    panic_at: Option<&'static str>,
}

impl Watcher {
    fn at(&self, place: &'static str, what: &str) -> HookDecision {
        self.seen.lock().unwrap().push(format!("{place} {what}"));
        assert!(self.panic_at != Some(place), "the hook is broken");
        match self.stop_at {
            Some(stop) if stop == place => HookDecision::Stop,
            _ => HookDecision::GoOn,
        }
    }
}

#[async_trait]
impl IRunHook for Watcher {
    async fn before_request(&self, request: &mut HookRequest) -> HookDecision {
        request.messages.insert(0, ChatMessage::system("be brief"));
        self.at("request", &request.round.to_string())
    }

    async fn after_reply(&self, reply: &HookReply) -> HookDecision {
        self.at("reply", &reply.contents.len().to_string())
    }

    async fn before_batch(&self, batch: &mut HookBatch) -> HookDecision {
        if batch.calls().len() > 1 {
            batch.veto(1, "one at a time");
        }
        self.at("batch", &batch.calls().len().to_string())
    }

    async fn after_batch(&self, results: &HookResults) -> HookDecision {
        self.at("results", &results.results.len().to_string())
    }
}

async fn with_hook(hook: Watcher) -> (Vec<String>, FinishReason, ScriptedChatClient, usize) {
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "t", "{}"), ("c2", "t", "{}")]),
        Reply::text("done"),
    ]);
    let tool = ScriptedTool::returning("t", "x");
    let log = tool.log().clone();
    let seen = Arc::clone(&hook.seen);
    let client = stack(&model, tool, FunctionInvokingOptions::new().with_hook(hook));
    let response = client
        .get_response(&["go".into()], ChatClientRunOptions::new())
        .await
        .unwrap();
    raf_core::validate_history(&raf_core::normalise(&response.messages)).unwrap();
    if response.finish_reason == FinishReason::Stop {
        let denied = |message: &ChatMessage| {
            let result = message.tool_results().next();
            result.is_some_and(|result| result.outcome() == ToolOutcome::Denied)
        };
        assert!(denied(&response.messages[2]));
        assert!(
            response.messages[2]
                .tool_results()
                .next()
                .unwrap()
                .text()
                .contains("one at a time")
        );
    } else {
        let results = response.messages.iter().flat_map(ChatMessage::tool_results);
        assert_eq!(results.count(), 2 * model.request_count());
    }
    let seen = seen.lock().unwrap().clone();
    (seen, response.finish_reason, model, log.entries())
}

#[tokio::test]
async fn a_hook_changes_a_request_and_vetoes_a_call() {
    let (seen, reason, model, entries) = with_hook(Watcher::default()).await;
    assert_eq!(reason, FinishReason::Stop);
    assert_eq!(
        seen,
        [
            "request 0",
            "reply 2",
            "batch 2",
            "results 2",
            "request 1",
            "reply 1"
        ]
    );
    assert_eq!(model.requests()[1].lines()[0], "S:be brief");
    assert_eq!(entries, 1);
}

#[tokio::test]
async fn a_hook_that_stops_or_panics_ends_the_run_and_leaves_it_valid() {
    let stopped = FinishReason::Terminated(TerminationCause::Hook);
    for (place, requests, entries) in [
        ("request", 0, 0),
        ("reply", 1, 0),
        ("batch", 1, 0),
        ("results", 1, 1),
    ] {
        for panics in [false, true] {
            let hook = Watcher {
                stop_at: (!panics).then_some(place),
                panic_at: panics.then_some(place),
                ..Watcher::default()
            };
            let (_, reason, model, entered) = with_hook(hook).await;
            assert_eq!(reason, stopped, "{place}");
            assert_eq!(
                (model.request_count(), entered),
                (requests, entries),
                "{place}"
            );
        }
    }
}

#[tokio::test]
async fn d10_a_tool_that_changes_the_tool_list_is_seen_in_the_next_request() {
    let shared = Arc::new(RwLock::new(ToolRegistry::new()));
    let list = Arc::clone(&shared);
    let install = tool_fn("install", "Adds a tool.", move |(): ()| {
        let list = Arc::clone(&list);
        async move {
            let added = tool_fn("added", "Is new.", |(): ()| async { "works" });
            *list.write().unwrap() = ToolRegistry::builder().with_tool(added).build().unwrap();
        }
    });
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "install", "{}")]),
        Reply::calls([("c2", "added", "{}")]),
        Reply::text("done"),
    ]);
    let tools = ToolRegistry::builder().with_tool(install).build().unwrap();
    let options = FunctionInvokingOptions::new().with_tool_source(shared);
    let client = FunctionInvokingChatClient::with_options(Arc::new(model.clone()), tools, options);
    client.get_text("go").await.unwrap();
    let requests = model.requests();
    assert_eq!(requests[0].tool_names(), ["install"]);
    assert_eq!(requests[1].tool_names(), ["install", "added"]);
    assert_eq!(requests[2].lines()[4], "R(c2, ok: 'works')");
}
