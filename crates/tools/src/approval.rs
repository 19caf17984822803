//! A tool whose calls wait for a person's yes.

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{ToolDeclaration, TrustLabel};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{ITool, ToolArguments, ToolLimits};

/// Any tool, with each call gated: the executor asks before the body is entered (contract E).
///
/// All else is the tool's own. The gate is a property of what stands in the registry: wrap the tool
/// again (rename it, put it in a namespace) and it is still there. The body itself is not guarded:
/// whoever calls [`ITool::call`] by hand enters it.
///
/// ```
/// use raf_tools::{ApprovalRequiredTool, ITool as _, tool_fn};
///
/// let wipe = tool_fn("wipe", "Deletes everything.", |(): ()| async { "gone" });
/// let wipe = ApprovalRequiredTool::new(wipe);
/// assert!(wipe.requires_approval());
/// ```
#[derive(Clone, Debug)]
pub struct ApprovalRequiredTool {
    inner: Arc<dyn ITool>,
}

impl ApprovalRequiredTool {
    /// Gates a tool.
    pub fn new(tool: impl ITool + 'static) -> Self {
        Self::from_shared(Arc::new(tool))
    }

    /// Gates a tool that is shared. Whoever holds the tool itself still has it without the gate.
    pub fn from_shared(tool: Arc<dyn ITool>) -> Self {
        Self { inner: tool }
    }

    /// The tool within.
    pub fn inner(&self) -> &Arc<dyn ITool> {
        &self.inner
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for ApprovalRequiredTool {
    fn declaration(&self) -> &ToolDeclaration {
        self.inner.declaration()
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        self.inner.call(context, arguments).await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn requires_approval(&self) -> bool {
        true
    }

    fn limits(&self) -> ToolLimits {
        self.inner.limits()
    }

    fn trust(&self) -> TrustLabel {
        self.inner.trust()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use raf_core::TrustLabel;
    use serde_json::json;

    use super::ApprovalRequiredTool;
    use crate::{ITool, RegisteredTool, ToolRegistry, tool_fn};

    #[tokio::test]
    async fn all_but_the_gate_is_the_tools_own_and_the_gate_survives_wrapping() {
        let tool = tool_fn("wipe", "Deletes.", |(): ()| async { "gone" })
            .idempotent()
            .with_deadline(Duration::from_secs(7))
            .with_trust(TrustLabel::Trusted);
        let gated = ApprovalRequiredTool::new(tool.clone());
        assert_eq!(gated.declaration(), tool.declaration());
        assert_eq!(gated.limits(), tool.limits());
        assert_eq!(gated.trust(), TrustLabel::Trusted);
        assert!(!tool.requires_approval());

        let shared: Arc<dyn ITool> = Arc::new(Arc::new(gated));
        let registered = RegisteredTool::from_shared(shared).unwrap();
        let registry = ToolRegistry::from_tools([registered]).unwrap();
        for registry in [registry.clone(), registry.namespaced("files").unwrap()] {
            let name = registry.tool_names().next().unwrap();
            assert!(registry.get(name).unwrap().tool().requires_approval());
            registry.execute(name, json!({})).await.unwrap_err();
        }
    }
}
