//! The one trait of everything that can be called.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use raf_core::{ToolDeclaration, TrustLabel};
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;

/// The arguments of a call: a JSON object that has passed the tool's schema.
pub type ToolArguments = Map<String, Value>;

/// Something that a model can call.
///
/// Most tools are made from a function: see `tool_fn`. Implement the trait for
/// tools that hold state or need more than a function can say.
///
/// # Contract
/// - [`call`](ITool::call) is entered once per call occurrence, after its arguments have passed the
///   schema, and never before an approval that the tool requires.
/// - It runs as a task of the run: it may be dropped at any `.await`, after
///   [`ToolContext::cancellation`] was signalled and a grace period went by, or when its deadline
///   passes. A body that blocks its thread cannot be stopped; use `tokio::task::spawn_blocking`.
/// - It owns what it needs: arguments and context are moved in.
/// - Name, declaration, gate, limits and trust are fixed when the tool is registered: they are read
///   once, and a panic there is a configuration error. A tool whose gate changes is registered again:
///   a source of tools is asked before every model request.
#[async_trait]
pub trait ITool: Debug + Send + Sync {
    /// What the model is told: name, description, JSON Schema of the arguments.
    fn declaration(&self) -> &ToolDeclaration;

    /// Runs the tool.
    ///
    /// # Errors
    /// A [`ToolError`]: its kind decides what the model is told and whether the run goes on.
    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError>;

    /// The name; that of the declaration.
    fn name(&self) -> &str {
        self.declaration().name()
    }

    /// Whether each call waits for a person's yes. Default: no.
    fn requires_approval(&self) -> bool {
        false
    }

    /// Deadline, concurrency and what may be done again. Default: [`ToolLimits::default`].
    fn limits(&self) -> ToolLimits {
        ToolLimits::default()
    }

    /// Whose text the results are. Default: [`TrustLabel::Untrusted`].
    fn trust(&self) -> TrustLabel {
        TrustLabel::Untrusted
    }
}

#[deny(clippy::missing_trait_methods)]
impl<T: ITool + ?Sized> ITool for Arc<T> {
    fn declaration(&self) -> &ToolDeclaration {
        (**self).declaration()
    }

    // As `async_trait` writes it: the future is handed on, not put into another one.
    fn call<'tool, 'call>(
        &'tool self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> BoxFuture<'call, Result<ToolOutput, ToolError>>
    where
        'tool: 'call,
        Self: 'call,
    {
        (**self).call(context, arguments)
    }

    fn name(&self) -> &str {
        (**self).name()
    }

    fn requires_approval(&self) -> bool {
        (**self).requires_approval()
    }

    fn limits(&self) -> ToolLimits {
        (**self).limits()
    }

    fn trust(&self) -> TrustLabel {
        (**self).trust()
    }
}

/// What holds for the calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties, each with its setter"
)]
pub struct ToolLimits {
    /// How long one call may take from its start. Default: the executor's.
    pub deadline: ToolDeadline,
    /// How many bodies of this tool may be in flight at once, over all runs of one executor.
    /// Another tool of the same name has a bound of its own, and so has one that a source makes
    /// anew each time that it is asked. Default: no limit of its own.
    pub concurrency: Option<usize>,
    /// Whether a call is a barrier: it waits for all calls before it, and those behind it wait for
    /// it. Default: no.
    pub exclusive: bool,
    /// Whether running the same call twice does no harm: it may be retried and run again after a
    /// crash. Default: no.
    pub idempotent: bool,
    /// Whether the body is an agent: it holds no shared permit, and has no deadline by default.
    pub agent_backed: bool,
    /// Whether a body that is entered again with the same key goes on where it was, from a journal of its
    /// own, so that nothing that it did is done twice: a run nested in a durable run does. Default: no.
    pub self_resuming: bool,
    /// Whether calls with the same arguments and result are its way to wait for something, so that
    /// they do not count as lack of progress. Default: no.
    pub polling: bool,
    /// The most bytes of a result's text that the model reads. Default: the executor's.
    pub max_result_bytes: Option<usize>,
}

impl ToolLimits {
    /// Limits with everything at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the deadline of a call.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = ToolDeadline::After(deadline);
        self
    }

    /// Takes the deadline away.
    pub fn without_deadline(mut self) -> Self {
        self.deadline = ToolDeadline::Never;
        self
    }

    /// Sets how many bodies may be in flight at once.
    pub fn with_concurrency(mut self, bodies: usize) -> Self {
        self.concurrency = Some(bodies);
        self
    }

    /// Makes each call a barrier.
    pub fn with_exclusive(mut self, exclusive: bool) -> Self {
        self.exclusive = exclusive;
        self
    }

    /// Says that running the same call twice does no harm.
    pub fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Says that the body is an agent.
    pub fn with_agent_backed(mut self, agent_backed: bool) -> Self {
        self.agent_backed = agent_backed;
        self
    }

    /// Says that a body that is entered again goes on where it was.
    pub fn with_self_resuming(mut self, self_resuming: bool) -> Self {
        self.self_resuming = self_resuming;
        self
    }

    /// Says that equal calls are a way to wait.
    pub fn with_polling(mut self, polling: bool) -> Self {
        self.polling = polling;
        self
    }

    /// Sets the most bytes of a result's text that the model reads.
    pub fn with_max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = Some(bytes);
        self
    }
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolDeadline {
    /// As the executor says; never for agent-backed tools.
    #[default]
    Inherit,
    /// This long.
    After(Duration),
    /// As long as it takes.
    Never,
}
