//! What stands behind a name that no tool has: the caller's handler, or nothing but middleware.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{ToolDeclaration, TrustLabel};

use super::options::{ExecutionOptions, UnknownToolPolicy};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::registered::{RegisteredTool, ToolIdentity};
use crate::tool::{ITool, ToolArguments, ToolLimits};
use crate::toolset::ToolSet;

/// What a name comes to that no tool has.
pub(super) struct Unknown {
    /// The handler, or what middleware is put around.
    pub(super) tool: RegisteredTool,
    /// What the model is told unless a middleware answers; unset where the handler runs.
    pub(super) refusal: Option<String>,
}

/// What an unknown name comes to.
///
/// # Errors
/// The text of the error, where neither a handler nor a middleware has to do with it.
pub(super) fn unknown(
    options: &ExecutionOptions,
    tools: &ToolSet,
    name: &str,
) -> Result<Unknown, String> {
    let stands_for = |handler: Option<Arc<dyn ITool>>| {
        let identity = handler.as_ref().map(ToolIdentity::of);
        let tool = UnknownTool {
            declaration: ToolDeclaration::new(name, ""),
            handler,
        };
        // A handler that panics when it is asked what it is handles nothing.
        RegisteredTool::unchecked(Arc::new(tool), identity).map_err(|error| {
            tracing::warn!(%error, "the handler of unknown tools cannot be called");
            refusal(tools, name)
        })
    };
    match &options.unknown_tools {
        UnknownToolPolicy::Handle(handler) => Ok(Unknown {
            tool: stands_for(Some(Arc::clone(handler)))?,
            refusal: None,
        }),
        UnknownToolPolicy::ToModel if is_wrapped(options, name) => Ok(Unknown {
            tool: stands_for(None)?,
            refusal: Some(refusal(tools, name)),
        }),
        UnknownToolPolicy::ToModel | UnknownToolPolicy::Stop => Err(refusal(tools, name)),
    }
}

/// Whether a middleware is around calls of this name. One that panics is: the call meets the panic
/// again when it is prepared, and is settled by it.
fn is_wrapped(options: &ExecutionOptions, name: &str) -> bool {
    options.middleware.iter().any(|middleware| {
        catch_unwind(AssertUnwindSafe(|| middleware.applies_to(name))).unwrap_or(true)
    })
}

fn refusal(tools: &ToolSet, name: &str) -> String {
    let name: String = name.chars().take(100).collect();
    let mut names = String::new();
    for visible in tools.visible_names() {
        if names.len() + visible.len() > 1_500 {
            names.push_str(", …");
            break;
        }
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(visible);
    }
    match names.as_str() {
        "" => format!("Unknown tool '{name}'. No tools are available."),
        names => format!("Unknown tool '{name}'. Available tools: {names}."),
    }
}

#[derive(Debug)]
struct UnknownTool {
    declaration: ToolDeclaration,
    handler: Option<Arc<dyn ITool>>,
}

#[async_trait]
impl ITool for UnknownTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        match &self.handler {
            Some(handler) => handler.call(context, arguments).await,
            None => Err(ToolError::unknown_tool("Unknown tool.")),
        }
    }

    fn requires_approval(&self) -> bool {
        match &self.handler {
            Some(handler) => handler.requires_approval(),
            None => false,
        }
    }

    fn limits(&self) -> ToolLimits {
        match &self.handler {
            Some(handler) => handler.limits(),
            None => ToolLimits::default(),
        }
    }

    fn trust(&self) -> TrustLabel {
        match &self.handler {
            Some(handler) => handler.trust(),
            None => TrustLabel::Framework,
        }
    }
}
