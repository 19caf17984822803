//! The configuration of an agent: what it is made of, checked once, when it is built.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use raf_core::{
    BusyPolicy, ChatClientBuilder, ChatClientRunOptions, Error, IChatClient, LoopMarker,
    ResponseFormat, Result, SessionView, ToolChoice,
};
use raf_tools::schemars::JsonSchema;
use raf_tools::{IToolSource, ToolRegistry, TypedOutput};
use serde::de::DeserializeOwned;

use super::context::IContextProvider;
use super::context_client::ContextChatClient;
use super::runtime::AgentRuntime;
use super::settings;
use crate::approving::{ApprovingChatClient, IApprovalHandler};
use crate::builder_ext::ChatClientBuilderExt;
use crate::configuring::merge;
use crate::function_invoking::AskedBy;
use crate::function_invoking::{FunctionInvokingOptions, IRunHook};
use crate::into_tools::IntoTools;

/// What an agent is made of. Immutable; every setting was checked when it was built.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    client: Arc<dyn IChatClient>,
    defaults: ChatClientRunOptions,
    history: SessionView,
    busy_policy: BusyPolicy,
}

impl AgentConfig {
    /// Starts a configuration on a client: a provider, or a stack of layers on one.
    pub fn builder(client: impl IChatClient + 'static) -> AgentConfigBuilder {
        AgentConfigBuilder::new(Arc::new(client))
    }

    /// The agent's name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What the agent is for.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The whole stack of the agent.
    pub fn client(&self) -> &Arc<dyn IChatClient> {
        &self.client
    }

    /// How much of a session a run sees.
    pub fn history(&self) -> SessionView {
        self.history
    }

    /// What a run does if another writes to its session.
    pub fn busy_policy(&self) -> BusyPolicy {
        self.busy_policy
    }

    /// The options of a run, laid over the agent's.
    pub(super) fn run_options(&self, options: &ChatClientRunOptions) -> ChatClientRunOptions {
        let mut options = merge::merge(&self.defaults, options, &ChatClientRunOptions::new());
        // People are told who asks.
        if let Some(name) = &self.name {
            options.extensions.insert(AskedBy(name.clone()));
        }
        options
    }
}

/// Builds an [`AgentConfig`], or the agent at once.
pub struct AgentConfigBuilder {
    client: Arc<dyn IChatClient>,
    name: Option<String>,
    description: Option<String>,
    instructions: Option<String>,
    tools: Vec<ToolRegistry>,
    pub(super) limits: FunctionInvokingOptions,
    /// What was set that only a loop of the agent's own can hold to.
    pub(super) needs_loop: Vec<&'static str>,
    approving: Option<Box<dyn FnOnce(ChatClientBuilder) -> ChatClientBuilder + Send>>,
    providers: Vec<Arc<dyn IContextProvider>>,
    pub(super) defaults: ChatClientRunOptions,
    output: Option<ResponseFormat>,
    history: SessionView,
    busy_policy: BusyPolicy,
    faults: Vec<Error>,
}

impl AgentConfigBuilder {
    /// Starts on a client.
    pub fn new(client: Arc<dyn IChatClient>) -> Self {
        Self {
            client,
            name: None,
            description: None,
            instructions: None,
            tools: Vec::new(),
            limits: FunctionInvokingOptions::default(),
            needs_loop: Vec::new(),
            approving: None,
            providers: Vec::new(),
            defaults: ChatClientRunOptions::new(),
            output: None,
            history: SessionView::default(),
            busy_policy: BusyPolicy::default(),
            faults: Vec::new(),
        }
    }

