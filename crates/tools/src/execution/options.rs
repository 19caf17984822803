//! Limits and policies of the execution engine.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::callbacks::IToolCallback;
use crate::handlers::{IArgumentHandler, IResultRenderer, ToolAliases};
use crate::middleware::{IToolMiddleware, ScopedMiddleware};
use crate::tool::ITool;

/// Limits and policies of a [`ToolExecutor`](crate::ToolExecutor).
///
/// | field | default |
/// |---|---|
/// | `mode` | parallel |
/// | `max_concurrency` | 16 bodies at once per batch |
/// | `deadline` | 60 s a call, from its start, middleware included |
/// | `grace` | 2 s after a cancellation |
/// | `max_result_bytes` | 64 KiB of text a result |
/// | `error_policy` | errors go to the model |
/// | `unknown_tools` | one error result each |
/// | `detailed_errors` | off |
/// | `middleware`, `callbacks`, `aliases`, handlers | none |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutionOptions {
    /// Whether calls of one batch run at once.
    pub mode: ExecutionMode,
    /// How many bodies may be in flight at once in one batch. Agent-backed bodies do not count.
    pub max_concurrency: usize,
    /// How long one call may take from its start, its middleware and the whole of its stream
    /// included, unless its tool says otherwise. `None`: as long as it takes.
    pub deadline: Option<Duration>,
    /// How long a running body may take to end after it was told to stop.
    pub grace: Duration,
    /// The most bytes of a result's text that the model reads. The caller still gets all of it.
    pub max_result_bytes: usize,
    /// What a failed call means for its batch.
    pub error_policy: ErrorPolicy,
    /// What a call of an unknown tool means.
    pub unknown_tools: UnknownToolPolicy,
    /// Whether the model reads the full text of every error. Off: it reads only what was written
    /// for it, else a generic text with a correlation id.
    pub detailed_errors: bool,
    /// Code around every call: the first is outermost.
    pub middleware: Vec<Arc<dyn IToolMiddleware>>,
    /// Observers of bodies.
    pub callbacks: Vec<Arc<dyn IToolCallback>>,
    /// Other names of tools and arguments.
    pub aliases: ToolAliases,
    /// Rewrites arguments before they are validated: behind the aliases, before the middleware.
    pub argument_handler: Option<Arc<dyn IArgumentHandler>>,
    /// Renders what the model reads of a result.
    pub result_renderer: Option<Arc<dyn IResultRenderer>>,
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        Self {
            mode: ExecutionMode::Parallel,
            max_concurrency: 16,
            deadline: Some(Duration::from_secs(60)),
            grace: Duration::from_secs(2),
            max_result_bytes: 64 * 1024,
            error_policy: ErrorPolicy::ToModel,
            unknown_tools: UnknownToolPolicy::ToModel,
            detailed_errors: false,
            middleware: Vec::new(),
            callbacks: Vec::new(),
            aliases: ToolAliases::new(),
            argument_handler: None,
            result_renderer: None,
        }
    }
}

impl ExecutionOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether calls of one batch run at once.
    pub fn with_mode(mut self, mode: ExecutionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many bodies may be in flight at once; at least one.
    pub fn with_max_concurrency(mut self, bodies: usize) -> Self {
        self.max_concurrency = bodies.max(1);
        self
    }

    /// Sets how long one call may take; `None` is as long as it takes.
    pub fn with_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets how long a body may take to end after it was told to stop.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the most bytes of a result's text that the model reads.
    pub fn with_max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_result_bytes = bytes;
        self
    }

    /// Sets what a failed call means for its batch.
    pub fn with_error_policy(mut self, policy: ErrorPolicy) -> Self {
        self.error_policy = policy;
        self
    }

    /// Sets what a call of an unknown tool means.
    pub fn with_unknown_tools(mut self, policy: UnknownToolPolicy) -> Self {
        self.unknown_tools = policy;
        self
    }

    /// Adds code around every call, inside what was added before.
    pub fn with_middleware(mut self, middleware: impl IToolMiddleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds code around every call of the tools whose name fits, inside what was added before.
    pub fn with_middleware_for(
        self,
        fits: impl Fn(&str) -> bool + Send + Sync + 'static,
        middleware: impl IToolMiddleware + 'static,
    ) -> Self {
        self.with_middleware(ScopedMiddleware::new(fits, middleware))
    }

    /// Adds an observer of bodies.
    pub fn with_callback(mut self, callback: impl IToolCallback + 'static) -> Self {
        self.callbacks.push(Arc::new(callback));
        self
    }

    /// Sets other names of tools and arguments.
    pub fn with_aliases(mut self, aliases: ToolAliases) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets what rewrites arguments before they are validated.
    pub fn with_argument_handler(mut self, handler: impl IArgumentHandler + 'static) -> Self {
        self.argument_handler = Some(Arc::new(handler));
        self
    }

    /// Sets what renders what the model reads of a result.
    pub fn with_result_renderer(mut self, renderer: impl IResultRenderer + 'static) -> Self {
        self.result_renderer = Some(Arc::new(renderer));
        self
    }

    /// Sets whether the model reads the full text of every error.
    pub fn with_detailed_errors(mut self, detailed: bool) -> Self {
        self.detailed_errors = detailed;
        self
    }
}

/// Whether calls of one batch run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// At once, up to the bound; exclusive tools are barriers.
    #[default]
    Parallel,
    /// One after another, in call order.
    Sequential,
}

/// What a failed call means for its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorPolicy {
    /// The model reads the error, siblings go on.
    #[default]
    ToModel,
    /// Siblings are cancelled and joined, the batch ends as terminated.
    FailFast,
}

/// What a call of an unknown tool means.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum UnknownToolPolicy {
    /// The model reads which tools there are, siblings run.
    #[default]
    ToModel,
    /// Nothing of the batch runs, and it ends as terminated.
    Stop,
    /// This tool is called instead, with the arguments as they are: its context says the name that the
    /// model used. Middleware and callbacks see it like any tool.
    Handle(Arc<dyn ITool>),
}

impl UnknownToolPolicy {
    /// Whether nothing of a batch with an unknown tool runs.
    pub const fn stops(&self) -> bool {
        matches!(self, Self::Stop)
    }
}
