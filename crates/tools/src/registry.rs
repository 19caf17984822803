//! Named tools, in order: what an agent has.

use std::collections::HashMap;
use std::sync::Arc;

use raf_core::{Result, ToolDeclaration};
use serde_json::Value;

use crate::arguments::{InvalidArguments, check_arguments};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::namespace::namespaced;
use crate::output::ToolOutput;
use crate::registered::RegisteredTool;
use crate::tool::ITool;
use crate::toolset::duplicate;

/// Tools by name, in the order in which they were added, which is the order in which the model is
/// told of them.
///
/// A cheap handle: a clone shares the tools, and a later [`register`](ToolRegistry::register) on one
/// clone does not change the other. For a registry that changes while runs go on, hand
/// `Arc<RwLock<ToolRegistry>>` to the run: it is a [`IToolSource`](crate::IToolSource) too.
#[derive(Clone, Debug, Default)]
pub struct ToolRegistry(Arc<Tools>);

#[derive(Clone, Debug, Default)]
struct Tools {
    ordered: Vec<RegisteredTool>,
    by_name: HashMap<String, usize>,
}

impl ToolRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// A registry of tools that are checked and compiled by now.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if two have one name.
    pub fn from_tools(tools: impl IntoIterator<Item = RegisteredTool>) -> Result<Self> {
        let mut registry = Self::new();
        for tool in tools {
            registry.add(tool)?;
        }
        Ok(registry)
    }

    /// Starts a registry.
    pub fn builder() -> ToolRegistryBuilder {
        ToolRegistryBuilder::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the name is taken (both
    /// tools are named) or is none that providers take, or if the schema is not valid. The registry
    /// is as before.
    pub fn register(&mut self, tool: impl ITool + 'static) -> Result<()> {
        self.add(RegisteredTool::new(tool)?)
    }

    /// Adds a tool that is checked and compiled by now.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the name is taken.
    pub fn add(&mut self, tool: RegisteredTool) -> Result<()> {
        let position = self.len();
        if let Some(&first) = self.0.by_name.get(tool.name()) {
            return Err(duplicate(
                "the tools of this registry",
                (first, self.0.ordered[first].declaration()),
                (position, tool.declaration()),
            ));
        }
        let tools = Arc::make_mut(&mut self.0);
        tools.by_name.insert(tool.name().to_owned(), position);
        tools.ordered.push(tool);
        Ok(())
    }

    /// Runs a tool by hand: arguments are validated, the body is entered once, outside any run, with
    /// a [detached context](ToolContext::detached) and without a deadline. A panic in the body is
    /// not caught. Within a run the executor is the one path to a body.
    ///
    /// `null` counts as no arguments.
    ///
    /// # Errors
    /// See [`ExecuteError`]. A tool that requires approval is never entered: there is nobody here
    /// to ask.
    pub async fn execute(&self, name: &str, arguments: Value) -> Result<ToolOutput, ExecuteError> {
        let Some(tool) = self.get(name) else {
            return Err(ExecuteError::UnknownTool {
                name: name.to_owned(),
                known: self.tool_names().map(ToOwned::to_owned).collect(),
            });
        };
        if tool.tool().requires_approval() {
            return Err(ExecuteError::ApprovalRequired {
                name: name.to_owned(),
            });
        }
        let arguments = check_arguments(name, arguments, tool.schema())?;
        let context = ToolContext::builder("", name).build();
        Ok(tool.tool().call(context, arguments).await?)
    }

    /// What the model is told, in order.
    pub fn tool_definitions(&self) -> Vec<ToolDeclaration> {
        self.iter().map(|tool| tool.declaration().clone()).collect()
    }

    /// The names, in order.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(RegisteredTool::name)
    }

    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.0
            .by_name
            .get(name)
            .map(|&index| &self.0.ordered[index])
    }

    /// The tools, in order, at hand. (As a source, the registry gives the same tools.)
    pub fn tools(&self) -> &[RegisteredTool] {
        &self.0.ordered
    }

    /// The tools, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, RegisteredTool> {
        self.0.ordered.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.ordered.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.ordered.is_empty()
    }

    /// The same tools under names that begin with a prefix: `prefix__name`. See
    /// [`name::join`](crate::name::join) for names that grow too long.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the prefix is no valid
    /// name, or two names become one.
    pub fn namespaced(&self, prefix: &str) -> Result<Self> {
        Self::from_tools(namespaced(prefix, self.iter())?)
    }
}

impl<'a> IntoIterator for &'a ToolRegistry {
    type Item = &'a RegisteredTool;
    type IntoIter = std::slice::Iter<'a, RegisteredTool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Builds a [`ToolRegistry`]. Faults are kept until [`build`](ToolRegistryBuilder::build).
#[derive(Debug, Default)]
pub struct ToolRegistryBuilder {
    registry: ToolRegistry,
    fault: Option<raf_core::Error>,
}

impl ToolRegistryBuilder {
    /// Adds a tool.
    pub fn with_tool(self, tool: impl ITool + 'static) -> Self {
        self.with_shared_tool(Arc::new(tool))
    }

    /// Adds a tool that is shared.
    pub fn with_shared_tool(self, tool: Arc<dyn ITool>) -> Self {
        self.with_registered(RegisteredTool::from_shared(tool))
    }

    /// Adds all tools of another registry.
    pub fn with_registry(mut self, registry: &ToolRegistry) -> Self {
        for tool in registry {
            self = self.with_registered(Ok(tool.clone()));
        }
        self
    }

    /// The registry.
    ///
    /// # Errors
    /// The first fault of a tool, as [`ToolRegistry::register`].
    pub fn build(self) -> Result<ToolRegistry> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.registry),
        }
    }

    fn with_registered(mut self, tool: Result<RegisteredTool>) -> Self {
        if self.fault.is_none() {
            self.fault = tool.and_then(|tool| self.registry.add(tool)).err();
        }
        self
    }
}

/// Why [`ToolRegistry::execute`] has no output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// No tool has this name.
    #[error("there is no tool '{name}'; there are: {}", list(known))]
    UnknownTool {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The tool requires approval, and there is nobody to ask.
    #[error(
        "tool '{name}' requires approval and cannot be run by `execute`: run it through an agent, \
         which asks first"
    )]
    ApprovalRequired {
        /// The tool.
        name: String,
    },
    /// The arguments do not fit; the body was not entered.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The body failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

#[cfg(test)]
pub(crate) mod tests;