    /// Names the agent: the name of its tool, where it is one.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Says what the agent is for: the description of its tool, where it is one.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the instructions: the system message of each request, in no transcript.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the model. Default: that of the client.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.defaults.model = Some(model.into());
        self
    }

    /// Adds tools: a registry or a list of tools.
    pub fn tools(mut self, tools: impl IntoTools) -> Self {
        self.needs_loop.push("tools");
        match tools.into_tools() {
            Ok(tools) => self.tools.push(tools),
            Err(fault) => self.faults.push(fault),
        }
        self
    }

    /// Adds a source of tools that is asked before each request.
    pub fn tool_source(mut self, source: impl IToolSource + 'static) -> Self {
        self.needs_loop.push("tool_source");
        self.limits = self.limits.with_tool_source(source);
        self
    }

    /// Sets the most model requests of a run. Default: 10.
    pub fn max_rounds(mut self, rounds: u32) -> Self {
        self.needs_loop.push("max_rounds");
        self.limits.max_rounds = rounds;
        self
    }

    /// Sets the most tool calls of a run, those of nested agents included. Default: no limit.
    pub fn max_calls(mut self, calls: u32) -> Self {
        self.needs_loop.push("max_calls");
        self.limits.max_calls = Some(calls);
        self
    }

    /// Sets how long one call of a tool may take, in seconds. Default: 60.
    pub fn tool_timeout_secs(mut self, seconds: u64) -> Self {
        self.needs_loop.push("tool_timeout_secs");
        self.limits.execution.deadline = Some(Duration::from_secs(seconds));
        self
    }

    /// Changes any limit or policy of the loop, starting from what is set so far:
    /// `limits(|limits| limits.with_wrap_up(true))`.
    pub fn limits(
        mut self,
        change: impl FnOnce(FunctionInvokingOptions) -> FunctionInvokingOptions,
    ) -> Self {
        self.needs_loop.push("limits");
        self.limits = change(self.limits);
        self
    }

    /// Adds what looks into each run, and may change, veto or end it.
    pub fn hook(mut self, hook: impl IRunHook + 'static) -> Self {
        self.needs_loop.push("hook");
        self.limits = self.limits.with_hook(hook);
        self
    }

    /// Settles what runs wait for by a handler, a closure for example.
    pub fn approving(mut self, handler: impl IApprovalHandler + 'static) -> Self {
        self.approving = Some(Box::new(|builder| {
            builder.layer(ApprovingChatClient::layer(handler))
        }));
        self
    }

    /// Adds a context provider behind those added before.
    pub fn context_provider(mut self, provider: impl IContextProvider + 'static) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Sets the options of runs that do not say otherwise: temperature, tool choice, and so on. The
    /// model that was set stays, unless these name one.
    pub fn run_options(mut self, mut options: ChatClientRunOptions) -> Self {
        options.model = options.model.or(self.defaults.model);
        self.defaults = options;
        self
    }

    /// Asks each run for an answer in a type: see
    /// [`ask_typed`](AgentRuntime::ask_typed), which also reads it.
    pub fn output<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        match TypedOutput::<T>::new() {
            Ok(output) => self.output = Some(output.response_format()),
            Err(fault) => self.faults.push(fault),
        }
        self
    }

    /// Sets how much of a session a run sees. Default: everything.
    pub fn history(mut self, view: SessionView) -> Self {
        self.history = view;
        self
    }

    /// Sets what a run does if another writes to its session. Default: it is refused.
    pub fn busy_sessions(mut self, policy: BusyPolicy) -> Self {
        self.busy_policy = policy;
        self
    }

    /// Sets what a configuration file says: a JSON object with any of `name`, `description`,
    /// `instructions`, `model`, `temperature`, `max_output_tokens`, `max_rounds`, `max_calls`,
    /// `max_wall_time_secs`, `tool_timeout_secs`, `max_parallel_tools`, `wrap_up`. Any other key is
    /// refused by [`build`](Self::build).
    pub fn settings(self, settings: serde_json::Value) -> Self {
        match settings::read(settings) {
            Ok(settings) => settings.apply(self),
            Err(fault) => self.fault(fault),
        }
    }

    pub(super) fn fault(mut self, fault: Error) -> Self {
        self.faults.push(fault);
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// As [`build_config`](Self::build_config).
    pub fn build(self) -> Result<AgentRuntime> {
        self.build_config().map(AgentRuntime::new)
    }

    /// The configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) for the first setting that is
    /// wrong or does not go with another, and what to do about it.
    pub fn build_config(mut self) -> Result<AgentConfig> {
        if !self.faults.is_empty() {
            return Err(self.faults.remove(0));
        }
        let has_loop = self.client.service(TypeId::of::<LoopMarker>()).is_some();
        self.check(has_loop)?;
        let mut builder = ChatClientBuilder::from_shared(self.client);
        if self.instructions.is_some() || !self.providers.is_empty() {
            let (instructions, providers) = (self.instructions, self.providers);
            builder = builder.layer(ContextChatClient::layer(move |context| {
                let context = match instructions {
                    Some(instructions) => context.with_instructions(instructions),
                    None => context,
                };
                providers
                    .into_iter()
                    .fold(context, ContextChatClient::with_provider)
            }));
        }
        if let Some(approving) = self.approving {
            builder = approving(builder);
        }
        if !has_loop {
            let tools = self.tools.iter().flat_map(|tools| tools.tools().to_vec());
            let tools = ToolRegistry::from_tools(tools.collect::<Vec<_>>())?;
            builder = builder.function_invoking_with(tools, self.limits);
        }
        let mut defaults = self.defaults;
        if self.output.is_some() {
            defaults.response_format = self.output;
        }
        Ok(AgentConfig {
            name: self.name,
            description: self.description,
            client: builder.build()?,
            defaults,
            history: self.history,
            busy_policy: self.busy_policy,
        })
    }

    fn check(&self, has_loop: bool) -> Result<()> {
        let wrong = |text: String| Err(Error::configuration(text));
        if let (true, Some(setting)) = (has_loop, self.needs_loop.first()) {
            return wrong(format!(
                "`{setting}` was set for an agent whose client has a function-invoking loop already: \
                 set it on that loop, or give the client below the loop"
            ));
        }
        if self.limits.max_rounds == 0 {
            return wrong(
                "`max_rounds` is 0, so that no request could be made: set at least 1".into(),
            );
        }
        if self.limits.execution.deadline == Some(Duration::ZERO) {
            return wrong(
                "`tool_timeout_secs` is 0, so that every call would time out: set at least 1, \
                 or `limits` with an execution deadline of `None` for none"
                    .into(),
            );
        }
        if self
            .defaults
            .model
            .as_deref()
            .is_some_and(|model| model.trim().is_empty())
        {
            return wrong(
                "`model` is blank: name one, or leave it out for that of the client".into(),
            );
        }
        let per_run = !self.defaults.tool_approval_responses.is_empty()
            || self.defaults.paused_run.is_some()
            || self.defaults.session_id.is_some();
        if per_run {
            return wrong(
                "`run_options` of an agent hold answers, a paused run or a session: these \
                 belong to one run, give them with its `AgentRequest`"
                    .into(),
            );
        }
        if self.output.is_some() && self.defaults.response_format.is_some() {
            return wrong(
                "both `output` and a response format in `run_options` say what an answer \
                 looks like: leave one out"
                    .into(),
            );
        }
        if matches!(
            self.history,
            SessionView::LastTurns(0) | SessionView::LastMessages(0)
        ) {
            return wrong("`history` shows nothing of a session: show at least 1".into());
        }
        let can_call = has_loop
            || !self.tools.is_empty()
            || !self.limits.tool_sources.is_empty()
            || !self.providers.is_empty()
            || !self.defaults.tools.is_empty();
        let forced = self
            .defaults
            .tool_choice
            .as_ref()
            .is_some_and(ToolChoice::is_forced);
        if forced && !can_call {
            return wrong(
                "the tool choice forces a call, and the agent has no tools: add `tools`, or \
                 leave the choice out"
                    .into(),
            );
        }
        Ok(())
    }
}

impl fmt::Debug for AgentConfigBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConfigBuilder")
            .field("name", &self.name)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
