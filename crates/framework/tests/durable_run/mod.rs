//! A run in a durable store in memory, for tests of what is kept of it.

use std::sync::Arc;

use raf_core::{
    ChatClientRunOptions, ChatMessage, IRunStore, InMemoryRunStore, JournalEntry, JournalKey,
    ToolOutcome,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions, RunStoreOptionsExt};
use raf_testing::{ScriptedChatClient, ScriptedTool};
use raf_tools::ToolRegistry;

/// A store in memory that is said to last.
pub(crate) fn durable_store() -> Arc<dyn IRunStore> {
    Arc::new(InMemoryRunStore::new().with_durable(true))
}

/// The options of run "r" in this store.
pub(crate) fn run_in(store: &Arc<dyn IRunStore>) -> ChatClientRunOptions {
    ChatClientRunOptions::new()
        .with_run_store(Arc::clone(store))
        .with_run_id("r".into())
}

/// A loop of this model with these tools.
pub(crate) fn client(
    model: &ScriptedChatClient,
    tools: &[&Arc<ScriptedTool>],
    options: FunctionInvokingOptions,
) -> FunctionInvokingChatClient {
    let registry = tools
        .iter()
        .fold(ToolRegistry::builder(), |registry, tool| {
            registry.with_shared_tool(Arc::clone(*tool) as _)
        });
    let registry = registry.build().unwrap();
    FunctionInvokingChatClient::with_options(Arc::new(model.clone()), registry, options)
}

/// How the calls of this id were settled.
pub(crate) fn outcomes_of(call_id: &str, messages: &[ChatMessage]) -> Vec<ToolOutcome> {
    let results = messages.iter().flat_map(ChatMessage::tool_results);
    let of_call = results.filter(|result| result.call_id() == call_id);
    of_call.map(raf_core::ToolResult::outcome).collect()
}

/// What the journal of run "r" has.
pub(crate) async fn journal(store: &Arc<dyn IRunStore>) -> Vec<JournalEntry> {
    store
        .journal(&JournalKey::root("r".into()), 0)
        .await
        .unwrap()
}
