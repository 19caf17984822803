//! Middleware around each call: registered A, B, C, run A → B → C → tool → C → B → A.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{Extensions, Occurrence, RunId, ToolCall};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::execution::Terminal;
use crate::output::ToolOutput;
use crate::tool::ToolArguments;

/// Code around every call of an executor, whatever list of tools the call came with.
///
/// - [`prepare`](IToolMiddleware::prepare) runs once per call when it is planned, before its
///   arguments are validated and before anybody is asked: the place to change arguments.
/// - [`around`](IToolMiddleware::around) runs once per entry of a call: it may answer itself, replace
///   or wrap the output (a stream stays a stream), take time, retry where the tool is idempotent, ask
///   the outside ([`ToolError::interrupt`]), or end the run ([`ToolError::terminate`]).
///
/// An answer to its question finds it again at the next entry, with what it left
/// ([`ToolContext::resumption`]); the body does not see it. A body that has ended is not entered again
/// on behalf of a question that was asked behind it, unless its tool is idempotent: keep the output
/// in the state of the interrupt.
///
/// Calls of unknown tools pass through it too; calls that are finished do not pass again when a
/// batch is resumed. A panic settles that one call as failed.
#[async_trait]
pub trait IToolMiddleware: Debug + Send + Sync {
    /// Whether it is around calls of this tool. Default: of every tool.
    fn applies_to(&self, tool: &str) -> bool {
        let _ = tool;
        true
    }

    /// Changes the arguments of a call before they are validated. It must not block, and is not asked
    /// about arguments that are no JSON object.
    ///
    /// # Errors
    /// Settles the call: what is wrong with it. Here it can neither ask the outside nor end the run.
    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        let _ = call;
        Ok(())
    }

    /// Runs around the tool: hand the invocation on with [`Next::run`], or answer without it.
    ///
    /// Arguments that are changed here are validated again; those of a call that a person approved
    /// may not change: the body is then not entered.
    ///
    /// # Errors
    /// As a tool's own.
    async fn around(
        &self,
        invocation: ToolInvocation,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(invocation).await
    }
}

/// A call whose arguments may still change.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparingCall<'a> {
    /// The tool, by its canonical name.
    pub tool: &'a str,
    /// The call as the model made it.
    pub call: &'a ToolCall,
    /// The run.
    pub run_id: &'a RunId,
    /// The call's place in it.
    pub occurrence: Occurrence,
    /// Per-run things by type.
    pub extensions: &'a Extensions,
    /// The arguments, to be changed in place.
    pub arguments: ToolArguments,
}

/// A call on its way to its tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolInvocation {
    /// Ids, cancellation, progress, extensions.
    pub context: ToolContext,
    /// What the tool runs with.
    pub arguments: ToolArguments,
    /// Whether a person approved these arguments.
    pub approved: bool,
}

/// The rest of the way to the tool.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    pub(crate) rest: &'a [Arc<dyn IToolMiddleware>],
    pub(crate) terminal: &'a Terminal,
}

impl Next<'_> {
    /// Goes on to the next middleware, or to the tool.
    ///
    /// It may be called again only if the tool is declared idempotent: a body is never entered twice
    /// otherwise.
    ///
    /// # Errors
    /// The tool's own; a hidden failure if a body would be entered twice.
    pub async fn run(self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let tool = self.terminal.name();
        let mut rest = self.rest;
        while let Some((first, others)) = rest.split_first() {
            if first.applies_to(tool) {
                let next = Next {
                    rest: others,
                    terminal: self.terminal,
                };
                return first.around(invocation, next).await;
            }
            rest = others;
        }
        self.terminal.enter(invocation).await
    }

    /// Whether the tool may be run more than once for this call.
    pub fn is_idempotent(&self) -> bool {
        self.terminal.is_idempotent()
    }
}

/// A middleware around the tools whose name fits.
pub(crate) struct ScopedMiddleware<F, M> {
    fits: F,
    middleware: M,
}

impl<F, M> ScopedMiddleware<F, M> {
    pub(crate) fn new(fits: F, middleware: M) -> Self {
        Self { fits, middleware }
    }
}

impl<F, M: Debug> Debug for ScopedMiddleware<F, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.middleware.fmt(f)
    }
}

#[async_trait]
impl<F, M> IToolMiddleware for ScopedMiddleware<F, M>
where
    F: Fn(&str) -> bool + Send + Sync,
    M: IToolMiddleware,
{
    fn applies_to(&self, tool: &str) -> bool {
        (self.fits)(tool) && self.middleware.applies_to(tool)
    }

    fn prepare(&self, call: &mut PreparingCall<'_>) -> Result<(), ToolError> {
        self.middleware.prepare(call)
    }

    async fn around(
        &self,
        invocation: ToolInvocation,
        next: Next<'_>,
    ) -> Result<ToolOutput, ToolError> {
        self.middleware.around(invocation, next).await
    }
}
