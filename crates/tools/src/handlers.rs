//! Handlers around a call's edges: aliases, rewriting of arguments, rendering of results.

use std::collections::BTreeMap;
use std::fmt::Debug;

use raf_core::{Content, Occurrence, ToolCall, ToolOutcome};

use crate::error::ToolError;
use crate::middleware::PreparingCall;
use crate::tool::ToolArguments;

/// Other names under which models call a tool, and other keys for its arguments.
///
/// They are made canonical before anything else looks at the call, so that approvals, middleware,
/// callbacks and limits see one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAliases {
    names: BTreeMap<String, String>,
    keys: BTreeMap<String, BTreeMap<String, String>>,
}

impl ToolAliases {
    /// No aliases.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls of `alias` are calls of `tool`, unless there is a tool of that name.
    pub fn with_name(mut self, tool: impl Into<String>, alias: impl Into<String>) -> Self {
        self.names.insert(alias.into(), tool.into());
        self
    }

    /// The argument `alias` of `tool` is the argument `key`, unless that is there too.
    pub fn with_key(
        mut self,
        tool: impl Into<String>,
        key: impl Into<String>,
        alias: impl Into<String>,
    ) -> Self {
        self.keys
            .entry(tool.into())
            .or_default()
            .insert(alias.into(), key.into());
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.keys.is_empty()
    }

    /// The tool that a name is an alias of.
    pub fn canonical_name(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(String::as_str)
    }

    /// Makes the keys of a tool's arguments canonical.
    pub fn canonical_keys(&self, tool: &str, arguments: &mut ToolArguments) {
        let Some(keys) = self.keys.get(tool) else {
            return;
        };
        for (alias, key) in keys {
            if arguments.contains_key(key) {
                continue;
            }
            if let Some(value) = arguments.remove(alias) {
                arguments.insert(key.clone(), value);
            }
        }
    }
}

/// Rewrites the arguments of every call before they are validated.
///
/// It sees canonical names and keys, and only arguments that are a JSON object. It must not block; a
/// panic settles that one call.
pub trait IArgumentHandler: Debug + Send + Sync {
    /// Changes the arguments in place.
    ///
    /// # Errors
    /// Settles the call: what is wrong with it.
    fn rewrite(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError>;
}

/// Renders what the model reads of a result, before it is cut to the size limit.
///
/// It must not block; a panic leaves the result as it is.
pub trait IResultRenderer: Debug + Send + Sync {
    /// The content to show instead, or `None` to leave it. Empty content is not taken: a result is
    /// never empty.
    fn render(&self, call: &RenderingCall<'_>, content: &[Content]) -> Option<Vec<Content>>;
}

/// A call whose result is rendered.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RenderingCall<'a> {
    /// The tool, by its canonical name.
    pub tool: &'a str,
    /// The call as the model made it.
    pub call: &'a ToolCall,
    /// The call's place in its run.
    pub occurrence: Occurrence,
    /// What became of it.
    pub outcome: ToolOutcome,
}
