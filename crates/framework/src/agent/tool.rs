//! An agent as a tool of another agent.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, Error, IChatClient, Result, ToolDeclaration};
use raf_tools::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits, ToolOutput};
use serde_json::json;

use super::nested_run::NestedRun;
use super::runtime::AgentRuntime;
use crate::function_invoking::AskedBy;

/// An agent that another agent can call: each call is a run of its own.
///
/// ```
/// use raf_framework::AgentRuntime;
/// use raf_testing::{Reply, ScriptedChatClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// # let small = ScriptedChatClient::new([Reply::text("Bern is a city.")]);
/// # let large = ScriptedChatClient::new([
/// #     Reply::calls([("c1", "geographer", r#"{"task": "What is Bern?"}"#)]),
/// #     Reply::text("A city."),
/// # ]);
/// let geographer = AgentRuntime::builder(small)
///     .name("geographer")
///     .description("Knows cities and rivers.")
///     .build()?;
/// let agent = AgentRuntime::builder(large).tools([geographer.as_tool()?]).build()?;
/// assert_eq!(agent.ask("What is Bern?").await?.text(), "A city.");
/// # Ok(())
/// # }
/// ```
///
/// - **Events.** What the nested run says is seen as
///   [`AgentResponseUpdate::Nested`](raf_core::AgentResponseUpdate::Nested), with the call it belongs to,
///   at any depth.
/// - **Waiting.** What the nested run waits for stands in the pending list of the run around it; answers
///   go there, by the request's id, at any depth, in any order, some or all. A request is announced once,
///   nested. A nested run that waits is part of the outer record: nothing else has to be kept.
/// - **Result.** Its answer. A run that fails, panics or ends without an answer is one error result.
/// - **Usage and limits.** Its usage is in that of the run around it, its rounds are tagged. The outer
///   run's limits on calls and wall time hold for both together.
/// - **Passed down.** Cancellation (also that of the outer deadline), session, span, extensions; the
///   tools, inbox and context that were given with the outer run are not.
/// - **No deadline** by default, and no share in the bound on bodies in flight.
#[derive(Clone, Debug)]
pub struct AgentTool {
    declaration: ToolDeclaration,
    client: Arc<dyn IChatClient>,
    options: ChatClientRunOptions,
    limits: ToolLimits,
}

impl AgentTool {
    /// A stack with a loop as a tool. Its one argument is `task`, the message that the agent gets.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        client: Arc<dyn IChatClient>,
    ) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "task": {
                    "type": "string",
                    "description": "What the agent shall do, with everything it needs to know.",
                },
            },
            "required": ["task"],
        });
        Self {
            declaration: ToolDeclaration::new(name, description).with_parameters(&parameters),
            client,
            options: ChatClientRunOptions::new(),
            limits: as_agent(ToolLimits::new()),
        }
    }

    /// Sets options of its runs: model, temperature and the like. Default: none.
    pub fn with_options(mut self, options: ChatClientRunOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets limits of its calls, a deadline for instance. It stays known as an agent.
    pub fn with_limits(mut self, limits: ToolLimits) -> Self {
        self.limits = as_agent(limits);
        self
    }
}

/// The run of an agent has a journal of its own within that of a durable run (steps.md, K5).
fn as_agent(limits: ToolLimits) -> ToolLimits {
    limits.with_agent_backed(true).with_self_resuming(true)
}

impl AgentRuntime {
    /// The agent as a tool for another one, under its name and description.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if it lacks one of them.
    pub fn as_tool(&self) -> Result<AgentTool> {
        let (Some(name), Some(description)) = (self.config().name(), self.config().description())
        else {
            return Err(Error::configuration(
                "an agent that is to be a tool needs a name and a description, by which the other \
                 agent knows when to call it: set `name` and `description` when it is built",
            ));
        };
        let tool = AgentTool::new(name, description, Arc::clone(self.client()));
        let defaults = self.config().run_options(&ChatClientRunOptions::new());
        Ok(tool.with_options(defaults))
    }
}

#[async_trait]
impl ITool for AgentTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> std::result::Result<ToolOutput, ToolError> {
        let task = arguments.get("task").and_then(serde_json::Value::as_str);
        let mut options = self.options.clone();
        options
            .extensions
            .insert(AskedBy(self.declaration.name().to_owned()));
        let run = NestedRun::begin(context, task.unwrap_or_default(), options)?;
        run.play(&*self.client).await
    }

    fn limits(&self) -> ToolLimits {
        self.limits.clone()
    }
}
