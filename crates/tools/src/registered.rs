//! A tool with its schema compiled: what registries and sources hold.

use std::fmt;
use std::sync::Arc;

use raf_core::{Result, ToolDeclaration};

use crate::schema::CompiledSchema;
use crate::tool::ITool;

/// A tool whose name and schema were checked, and whose schema was compiled once.
///
/// A cheap handle.
#[derive(Clone)]
pub struct RegisteredTool(Arc<Inner>);

struct Inner {
    tool: Arc<dyn ITool>,
    schema: CompiledSchema,
}

impl RegisteredTool {
    /// Checks and compiles a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the name is not one that
    /// every provider takes (`[a-zA-Z0-9_-]`, 1 to 64), or the schema is none.
    pub fn new(tool: impl ITool + 'static) -> Result<Self> {
        Self::from_shared(Arc::new(tool))
    }

    /// Checks and compiles a tool that is shared.
    ///
    /// # Errors
    /// As [`RegisteredTool::new`].
    pub fn from_shared(tool: Arc<dyn ITool>) -> Result<Self> {
        crate::name::check(tool.name())?;
        let schema = CompiledSchema::compile(tool.declaration())?;
        Ok(Self(Arc::new(Inner { tool, schema })))
    }

    /// Another tool around this one, whose schema is the same.
    pub(crate) fn with_same_schema(&self, tool: Arc<dyn ITool>) -> Self {
        Self(Arc::new(Inner {
            tool,
            schema: self.0.schema.clone(),
        }))
    }

    /// A tool of any name, whose arguments are any object.
    pub(crate) fn unchecked(tool: Arc<dyn ITool>) -> Self {
        let schema = CompiledSchema::any_object();
        Self(Arc::new(Inner { tool, schema }))
    }

    /// The tool.
    pub fn tool(&self) -> &Arc<dyn ITool> {
        &self.0.tool
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.tool.name()
    }

    /// What the model is told.
    pub fn declaration(&self) -> &ToolDeclaration {
        self.0.tool.declaration()
    }

    /// Its schema.
    pub fn schema(&self) -> &CompiledSchema {
        &self.0.schema
    }
}

impl fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.tool.fmt(f)
    }
}
