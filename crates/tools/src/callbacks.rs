//! Observers of bodies: exactly one start and one end for each body that is entered.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use raf_core::Content;
use tokio::time::Instant;

use crate::context::ToolContext;
use crate::error::{Interrupt, ToolError};
use crate::execution::{ExecutionOptions, panic_error};
use crate::output::ToolOutput;
use crate::tool::ToolArguments;

/// Sees each body that is entered, innermost: with the arguments that run and the tool's own output.
///
/// For each start there is exactly one of end, error and interrupt; a body that is dropped (deadline,
/// cancellation) ends in an error of kind `Cancelled`, one that panics in one of kind
/// `ExecutionFailed`. A call that is answered without its body has none. A panic in a callback harms
/// nothing. It must not block.
pub trait IToolCallback: Debug + Send + Sync {
    /// The body is being entered.
    fn on_start(&self, call: &CallbackCall, arguments: &ToolArguments) {
        let _ = (call, arguments);
    }

    /// The body streamed a piece.
    fn on_piece(&self, call: &CallbackCall, piece: &Content) {
        let _ = (call, piece);
    }

    /// The body ended well: with a whole output, or at the end of its stream (`None`).
    fn on_end(&self, call: &CallbackCall, output: Option<&ToolOutput>) {
        let _ = (call, output);
    }

    /// The body failed.
    fn on_error(&self, call: &CallbackCall, error: &ToolError) {
        let _ = (call, error);
    }

    /// The body asked the outside: not an error.
    fn on_interrupt(&self, call: &CallbackCall, interrupt: &Interrupt) {
        let _ = (call, interrupt);
    }
}

/// A body as callbacks see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallbackCall {
    /// Ids of call and run, tool, attempt, extensions.
    pub context: ToolContext,
    /// When it was entered.
    pub started: Instant,
}

impl CallbackCall {
    /// How long ago the body was entered.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The observation of one body. Dropped without an end, it says that the body was dropped.
pub(crate) struct Observation {
    options: Arc<ExecutionOptions>,
    call: CallbackCall,
    ended: bool,
}

impl Observation {
    /// Begins to observe; `None` where nobody watches.
    pub(crate) fn begin(
        options: &Arc<ExecutionOptions>,
        context: &ToolContext,
        arguments: &ToolArguments,
    ) -> Option<Self> {
        if options.callbacks.is_empty() {
            return None;
        }
        let observation = Self {
            options: Arc::clone(options),
            call: CallbackCall {
                context: context.clone(),
                started: Instant::now(),
            },
            ended: false,
        };
        observation.tell(|callback, call| callback.on_start(call, arguments));
        Some(observation)
    }

    fn tell(&self, tell: impl Fn(&dyn IToolCallback, &CallbackCall)) {
        for callback in &self.options.callbacks {
            let told = catch_unwind(AssertUnwindSafe(|| tell(&**callback, &self.call)));
            if told.is_err() {
                tracing::error!(?callback, "a tool callback panicked");
            }
        }
    }

    /// Says how the body ended; a stream is watched to its end.
    pub(crate) fn end(
        mut self,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        match result {
            Ok(ToolOutput::Stream(pieces)) => Ok(ToolOutput::Stream(self.watch(pieces))),
            Ok(output) => {
                self.ended = true;
                self.tell(|callback, call| callback.on_end(call, Some(&output)));
                Ok(output)
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    /// Says that the body failed, or asked the outside.
    pub(crate) fn failed(&mut self, error: &ToolError) {
        self.ended = true;
        match error.as_interrupt() {
            Some(interrupt) => self.tell(|callback, call| callback.on_interrupt(call, interrupt)),
            None => self.tell(|callback, call| callback.on_error(call, error)),
        }
    }

    /// Says that the body panicked.
    pub(crate) fn panicked(&mut self, payload: &(dyn Any + Send)) {
        if !self.ended {
            self.failed(&panic_error(payload));
        }
    }

    fn watch(
        self,
        pieces: BoxStream<'static, Result<Content, ToolError>>,
    ) -> BoxStream<'static, Result<Content, ToolError>> {
        futures::stream::unfold((pieces, self), async |(mut pieces, mut observation)| {
            let piece = match AssertUnwindSafe(pieces.next()).catch_unwind().await {
                Ok(piece) => piece,
                Err(payload) => {
                    observation.panicked(&*payload);
                    resume_unwind(payload)
                }
            };
            match &piece {
                Some(Ok(piece)) => {
                    observation.tell(|callback, call| callback.on_piece(call, piece));
                }
                Some(Err(error)) if !observation.ended => observation.failed(error),
                None if !observation.ended => {
                    observation.ended = true;
                    observation.tell(|callback, call| callback.on_end(call, None));
                }
                Some(Err(_)) | None => {}
            }
            piece.map(|piece| (piece, (pieces, observation)))
        })
        .boxed()
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.ended {
            self.failed(&ToolError::cancelled());
        }
    }
}
