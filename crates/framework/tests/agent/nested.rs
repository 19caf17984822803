//! What is passed down to an agent that is a tool, and how the approval layer settles what it waits for.

use std::sync::{Arc, Mutex};

use raf_core::{
    ApprovalRequest, ApprovalScope, ChatClientRunOptions, FinishReason, Session,
    ToolApprovalResponse,
};
use raf_framework::{AgentRequest, AgentRuntime, ApprovalAnswer, MessageInbox, RunStoreOptionsExt};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ITool, ToolOptionsExt, ToolRegistry};

fn sub(
    replies: impl IntoIterator<Item = Reply>,
    tool: ScriptedTool,
) -> (Arc<dyn ITool>, ScriptedChatClient) {
    let model = ScriptedChatClient::new(replies);
    let sub = AgentRuntime::builder(model.clone())
        .name("sub")
        .description("Does it.")
        .tools([tool])
        .build()
        .unwrap();
    (Arc::new(sub.as_tool().unwrap()), model)
}

fn calls_sub(id: &str) -> Reply {
    Reply::calls([(id, "sub", r#"{"task": "do it"}"#)])
}

#[derive(Debug)]
struct Tenant(&'static str);

#[tokio::test]
async fn extensions_and_run_ids_pass_down_and_the_outer_inbox_and_tools_do_not() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let own = ScriptedTool::new("own").always(Behaviour::from_fn(move |context, _| {
        let tenant = context.extensions().get::<Tenant>().unwrap();
        let parent = context.parent_run_id().unwrap().to_string();
        log.lock()
            .unwrap()
            .push((tenant.0, parent, context.idempotency_key()));
        Behaviour::text("x")
    }));
    let (tool, inner) = sub(
        [Reply::calls([("s1", "own", "{}")]), Reply::text("found")],
        own,
    );
    let model = ScriptedChatClient::new([calls_sub("c1"), Reply::text("done")]);
    let outer = AgentRuntime::builder(model)
        .tools(vec![tool])
        .build()
        .unwrap();
    let per_run = ToolRegistry::builder()
        .with_tool(ScriptedTool::new("per_run"))
        .build()
        .unwrap();
    let options = ChatClientRunOptions::new()
        .with_extension(Tenant("acme"))
        .with_provider_tools(per_run);
    let inbox = MessageInbox::new();
    let request = AgentRequest::new("go")
        .with_options(options)
        .with_inbox(inbox.clone());
    let response = outer.ask(request).await.unwrap();
    let run = response.run_id.unwrap();
    let expected = ("acme", run.to_string(), format!("{run}/0/0/sub/0/0"));
    assert_eq!(*seen.lock().unwrap(), [expected]);
    assert_eq!(inner.requests()[0].tool_names(), ["own"]);
    assert_eq!(inner.requests()[0].lines(), ["U:do it"]);
}

#[tokio::test]
async fn the_outer_approval_layer_settles_what_waits_below_in_one_stream() {
    let gated = ScriptedTool::returning("gated", "x").gated();
    let log = gated.log().clone();
    let (tool, _) = sub(
        [Reply::calls([("s1", "gated", "{}")]), Reply::text("found")],
        gated,
    );
    let model = ScriptedChatClient::new([calls_sub("c1"), Reply::text("done")]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let outer = AgentRuntime::builder(model)
        .tools(vec![tool])
        .approving(move |request: ApprovalRequest| {
            seen.lock().unwrap().push(request.tool);
            async { ApprovalAnswer::approve() }
        })
        .build()
        .unwrap();
    let response = outer.ask("go").await.unwrap();
    assert_eq!((response.text().as_str(), log.entries()), ("done", 1));
    assert_eq!(*asked.lock().unwrap(), ["gated"]);
    assert_eq!(response.finish_reason, FinishReason::Stop);
}

#[tokio::test]
async fn a_yes_for_the_session_holds_in_the_next_nested_run_too() {
    let gated = ScriptedTool::returning("gated", "x").gated();
    let log = gated.log().clone();
    let calls = || Reply::calls([("s1", "gated", "{}")]);
    let (tool, _) = sub(
        [calls(), Reply::text("one"), calls(), Reply::text("two")],
        gated,
    );
    let model = ScriptedChatClient::new([
        calls_sub("c1"),
        Reply::text("first"),
        calls_sub("c2"),
        Reply::text("second"),
    ]);
    let outer = AgentRuntime::builder(model)
        .tools(vec![tool])
        .build()
        .unwrap();
    let session = Session::in_memory();
    let go = || AgentRequest::new("go").in_session(session.clone());
    let paused = outer.ask(go()).await.unwrap();
    let answer = ToolApprovalResponse::approve(paused.pending[0].request_id().unwrap())
        .with_remember(ApprovalScope::ToolInSession);
    let request = AgentRequest::answers([answer]).in_session(session.clone());
    assert_eq!(outer.ask(request).await.unwrap().text(), "first");
    assert_eq!(outer.ask(go()).await.unwrap().text(), "second");
    assert_eq!(log.entries(), 2);
}

#[tokio::test]
async fn a_nested_run_that_waits_is_in_the_paused_run_of_the_outer_one_alone() {
    let gated = || ScriptedTool::returning("gated", "x").gated();
    let (tool, _) = sub([Reply::calls([("s1", "gated", "{}")])], gated());
    let model = ScriptedChatClient::new([calls_sub("c1")]);
    let outer = AgentRuntime::builder(model)
        .tools(vec![tool])
        .build()
        .unwrap();
    let store = Arc::new(raf_core::InMemoryRunStore::new());
    let options = ChatClientRunOptions::new().with_run_store(store.clone());
    let request = AgentRequest::new("go").with_options(options);
    let paused = outer.ask(request).await.unwrap();
    assert_eq!(store.len(), 1);
    let bytes = serde_json::to_vec(&paused.paused_run).unwrap();

    // Another process, another store: the value is enough.
    let (tool, _) = sub([Reply::text("found")], gated());
    let model = ScriptedChatClient::new([Reply::text("done")]);
    let other = AgentRuntime::builder(model)
        .tools(vec![tool])
        .build()
        .unwrap();
    let mut conversation = vec!["go".into()];
    conversation.extend(paused.messages);
    let answer = ToolApprovalResponse::approve(paused.pending[0].request_id().unwrap());
    let options = ChatClientRunOptions::new()
        .with_paused_run(serde_json::from_slice(&bytes).unwrap())
        .with_tool_approval_responses([answer]);
    let request = AgentRequest::messages(conversation).with_options(options);
    assert_eq!(other.ask(request).await.unwrap().text(), "done");
}

#[tokio::test]
async fn an_agent_without_name_or_description_is_no_tool() {
    let agent = AgentRuntime::builder(ScriptedChatClient::new([]))
        .name("a")
        .build()
        .unwrap();
    let error = agent.as_tool().unwrap_err();
    assert!(error.to_string().contains("`description`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_outer_deadline_ends_a_nested_run() {
    let hang = ScriptedTool::new("hang").always(Behaviour::until_cancelled());
    let log = hang.log().clone();
    let (tool, _) = sub([Reply::calls([("s1", "hang", "{}")])], hang);
    let model = ScriptedChatClient::new([calls_sub("c1")]);
    let outer = AgentRuntime::builder(model)
        .tools(vec![tool])
        .build()
        .unwrap();
    let options = ChatClientRunOptions::new().with_deadline(std::time::Duration::from_secs(5));
    let response = outer
        .ask(AgentRequest::new("go").with_options(options))
        .await
        .unwrap();
    let deadline = raf_core::BudgetLimit::Deadline;
    assert_eq!(response.finish_reason, FinishReason::Budget(deadline));
    assert_eq!(log.running(), 0);
}
