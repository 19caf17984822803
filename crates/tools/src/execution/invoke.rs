//! The way of one call through its middleware to its body.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use serde_json::Value;

use super::body::panic_message;
use super::options::ExecutionOptions;
use super::prepare::ReadyCall;
use crate::arguments::check_arguments;
use crate::callbacks::{IToolCallback, Observation};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::middleware::{IToolMiddleware, Next, ToolInvocation};
use crate::output::ToolOutput;

/// Everything between the start of a call and its body.
pub(super) struct Invocation {
    middleware: Vec<Arc<dyn IToolMiddleware>>,
    terminal: Terminal,
    approved: bool,
}

/// The end of the way: the body, entered once.
pub(crate) struct Terminal {
    ready: Box<ReadyCall>,
    callbacks: Vec<Arc<dyn IToolCallback>>,
    entered: AtomicBool,
    on_entry: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("tool", &self.name())
            .finish_non_exhaustive()
    }
}

impl Invocation {
    /// The way of a call. `on_entry` is told when the body is entered.
    pub(super) fn new(
        ready: Box<ReadyCall>,
        options: &ExecutionOptions,
        on_entry: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            middleware: options.middleware.clone(),
            approved: ready.approved,
            terminal: Terminal {
                ready,
                callbacks: options.callbacks.clone(),
                entered: AtomicBool::new(false),
                on_entry: Box::new(on_entry),
            },
        }
    }

    /// Runs the call.
    pub(super) async fn run(&self, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let invocation = ToolInvocation {
            context,
            arguments: self.terminal.ready.arguments.clone(),
            approved: self.approved,
        };
        let next = Next {
            rest: &self.middleware,
            terminal: &self.terminal,
        };
        next.run(invocation).await
    }
}

impl Terminal {
    pub(crate) fn name(&self) -> &str {
        self.ready.tool.name()
    }

    pub(crate) fn is_idempotent(&self) -> bool {
        self.ready.tool.tool().limits().idempotent
    }

    /// Enters the body, unless that would be once too often or with other arguments than approved.
    pub(crate) async fn enter(&self, invocation: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let ToolInvocation {
            context, arguments, ..
        } = invocation;
        if let Some(unknown) = &self.ready.unknown {
            return Err(ToolError::unknown_tool(unknown.as_str()));
        }
        if arguments != self.ready.arguments {
            if self.ready.approved {
                return Err(ToolError::permission_denied(
                    "the arguments changed after they were approved; the tool was not run",
                ));
            }
            let value = Value::Object(arguments.clone());
            check_arguments(self.name(), value, self.ready.tool.schema())
                .map_err(|fault| ToolError::invalid_parameters(fault.to_string()))?;
        }
        if self.entered.swap(true, Ordering::SeqCst) && !self.is_idempotent() {
            return Err(ToolError::execution_failed(
                "a middleware ran a tool twice that is not idempotent: the body was not entered \
                 again",
            ));
        }
        (self.on_entry)();
        let tool = self.ready.tool.tool();
        let Some(mut observation) = Observation::begin(&self.callbacks, &context, &arguments)
        else {
            return tool.call(context, arguments).await;
        };
        let body = AssertUnwindSafe(tool.call(context, arguments)).catch_unwind();
        match body.await {
            Ok(result) => observation.end(result),
            Err(payload) => {
                let message = format!("panicked: {}", panic_message(&*payload));
                observation.failed(&ToolError::execution_failed(message));
                resume_unwind(payload)
            }
        }
    }
}
