//! The same tools under names that begin with a prefix.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{Error, Result, ToolDeclaration, TrustLabel};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::name;
use crate::output::ToolOutput;
use crate::registered::RegisteredTool;
use crate::source::IToolSource;
use crate::tool::{ITool, ToolArguments, ToolLimits};

/// A source whose tools all have a prefix: `prefix__name`.
#[derive(Debug)]
pub struct NamespacedTools<S> {
    prefix: String,
    source: S,
}

impl<S: IToolSource> NamespacedTools<S> {
    /// Puts a prefix before the names of a source.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the prefix is no valid
    /// name. That two names become one is found when the source is listed.
    pub fn new(prefix: impl Into<String>, source: S) -> Result<Self> {
        let prefix = prefix.into();
        name::check(&prefix)?;
        Ok(Self { prefix, source })
    }
}

#[async_trait]
impl<S: IToolSource> IToolSource for NamespacedTools<S> {
    async fn tools(&self) -> Result<Vec<RegisteredTool>> {
        namespaced(&self.prefix, &self.source.tools().await?)
    }
}

/// Renames tools; their schemas are not compiled again.
pub(crate) fn namespaced<'a>(
    prefix: &str,
    tools: impl IntoIterator<Item = &'a RegisteredTool>,
) -> Result<Vec<RegisteredTool>> {
    name::check(prefix)?;
    let mut renamed = Vec::new();
    let mut origins: HashMap<String, &str> = HashMap::new();
    for tool in tools {
        let name = name::join(prefix, tool.name());
        if let Some(first) = origins.insert(name.clone(), tool.name()) {
            return Err(Error::configuration(format!(
                "in namespace '{prefix}' the tools '{first}' and '{}' both become '{name}': rename \
                 one of them or shorten the prefix",
                tool.name()
            )));
        }
        let declaration = tool.declaration().clone().with_name(name);
        let tool_under_new_name = RenamedTool {
            inner: Arc::clone(tool.tool()),
            declaration,
        };
        renamed.push(tool.with_same_schema(Arc::new(tool_under_new_name)));
    }
    Ok(renamed)
}

#[derive(Debug)]
struct RenamedTool {
    inner: Arc<dyn ITool>,
    declaration: ToolDeclaration,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for RenamedTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        self.inner.call(context, arguments).await
    }

    fn name(&self) -> &str {
        self.declaration.name()
    }

    fn requires_approval(&self) -> bool {
        self.inner.requires_approval()
    }

    fn limits(&self) -> ToolLimits {
        self.inner.limits()
    }

    fn trust(&self) -> TrustLabel {
        self.inner.trust()
    }
}
