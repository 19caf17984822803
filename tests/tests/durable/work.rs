//! The work of these tests: a model that goes by the conversation alone, and a tool whose entries count.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient, IRunStore, MessageRole, RunId};
use raf_framework::{AgentTool, FunctionInvokingChatClient, RunStoreOptionsExt};
use raf_testing::{Reply, ScriptedChatClient, ScriptedRequest, ScriptedTool};
use raf_tools::ToolRegistry;

/// A lease that no slow machine lets lapse.
pub(crate) const LEASE: Duration = Duration::from_secs(60);
/// More than a lease, less than a lifetime: what a dead process held has lapsed.
pub(crate) const AHEAD: Duration = Duration::from_hours(1);
pub(crate) const ANSWER: &str = "All is paid.";

/// A model that pays so many times in each turn, one call a round, then answers. Any process gives the same
/// reply.
pub(crate) fn model(rounds: usize) -> ScriptedChatClient {
    ScriptedChatClient::always(Reply::from_fn(move |request: &ScriptedRequest| {
        let question = |message: &ChatMessage| message.role() == MessageRole::User;
        let turn = request.messages.iter().rposition(question).unwrap_or(0);
        let asked = request.messages[turn..]
            .iter()
            .filter(|message| message.tool_calls().next().is_some())
            .count();
        if asked < rounds {
            let id = format!("call_{}", request.messages.len());
            Reply::new().call(&id, "pay", &format!(r#"{{"n":{asked}}}"#))
        } else {
            Reply::text(ANSWER)
        }
    }))
}

/// A loop of that model with one tool.
pub(crate) fn client(rounds: usize, pay: &Arc<ScriptedTool>) -> Arc<dyn IChatClient> {
    Arc::new(FunctionInvokingChatClient::new(
        Arc::new(model(rounds)),
        tools(pay),
    ))
}

/// A loop whose model asks an agent once, then answers.
pub(crate) fn asking(agent: &'static str, client: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
    let model = ScriptedChatClient::always(Reply::from_fn(move |request: &ScriptedRequest| {
        let asked = |message: &ChatMessage| message.tool_calls().next().is_some();
        if request.messages.iter().any(asked) {
            Reply::text(ANSWER)
        } else {
            Reply::new().call("call", agent, r#"{"task":"Pay."}"#)
        }
    }));
    let agent = AgentTool::new(agent, "Pays.", client);
    let tools = ToolRegistry::builder().with_tool(agent).build();
    Arc::new(FunctionInvokingChatClient::new(
        Arc::new(model),
        tools.expect("tools"),
    ))
}

pub(crate) fn tools(pay: &Arc<ScriptedTool>) -> ToolRegistry {
    let tools = ToolRegistry::builder().with_shared_tool(pay.clone());
    tools.build().expect("tools")
}

pub(crate) fn options(store: &Arc<dyn IRunStore>, run_id: &RunId) -> ChatClientRunOptions {
    ChatClientRunOptions::new()
        .with_run_store(Arc::clone(store))
        .with_run_id(run_id.clone())
}

pub(crate) async fn is_closed(store: &Arc<dyn IRunStore>, run_id: &RunId) -> bool {
    let record = store.load(run_id).await.expect("the store");
    record.is_some_and(|record| record.closed)
}
