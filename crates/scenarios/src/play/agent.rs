//! A tool that runs an agent: a scripted model of its own, tools of its own, a loop of its own.

use std::sync::Arc;

use raf_core::InMemoryRunStore;
use raf_framework::{AgentTool, FunctionInvokingChatClient};
use raf_testing::ToolLog;
use raf_tools::{ITool, ToolRegistry, ToolRegistryBuilder};

use super::body::{Outside, scripted};
use super::config::loop_options;
use super::model::{self, Model};
use super::player::wrapped;
use super::watch::Watch;
use crate::format::{self, Gate, Tool};

/// What is made for a tool that runs an agent.
#[derive(Default)]
pub(crate) struct Made {
    /// The logs of the tools within, at any depth; whether people are asked about each call of them.
    pub(crate) logs: Vec<(String, ToolLog, bool)>,
    /// The models within: tool, model, number of its replies.
    pub(crate) models: Vec<(String, Model, usize)>,
}

/// The tool, and what is made for it.
pub(crate) fn agent_tool(
    name: &str,
    tool: &Tool,
    agent: &format::Agent,
    outside: &Outside,
    watch: &Watch,
    made: &mut Made,
) -> Result<Arc<dyn ITool>, String> {
    let rules = agent.replies.iter().map(|reply| &reply.value);
    let (rules, replies): (Vec<_>, Vec<_>) = rules.partition(|reply| reply.when.is_some());
    let model = Model::scripted(rules.into_iter().cloned().collect(), outside);
    for reply in &replies {
        model.push(model::scripted(reply, outside));
    }
    let mut tools: Vec<Arc<dyn ITool>> = Vec::new();
    for (own, tool) in agent.tools.iter() {
        let scripted = match tool.agent() {
            Some(inner) => wrapped(
                &agent_tool(own, tool, inner, outside, watch, made)?,
                tool.gate == Gate::Always,
            ),
            None => scripted(own, tool, outside),
        };
        let is_asked = scripted.requires_approval() && agent.config.policy.is_empty();
        let log = scripted.log().clone();
        made.logs.push((own.to_owned(), log, is_asked));
        tools.push(Arc::new(scripted));
    }
    let registry = tools.into_iter().fold(
        ToolRegistry::builder(),
        ToolRegistryBuilder::with_shared_tool,
    );
    let registry = registry.build().map_err(|error| error.to_string())?;
    let store = Arc::new(InMemoryRunStore::new());
    let client = FunctionInvokingChatClient::with_options(
        watch.within(model.client()),
        registry,
        loop_options(&agent.config, store, outside),
    );
    made.models.push((name.to_owned(), model, replies.len()));
    let description = tool.description.as_deref().unwrap_or("A scripted agent.");
    let tool = AgentTool::new(name, description, Arc::new(client));
    Ok(Arc::new(tool))
}
