//! Tools that do as scripted and remember how they were called.

mod behaviour;
mod log;
mod simple;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use raf_core::{ToolDeclaration, TrustLabel};
use raf_tools::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits, ToolOutput};
use serde_json::Value;

pub use behaviour::Behaviour;
pub use log::{RecordedCall, ToolLog};
pub use simple::{CountingTool, EchoTool, FailingTool, HangingTool, PanickingTool};

/// A tool that behaves as scripted, one [`Behaviour`] per entry of its body, in order.
///
/// Without any behaviour it returns nothing (void). When the script has run out, the behaviour of
/// [`always`](ScriptedTool::always) holds; without one the body fails as fatal, and the entry is
/// held against the test by [`ToolLog::violations`]. A cheap handle: give a clone to the registry,
/// keep one to look at the [`log`](ScriptedTool::log).
///
/// ```
/// use raf_testing::{Behaviour, ScriptedTool};
///
/// let search = ScriptedTool::new("search")
///     .with_parameters(&serde_json::json!({
///         "type": "object",
///         "properties": {"query": {"type": "string"}},
///         "required": ["query"],
///     }))
///     .then(Behaviour::tell_model("the index is busy"))
///     .always(Behaviour::text("found"));
/// assert_eq!(search.log().entries(), 0);
/// ```
#[derive(Clone)]
pub struct ScriptedTool {
    declaration: ToolDeclaration,
    requires_approval: bool,
    limits: ToolLimits,
    trust: TrustLabel,
    script: Arc<Mutex<Script>>,
    log: ToolLog,
}

#[derive(Default)]
struct Script {
    behaviours: VecDeque<Behaviour>,
    fallback: Option<Behaviour>,
    was_given: bool,
}

impl ScriptedTool {
    /// A tool that takes any object and returns nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            declaration: ToolDeclaration::new(name, "A scripted tool."),
            requires_approval: false,
            limits: ToolLimits::default(),
            trust: TrustLabel::default(),
            script: Arc::default(),
            log: ToolLog::default(),
        }
    }

    /// A tool that returns this text each time.
    pub fn returning(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name).always(Behaviour::text(text))
    }

    /// Sets what the model is told of it, its name and schema included.
    pub fn with_declaration(mut self, declaration: ToolDeclaration) -> Self {
        self.declaration = declaration;
        self
    }

    /// Sets the JSON Schema of its arguments.
    pub fn with_parameters(mut self, schema: &Value) -> Self {
        self.declaration = self.declaration.with_parameters(schema);
        self
    }

    /// Makes each call wait for a person's yes.
    pub fn gated(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Sets its limits.
    pub fn with_limits(mut self, limits: ToolLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Says whose text its results are.
    pub fn with_trust(mut self, trust: TrustLabel) -> Self {
        self.trust = trust;
        self
    }

    /// Adds what the next entry of its body does, while it is in use too.
    pub fn then(self, behaviour: Behaviour) -> Self {
        self.change(|script| script.behaviours.push_back(behaviour));
        self
    }

    /// Sets what every entry beyond the script does.
    pub fn always(self, behaviour: Behaviour) -> Self {
        self.change(|script| script.fallback = Some(behaviour));
        self
    }

    /// How it was called.
    pub fn log(&self) -> &ToolLog {
        &self.log
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.was_given = true;
        change(&mut script);
    }

    fn next(&self) -> Option<Behaviour> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let next = script.behaviours.pop_front();
        next.or_else(|| script.fallback.clone())
            .or_else(|| (!script.was_given).then(Behaviour::void))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for ScriptedTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        let entry = self.log.enter(&context, &arguments);
        let Some(behaviour) = self.next() else {
            self.log.violation(format!(
                "tool '{}' was entered for call '{}', but its script has no behaviour left",
                self.name(),
                context.call_id()
            ));
            entry.complete();
            return Err(ToolError::fatal("the script has no behaviour left"));
        };
        let result = behaviour.perform(context, arguments).await;
        entry.complete();
        result
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

impl fmt::Debug for ScriptedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTool")
            .field("name", &self.name())
            .field("entries", &self.log.entries())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
