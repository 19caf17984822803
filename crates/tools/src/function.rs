//! A tool from an async function or closure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use raf_core::{ToolDeclaration, TrustLabel};
use serde_json::Value;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{ITool, ToolArguments, ToolLimits};

mod field_order;
mod parameters;
mod return_value;
mod schema_text;

pub use parameters::ToolParams;
pub use return_value::{IntoToolOutput, IntoToolValue, Json};
pub use schema_text::parameters_schema;

/// A tool from an async function of its arguments.
///
/// The arguments are a struct that derives `serde::Deserialize` and `schemars::JsonSchema`: doc
/// comments of its fields become their descriptions, `Option` fields may be left out. A tool without
/// arguments takes `()`. What it may return: see [`IntoToolOutput`].
///
/// ```
/// use raf_tools::{schemars, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: i64,
///     /// The second number.
///     b: i64,
/// }
///
/// let add = tool_fn("add", "Adds two numbers.", |args: Add| async move { args.a + args.b });
/// let now = tool_fn("now", "Says what time it is.", |(): ()| async { "late" });
/// # let _ = (add, now);
/// ```
///
/// Whether name and schema are good is checked when the tool is registered.
pub fn tool_fn<P, F, Fut>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FunctionTool
where
    P: ToolParams,
    F: Fn(P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    tool_fn_with_context(name, description, move |_: ToolContext, parameters: P| {
        function(parameters)
    })
}

/// As [`tool_fn`], for a function that also takes the call's [`ToolContext`]: to report progress, to
/// see a cancellation, to read per-run extensions or the idempotency key.
///
/// ```
/// use raf_tools::{ToolContext, ToolError, schemars, tool_fn_with_context};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Transfer {
///     cents: u64,
/// }
///
/// async fn transfer(context: ToolContext, transfer: Transfer) -> Result<String, ToolError> {
///     context.progress("asking the bank");
///     if transfer.cents == 0 {
///         return Err(ToolError::invalid_parameters("cents must be more than 0"));
///     }
///     Ok(format!("sent, reference {}", context.idempotency_key()))
/// }
///
/// let transfer = tool_fn_with_context("transfer", "Sends money.", transfer).with_approval();
/// # let _ = transfer;
/// ```
pub fn tool_fn_with_context<P, F, Fut>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FunctionTool
where
    P: ToolParams,
    F: Fn(ToolContext, P) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    let declaration = parameters::declare::<P>(name.into(), description.into());
    FunctionTool::new(declaration, move |context, arguments| {
        let running = P::from_arguments(arguments).map(|parameters| function(context, parameters));
        async move { running?.await.into_tool_output() }.boxed()
    })
}

/// A tool whose schema is made while the program runs: arguments arrive as a JSON object that has
/// passed the schema.
///
/// ```
/// use raf_core::ToolDeclaration;
/// use raf_tools::dynamic_tool;
/// use serde_json::json;
///
/// let declaration = ToolDeclaration::new("echo", "Says it again.").with_parameters(&json!({
///     "type": "object",
///     "properties": {"text": {"type": "string"}},
///     "required": ["text"],
/// }));
/// let echo = dynamic_tool(declaration, |_context, arguments| async move {
///     arguments["text"].clone()
/// });
/// # let _ = echo;
/// ```
pub fn dynamic_tool<F, Fut>(declaration: ToolDeclaration, function: F) -> FunctionTool
where
    F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolOutput> + Send + 'static,
{
    FunctionTool::new(declaration, move |context, arguments| {
        let running = function(context, Value::Object(arguments));
        async move { running.await.into_tool_output() }.boxed()
    })
}

/// A tool that is a function: what [`tool_fn`], [`tool_fn_with_context`] and [`dynamic_tool`] make.
///
/// A cheap handle. Defaults: no approval, [`ToolLimits::default`], [`TrustLabel::Untrusted`].
#[derive(Clone)]
pub struct FunctionTool {
    declaration: ToolDeclaration,
    function: Arc<Function>,
    requires_approval: bool,
    limits: ToolLimits,
    trust: TrustLabel,
}

type Function = dyn Fn(ToolContext, ToolArguments) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

impl FunctionTool {
    fn new(
        declaration: ToolDeclaration,
        function: impl Fn(
            ToolContext,
            ToolArguments,
        ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            declaration,
            function: Arc::new(function),
            requires_approval: false,
            limits: ToolLimits::default(),
            trust: TrustLabel::default(),
        }
    }

    /// Makes each call wait for a person's yes.
    pub fn with_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Sets all limits at once.
    pub fn with_limits(mut self, limits: ToolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long a call may take.
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.limits = self.limits.with_deadline(deadline);
        self
    }

    /// Sets how many calls of it may run at once.
    pub fn with_concurrency(mut self, bodies: usize) -> Self {
        self.limits = self.limits.with_concurrency(bodies);
        self
    }

    /// Says that running the same call twice does no harm: it may be retried, and run again after a
    /// crash.
    pub fn idempotent(mut self) -> Self {
        self.limits = self.limits.with_idempotent(true);
        self
    }

    /// Makes each call a barrier: nothing runs beside it.
    pub fn exclusive(mut self) -> Self {
        self.limits = self.limits.with_exclusive(true);
        self
    }

    /// Says whose text the results are.
    pub fn with_trust(mut self, trust: TrustLabel) -> Self {
        self.trust = trust;
        self
    }

    /// Asks the provider to hold the model to the schema (OpenAI's `strict`, which wants every field
    /// required and no others allowed).
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.declaration = self.declaration.with_strict(strict);
        self
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for FunctionTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        (self.function)(context, arguments).await
    }

    fn name(&self) -> &str {
        self.declaration.name()
    }

    fn requires_approval(&self) -> bool {
        self.requires_approval
    }

    fn limits(&self) -> ToolLimits {
        self.limits.clone()
    }

    fn trust(&self) -> TrustLabel {
        self.trust
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool")
            .field("name", &self.name())
            .field("requires_approval", &self.requires_approval)
            .finish_non_exhaustive()
    }
}

/// The examples of the guide compile and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct Guide;

#[cfg(test)]
mod tests;
