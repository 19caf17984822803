//! A tool with its schema compiled: what registries and sources hold.

use std::fmt;
use std::sync::Arc;

use raf_core::{Result, ToolDeclaration};

use crate::kept::KeptTool;
use crate::schema::CompiledSchema;
use crate::tool::ITool;

/// A tool whose name and schema were checked, and whose schema was compiled once.
///
/// Its name, declaration, gate, limits and trust are read once, here: what the tool says of them later
/// changes nothing.
///
/// A cheap handle.
#[derive(Clone)]
pub struct RegisteredTool(Arc<Inner>);

struct Inner {
    tool: Arc<dyn ITool>,
    schema: CompiledSchema,
    identity: ToolIdentity,
}

/// Which tool it is, whatever it is called and however often it was registered: the place of the tool
/// in memory, and so true while there is a handle to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ToolIdentity(usize);

impl ToolIdentity {
    pub(crate) fn of(tool: &Arc<dyn ITool>) -> Self {
        Self(Arc::as_ptr(tool).cast::<()>().addr())
    }
}

impl RegisteredTool {
    /// Checks and compiles a tool.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the name is not one that
    /// every provider takes (`[a-zA-Z0-9_-]`, 1 to 64), the schema is none, or the tool panics when
    /// it is asked for its name, declaration, gate, limits or trust.
    pub fn new(tool: impl ITool + 'static) -> Result<Self> {
        Self::from_shared(Arc::new(tool))
    }

    /// Checks and compiles a tool that is shared.
    ///
    /// # Errors
    /// As [`RegisteredTool::new`].
    pub fn from_shared(tool: Arc<dyn ITool>) -> Result<Self> {
        let identity = ToolIdentity::of(&tool);
        let tool: Arc<dyn ITool> = Arc::new(KeptTool::read(tool)?);
        crate::name::check(tool.name())?;
        let schema = CompiledSchema::compile(tool.declaration())?;
        Ok(Self(Arc::new(Inner {
            tool,
            schema,
            identity,
        })))
    }

    /// Another tool around this one, whose schema is the same.
    pub(crate) fn with_same_schema(&self, tool: Arc<dyn ITool>) -> Self {
        Self(Arc::new(Inner {
            tool,
            schema: self.0.schema.clone(),
            identity: self.0.identity,
        }))
    }

    /// A tool of any name, whose arguments are any object, and which is made anew for every call: what
    /// it stands for says which one it is.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if it panics when it is asked
    /// for its gate, limits or trust.
    pub(crate) fn unchecked(tool: Arc<dyn ITool>, identity: Option<ToolIdentity>) -> Result<Self> {
        let identity = identity.unwrap_or_else(|| ToolIdentity::of(&tool));
        Ok(Self(Arc::new(Inner {
            tool: Arc::new(KeptTool::read(tool)?),
            schema: CompiledSchema::any_object(),
            identity,
        })))
    }

    pub(crate) fn identity(&self) -> ToolIdentity {
        self.0.identity
    }

    /// The tool, as it was when it was registered: its gate, limits and trust are those of then.
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
