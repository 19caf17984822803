//! What one entry of a scripted tool's body does: some steps, then an end.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use raf_core::Content;
use raf_tools::{ToolArguments, ToolContext, ToolError, ToolOutput};
use serde_json::Value;
use tokio::sync::Barrier;

use crate::latch::Latch;

type Body = Arc<
    dyn Fn(ToolContext, ToolArguments) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

/// What a body does: how it ends, and by `after_…` what it does before that, in the order given.
///
/// ```
/// use std::time::Duration;
/// use raf_testing::{Behaviour, Latch};
///
/// let latch = Latch::new();
/// let slow = Behaviour::text("done").after_latch(&latch).after_sleep(Duration::from_millis(10));
/// ```
#[derive(Clone)]
pub struct Behaviour {
    steps: Vec<Step>,
    end: Body,
}

#[derive(Clone)]
enum Step {
    Latch(Latch),
    Open(Latch),
    Barrier(Arc<Barrier>),
    Sleep(Duration),
    Cancellation,
    Progress(Content),
}

impl Behaviour {
    /// Ends as a function of context and arguments says.
    pub fn custom<F, Fut>(body: F) -> Self
    where
        F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            steps: Vec::new(),
            end: Arc::new(move |context, arguments| body(context, arguments).boxed()),
        }
    }

    /// Behaves as the behaviour that a function of context and arguments chooses.
    pub fn from_fn(
        rule: impl Fn(&ToolContext, &ToolArguments) -> Self + Send + Sync + 'static,
    ) -> Self {
        Self::custom(move |context, arguments| {
            let chosen = rule(&context, &arguments);
            async move { chosen.perform(context, arguments).await }
        })
    }

    /// Returns nothing.
    pub fn void() -> Self {
        Self::returns(|| ToolOutput::Void)
    }

    /// Returns text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::returns(move || ToolOutput::Text(text.clone()))
    }

    /// Returns JSON.
    pub fn json(value: Value) -> Self {
        Self::returns(move || ToolOutput::Json(value.clone()))
    }

    /// Returns typed parts.
    pub fn parts(parts: impl IntoIterator<Item = Content>) -> Self {
        let parts: Vec<Content> = parts.into_iter().collect();
        Self::returns(move || ToolOutput::Parts(parts.clone()))
    }

    /// Returns a stream of these pieces.
    pub fn pieces(pieces: impl IntoIterator<Item = Content>) -> Self {
        let pieces: Vec<Content> = pieces.into_iter().collect();
        Self::returns(move || {
            ToolOutput::stream(futures::stream::iter(pieces.clone().into_iter().map(Ok)))
        })
    }

    /// Returns its arguments as JSON.
    pub fn echo() -> Self {
        Self::custom(|_, arguments| async { Ok(ToolOutput::Json(Value::Object(arguments))) })
    }

    /// Returns what a function makes.
    pub fn returns(output: impl Fn() -> ToolOutput + Send + Sync + 'static) -> Self {
        Self::custom(move |_, _| std::future::ready(Ok(output())))
    }

    /// Fails with what a function makes.
    pub fn fails(error: impl Fn() -> ToolError + Send + Sync + 'static) -> Self {
        Self::custom(move |_, _| std::future::ready(Err(error())))
    }

    /// Fails because the arguments make no sense.
    pub fn invalid_parameters(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::invalid_parameters, message)
    }

    /// Fails with a text that is for the log only.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::execution_failed, message)
    }

    /// Fails with a text that the model reads.
    pub fn tell_model(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::tell_model, message)
    }

    /// Fails for want of a right.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::permission_denied, message)
    }

    /// Fails because something took too long.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::timeout, message)
    }

    /// Fails so that the run must not go on.
    pub fn fatal(message: impl Into<String>) -> Self {
        Self::fails_with(ToolError::fatal, message)
    }

    /// Waits for the outside: fails with an interrupt on the first entry, and returns the answer's
    /// data as JSON when it is entered again with one.
    pub fn interrupt(information: Value, state: Value) -> Self {
        Self::custom(move |context, _| {
            let result = match context.resumption() {
                Some(resumption) => Ok(ToolOutput::Json(resumption.data.clone())),
                None => Err(ToolError::interrupt(information.clone(), state.clone())),
            };
            std::future::ready(result)
        })
    }

    /// Panics.
    pub fn panics(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::custom(move |_, _| {
            let message = message.clone();
            async move { panic!("{message}") }
        })
    }

    /// Never ends, whatever the token says: it must be dropped.
    pub fn hang() -> Self {
        Self::custom(|_, _| std::future::pending())
    }

    /// Waits until it is told to stop, then gives up.
    pub fn until_cancelled() -> Self {
        Self::fails(ToolError::cancelled).after_cancellation()
    }

    /// First waits until the test opens this latch.
    pub fn after_latch(self, latch: &Latch) -> Self {
        self.step(Step::Latch(latch.clone()))
    }

    /// First waits until as many bodies as the barrier counts have come to it.
    pub fn after_barrier(self, barrier: &Arc<Barrier>) -> Self {
        self.step(Step::Barrier(Arc::clone(barrier)))
    }

    /// First sleeps on tokio's clock: use it with a paused clock only.
    pub fn after_sleep(self, time: Duration) -> Self {
        self.step(Step::Sleep(time))
    }

    /// First waits until it is told to stop, and then goes on nevertheless.
    pub fn after_cancellation(self) -> Self {
        self.step(Step::Cancellation)
    }

    /// First opens a latch.
    pub fn after_opening(self, latch: &Latch) -> Self {
        self.step(Step::Open(latch.clone()))
    }

    /// First says something to the consumer of the stream.
    pub fn after_progress(self, content: impl Into<Content>) -> Self {
        self.step(Step::Progress(content.into()))
    }

    pub(super) async fn perform(
        self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        for step in self.steps {
            match step {
                Step::Latch(latch) => latch.wait().await,
                Step::Open(latch) => latch.open(),
                Step::Barrier(barrier) => {
                    barrier.wait().await;
                }
                Step::Sleep(time) => tokio::time::sleep(time).await,
                Step::Cancellation => context.cancelled().await,
                Step::Progress(said) => context.progress(said),
            }
        }
        (self.end)(context, arguments).await
    }

    fn fails_with(make: fn(String) -> ToolError, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::fails(move || make(message.clone()))
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Behaviour")
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}
