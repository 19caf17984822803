//! What the tests of middleware and callbacks share: a log that is written as things happen.

use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use raf_core::Content;
use raf_tools::{
    CallbackCall, IToolCallback, IToolMiddleware, Interrupt, Next, ToolArguments, ToolError,
    ToolInvocation, ToolOutput,
};
use serde_json::Value;

pub(crate) type Log = Arc<Mutex<Vec<String>>>;

pub(crate) fn say(log: &Log, line: impl Into<String>) {
    log.lock()
        .expect("no test panics while it writes")
        .push(line.into());
}

/// What was said since the last time.
pub(crate) fn said(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().expect("no test panics while it writes"))
}

/// Writes its name on the way in and out.
#[derive(Debug)]
pub(crate) struct Named(pub(crate) &'static str, pub(crate) Log);

#[async_trait]
impl IToolMiddleware for Named {
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        say(&self.1, format!("{}> {}", self.0, call.context.call_id()));
        let output = next.run(call).await;
        say(&self.1, format!("<{}", self.0));
        output
    }
}

/// Writes what it observes.
#[derive(Debug)]
pub(crate) struct Observer(pub(crate) Log);

impl IToolCallback for Observer {
    fn on_start(&self, call: &CallbackCall, arguments: &ToolArguments) {
        let arguments = Value::Object(arguments.clone());
        let tool = call.context.tool_name();
        say(&self.0, format!("start {tool} {arguments}"));
    }

    fn on_piece(&self, _: &CallbackCall, piece: &Content) {
        let piece = piece.as_text().unwrap_or("media");
        say(&self.0, format!("piece {piece}"));
    }

    fn on_end(&self, _: &CallbackCall, output: Option<&ToolOutput>) {
        say(&self.0, format!("end {}", output.is_some()));
    }

    fn on_error(&self, _: &CallbackCall, error: &ToolError) {
        say(&self.0, format!("error {:?}", error.kind()));
    }

    fn on_interrupt(&self, _: &CallbackCall, interrupt: &Interrupt) {
        say(&self.0, format!("interrupt {}", interrupt.information));
    }
}

type Step = dyn for<'a> Fn(ToolInvocation, Next<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

/// A middleware from a closure.
pub(crate) struct Around(Box<Step>);

impl fmt::Debug for Around {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Around")
    }
}

pub(crate) fn around<F>(step: F) -> Around
where
    F: for<'a> Fn(ToolInvocation, Next<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    Around(Box::new(step))
}

#[async_trait]
impl IToolMiddleware for Around {
    async fn around(&self, call: ToolInvocation, next: Next<'_>) -> Result<ToolOutput, ToolError> {
        (self.0)(call, next).await
    }
}
