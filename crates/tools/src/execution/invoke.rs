//! The way of one call through its middleware to its body.

use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{FutureExt, StreamExt};
use raf_core::Error;
use serde_json::Value;

use super::body::{BodyEnd, panic_message};
use super::options::ExecutionOptions;
use super::prepare::ReadyCall;
use super::progress::Progress;
use crate::arguments::check_arguments;
use crate::callbacks::Observation;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::middleware::{Next, ToolInvocation};
use crate::output::ToolOutput;
use crate::tool::ToolArguments;

/// Everything between the start of a call and its body.
pub(super) struct Invocation {
    terminal: Terminal,
}

/// The end of the way: the body, entered once.
pub(crate) struct Terminal {
    ready: Arc<ReadyCall>,
    options: Arc<ExecutionOptions>,
    progress: Arc<Progress>,
    entries: Arc<Mutex<Entries>>,
}

/// What became of the body of a call, as far as it is not in the call's end.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// How often it was entered.
    pub(super) count: u32,
    /// Whether its last entry asked the outside.
    pub(super) asked: bool,
    /// The arguments that it ran with, where a middleware changed them on the way.
    pub(super) arguments: Option<ToolArguments>,
    /// Whether the body has ended, and its outcome is being kept.
    pub(super) ended: bool,
    /// Why the run that the body is could not be kept. Nothing around the body makes an outcome of that.
    pub(super) left_open: Option<Error>,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("tool", &self.name())
            .finish_non_exhaustive()
    }
}

impl Invocation {
    /// The way of a call. The batch is told when the body is entered.
    pub(super) fn new(
        ready: Arc<ReadyCall>,
        options: Arc<ExecutionOptions>,
        progress: Arc<Progress>,
    ) -> Self {
        let entries = Arc::default();
        Self {
            terminal: Terminal {
                ready,
                options,
                progress,
                entries,
            },
        }
    }

    /// What becomes of the body, to be looked at when the call has ended.
    pub(super) fn entries(&self) -> Arc<Mutex<Entries>> {
        Arc::clone(&self.terminal.entries)
    }

    /// Notes how a stream of the call ended. What is around it has seen it; nothing being around it,
    /// its interrupt is the body's own.
    pub(super) fn streamed<T>(&self, end: &Result<T, ToolError>) {
        let bare = self.terminal.options.middleware.is_empty();
        if bare && matches!(end, Err(error) if error.as_interrupt().is_some()) {
            lock(&self.terminal.entries).asked = true;
        }
    }

    /// Runs the call.
    pub(super) async fn run(&self, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let invocation = ToolInvocation {
            context,
            arguments: self.terminal.ready.arguments.clone(),
            approved: self.terminal.ready.approved,
        };
        let next = Next {
            rest: &self.terminal.options.middleware,
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
        if let Some(refusal) = &self.ready.refusal {
            return Err(ToolError::unknown_tool(refusal.as_str()));
        }
        let wrapped = !self.options.middleware.is_empty();
        let changed = wrapped && arguments != self.ready.arguments;
        if changed {
            self.check_changed(&arguments)?;
        }
        let attempt = self.begin_entry(changed.then(|| arguments.clone()))?;
        self.progress.entered(self.ready.occurrence);
        let context = context.for_body(attempt);
        let result = self.body(context, arguments).await;
        match result {
            Ok(ToolOutput::Stream(pieces)) if wrapped => {
                // What the stream ends with is seen here first: a middleware may hide it.
                let entries = Arc::clone(&self.entries);
                Ok(ToolOutput::stream(pieces.inspect(move |piece| {
                    if matches!(piece, Err(error) if error.as_interrupt().is_some()) {
                        lock(&entries).asked = true;
                    }
                })))
            }
            Err(error) if error.as_interrupt().is_some() => {
                lock(&self.entries).asked = true;
                Err(error)
            }
            Err(error) if error.as_left_open().is_some() => {
                lock(&self.entries).left_open = error.as_left_open().cloned();
                Err(error)
            }
            result => result,
        }
    }

    /// Validates arguments that a middleware changed around the call.
    fn check_changed(&self, arguments: &ToolArguments) -> Result<(), ToolError> {
        if self.ready.decided {
            return Err(ToolError::permission_denied(
                "the arguments changed after they were approved; the tool was not run",
            ));
        }
        let value = Value::Object(arguments.clone());
        check_arguments(self.name(), value, self.ready.tool.schema())
            .map(drop)
            .map_err(|fault| ToolError::invalid_parameters(fault.to_string()))
    }

    /// Notes an entry, unless it is once too often; says which it is, from 1.
    fn begin_entry(&self, changed: Option<ToolArguments>) -> Result<u32, ToolError> {
        let mut entries = lock(&self.entries);
        if (entries.count > 0 || self.ready.body_ended) && !self.is_idempotent() {
            return Err(ToolError::execution_failed(
                "a middleware ran a tool twice that is not idempotent: the body was not entered \
                 again",
            ));
        }
        let attempt = self.ready.attempt + entries.count;
        entries.count += 1;
        entries.asked = false;
        entries.arguments = changed;
        Ok(attempt)
    }

    async fn body(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        let tool = self.ready.tool.tool();
        let Some(mut observation) = Observation::begin(&self.options, &context, &arguments) else {
            return tool.call(context, arguments).await;
        };
        let body = async move { tool.call(context, arguments).await };
        let body = AssertUnwindSafe(body).catch_unwind();
        match body.await {
            Ok(result) => observation.end(result),
            Err(payload) => {
                observation.panicked(&*payload);
                resume_unwind(payload)
            }
        }
    }
}

pub(super) fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReadyCall {
    /// The call as it goes on behind an entry that asked the outside.
    pub(super) fn interrupted(mut self, entries: &Entries) -> Self {
        self.attempt += entries.count;
        self.asked_around = !entries.asked;
        self.body_ended |= entries.count > 0 && !entries.asked;
        self.resumption = None;
        self
    }

    /// The call as it ran. One that asked keeps its arguments as they are recorded: what changes them
    /// is passed again.
    pub(super) fn ran(mut self: Arc<Self>, entries: &mut Entries, end: &BodyEnd) -> Arc<Self> {
        if let Some(arguments) = entries.arguments.take()
            && !end.asks()
        {
            let ready = Arc::make_mut(&mut self);
            ready.arguments = arguments;
            ready.rewritten = true;
        }
        self
    }
}

/// The message of a panic, as callbacks are told.
pub(crate) fn panic_error(payload: &(dyn std::any::Any + Send)) -> ToolError {
    ToolError::execution_failed(format!("panicked: {}", panic_message(payload)))
}
