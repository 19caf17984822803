//! What the builder takes as the tools of the loop.

use std::sync::Arc;

use raf_core::Result;
use raf_tools::{FunctionTool, ITool, RegisteredTool, ToolRegistry, ToolRegistryBuilder};

/// Tools in any of the forms that [`function_invoking`](crate::ChatClientBuilderExt) takes: a
/// [`ToolRegistry`], one that is still being built, or a list of tools.
///
/// ```
/// use raf_framework::IntoTools;
/// use raf_tools::{ToolRegistry, tool_fn};
///
/// let now = tool_fn("now", "Says what time it is.", |(): ()| async { "noon" });
/// let listed = [now.clone()].into_tools()?;
/// let built = ToolRegistry::builder().with_tool(now).into_tools()?;
/// assert!(listed.tool_names().eq(built.tool_names()));
/// # Ok::<(), raf_core::Error>(())
/// ```
pub trait IntoTools {
    /// The registry.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if a name is taken or not
    /// valid, or a schema is not valid.
    fn into_tools(self) -> Result<ToolRegistry>;
}

impl IntoTools for ToolRegistry {
    fn into_tools(self) -> Result<ToolRegistry> {
        Ok(self)
    }
}

impl IntoTools for ToolRegistryBuilder {
    fn into_tools(self) -> Result<ToolRegistry> {
        self.build()
    }
}

impl IntoTools for FunctionTool {
    fn into_tools(self) -> Result<ToolRegistry> {
        [self].into_tools()
    }
}

/// Of one type: functions, kinds, gated tools, shared ones.
impl<T: ITool + 'static, const N: usize> IntoTools for [T; N] {
    fn into_tools(self) -> Result<ToolRegistry> {
        self.into_iter()
            .fold(ToolRegistry::builder(), ToolRegistryBuilder::with_tool)
            .build()
    }
}

impl IntoTools for Vec<FunctionTool> {
    fn into_tools(self) -> Result<ToolRegistry> {
        self.into_iter()
            .fold(ToolRegistry::builder(), ToolRegistryBuilder::with_tool)
            .build()
    }
}

impl IntoTools for Vec<Arc<dyn ITool>> {
    fn into_tools(self) -> Result<ToolRegistry> {
        self.into_iter()
            .fold(
                ToolRegistry::builder(),
                ToolRegistryBuilder::with_shared_tool,
            )
            .build()
    }
}

impl IntoTools for Vec<RegisteredTool> {
    fn into_tools(self) -> Result<ToolRegistry> {
        ToolRegistry::from_tools(self)
    }
}
