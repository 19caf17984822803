//! A tool whose name, gate, limits and trust were read once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::BoxFuture;
use raf_core::{Error, Result, ToolDeclaration, TrustLabel};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::execution::panic_message;
use crate::output::ToolOutput;
use crate::tool::{ITool, ToolArguments, ToolLimits};

/// What a tool says of itself, read when it is registered, around its body: nothing that it says later
/// can change or end a run.
pub(crate) struct KeptTool {
    inner: Arc<dyn ITool>,
    declaration: ToolDeclaration,
    name: String,
    requires_approval: bool,
    limits: ToolLimits,
    trust: TrustLabel,
}

impl KeptTool {
    /// Reads a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if it panics.
    pub(crate) fn read(tool: Arc<dyn ITool>) -> Result<Self> {
        let read = || {
            let declaration = tool.declaration().clone();
            let name = tool.name().to_owned();
            (
                declaration,
                name,
                tool.requires_approval(),
                tool.limits(),
                tool.trust(),
            )
        };
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok((declaration, name, requires_approval, limits, trust)) => Ok(Self {
                inner: tool,
                declaration,
                name,
                requires_approval,
                limits,
                trust,
            }),
            Err(payload) => {
                let name = catch_unwind(AssertUnwindSafe(|| tool.name().to_owned()));
                let name = name.unwrap_or_else(|_| "without a name".to_owned());
                Err(Error::configuration(format!(
                    "the tool '{name}' panicked when it was asked for its name, declaration, gate, \
                     limits and trust: {}",
                    panic_message(&*payload)
                )))
            }
        }
    }
}

impl std::fmt::Debug for KeptTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[deny(clippy::missing_trait_methods)]
impl ITool for KeptTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    // As `async_trait` writes it: the future is handed on, not put into another one.
    fn call<'tool, 'call>(
        &'tool self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> BoxFuture<'call, std::result::Result<ToolOutput, ToolError>>
    where
        'tool: 'call,
        Self: 'call,
    {
        self.inner.call(context, arguments)
    }

    fn name(&self) -> &str {
        &self.name
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
