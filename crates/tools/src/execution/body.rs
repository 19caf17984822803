//! One body as a task: its deadline, its cancellation and grace, its panic barrier, all in its own
//! wrapper, so that they work while nobody polls the run.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use raf_core::{Cancellation, Content, Error};
use serde_json::Value;

use super::invoke::Invocation;
use super::stopping::cancelled;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kinds::join;
use crate::output::ToolOutput;

/// How a body ended.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// It returned, before any deadline or within the grace after a cancellation.
    Returned(Result<BodyValue, ToolError>),
    /// It panicked with this message.
    Panicked(String),
    /// The deadline passed; it was dropped.
    TimedOut,
    /// It was told to stop before it was entered.
    NeverEntered,
    /// It was told to stop and did not end within the grace; it was dropped.
    Abandoned,
    /// The run that it is could not be kept: the call comes to no outcome.
    LeftOpen(Error),
}

impl BodyEnd {
    /// Whether the call asks the outside.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::Returned(Err(error)) if error.as_interrupt().is_some())
    }
}

/// What a body returned, a stream joined.
#[derive(Debug)]
pub(super) enum BodyValue {
    Void,
    Text(String),
    Json(Value),
    Parts(Vec<Content>),
}

/// What a body runs under.
#[derive(Clone, Debug)]
pub(super) struct BodyLimits {
    pub(super) deadline: Option<Duration>,
    pub(super) grace: Duration,
}

/// Runs a call to its end: through its middleware to its body. `stop` is the call's own signal, which
/// the context shows the body.
pub(super) async fn run_body(
    invocation: Invocation,
    context: ToolContext,
    stop: Cancellation,
    limits: BodyLimits,
) -> BodyEnd {
    if stop.is_cancelled() {
        return BodyEnd::NeverEntered;
    }
    let body = AssertUnwindSafe(async move {
        let output = invocation.run(context.clone()).await?;
        whole(output, &context, &invocation).await
    })
    .catch_unwind();
    let mut body = Box::pin(body);
    let deadline = async {
        match limits.deadline {
            Some(deadline) => tokio::time::sleep(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        end = &mut body => returned(end),
        () = cancelled(&stop) => match tokio::time::timeout(limits.grace, body).await {
            Ok(end) => returned(end),
            Err(_) => BodyEnd::Abandoned,
        },
        () = deadline => {
            stop.cancel();
            BodyEnd::TimedOut
        }
    }
}

fn returned(end: Result<Result<BodyValue, ToolError>, Box<dyn Any + Send>>) -> BodyEnd {
    match end {
        Ok(end) => BodyEnd::Returned(end),
        Err(payload) => BodyEnd::Panicked(panic_message(&*payload)),
    }
}

/// The message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// The whole of an output: pieces of a stream are shown as progress and joined by kind.
async fn whole(
    output: ToolOutput,
    context: &ToolContext,
    invocation: &Invocation,
) -> Result<BodyValue, ToolError> {
    Ok(match output {
        ToolOutput::Void => BodyValue::Void,
        ToolOutput::Text(text) => BodyValue::Text(text),
        ToolOutput::Json(value) => BodyValue::Json(value),
        ToolOutput::Parts(parts) => BodyValue::Parts(parts),
        ToolOutput::Stream(pieces) => {
            let joined = join(pieces, |piece| context.progress(piece.clone())).await;
            invocation.streamed(&joined);
            BodyValue::Parts(joined?)
        }
    })
}
