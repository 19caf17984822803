//! Logs what passes through a stack. This is the file to copy to write a layer.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientLayer, ChatClientMetadata, ChatClientRunOptions, ChatMessage,
    Error, ErrorKind, IChatClient, LayerPlacement, Result, UpdateStream,
};
use serde::Serialize;
use tracing::{Level, debug, enabled, error, trace, warn};

/// Logs start, end and failure of each run that passes through, by way of [`tracing`].
///
/// | level | event | fields |
/// |---|---|---|
/// | `error` | `failed`, and trying again cannot help | `kind`, `error`, `elapsed_ms`, `updates` |
/// | `warn` | `failed`, and trying again may help | the same |
/// | `debug` | `started` | `model` (if the options name one), `messages`, `tools` |
/// | `debug` | `ended` | `reason`, `elapsed_ms`, `updates`, `input_tokens`, `output_tokens` |
/// | `debug` | `cancelled` by its token or flag | `elapsed_ms`, `updates` |
/// | `debug` | `dropped` before its end | `elapsed_ms`, `updates` |
/// | `trace` | `update`, each one | `update` (its kind) |
/// | `trace` | `message`, each one sent; only with contents | `content` |
///
/// - **Level.** The subscriber decides. At its usual `info` only failures are seen, and an update
///   costs a counter and two comparisons; nothing is formatted. To see more:
///   `RUST_LOG=raf_framework::logging=debug`.
/// - **Contents.** Off. [`with_contents`](Self::with_contents) adds messages and updates, as JSON,
///   to the `trace` events. All text first passes through
///   [`with_redaction`](Self::with_redaction); the default changes nothing.
/// - **Place.** Anywhere. Before the loop it sees whole legs, after the loop each model request:
///
///   ```text
///   .logging().function_invoking(tools)    one start and one end per leg, tools included
///   .function_invoking(tools).logging()    one start and one end per model request
///   .logging().function_invoking(tools).logging()    both; the inner ones carry the span `chat`
///   ```
/// - **Drop.** Dropping the stream drops the inner stream, and logs `dropped`.
#[derive(Clone, Debug)]
pub struct LoggingChatClient {
    inner: Arc<dyn IChatClient>,
    contents: bool,
    redaction: fn(&str) -> Cow<'_, str>,
}

impl LoggingChatClient {
    /// Logs around a client: no contents.
    pub fn new(inner: Arc<dyn IChatClient>) -> Self {
        Self {
            inner,
            contents: false,
            redaction: |text| Cow::Borrowed(text),
        }
    }

    /// Sets whether messages and updates are logged, at `trace`. Default: no.
    pub fn with_contents(mut self, contents: bool) -> Self {
        self.contents = contents;
        self
    }

    /// Sets what each text passes through before it is logged: messages and updates as JSON, and the
    /// text of errors. Default: it stays as it is.
    ///
    /// It sees one message or one update at a time: what streams in two pieces is not whole in either.
    pub fn with_redaction(mut self, redaction: fn(&str) -> Cow<'_, str>) -> Self {
        self.redaction = redaction;
        self
    }

    /// The layer for a [`ChatClientBuilder`](raf_core::ChatClientBuilder), without contents.
    pub fn layer() -> ChatClientLayer {
        Self::layer_with(|logging| logging)
    }

    /// The layer, set up: `layer_with(|logging| logging.with_contents(true))`.
    pub fn layer_with(configure: impl FnOnce(Self) -> Self + Send + 'static) -> ChatClientLayer {
        ChatClientLayer::new("logging", LayerPlacement::Anywhere, |inner| {
            configure(Self::new(inner))
        })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for LoggingChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let mut log = RunLog::start(self, messages, &options);
        let updates = self.inner.run(messages, options).await;
        let updates = updates.inspect_err(|error| log.failed(error))?;
        Ok(updates.inspect(move |item| log.see(item)).boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

/// The log of one run. It lives in the stream: what is dropped without an end says so.
struct RunLog {
    contents: bool,
    redaction: fn(&str) -> Cow<'_, str>,
    started: Instant,
    updates: u64,
    ended: bool,
}

impl RunLog {
    fn start(
        client: &LoggingChatClient,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
    ) -> Self {
        let log = Self {
            contents: client.contents,
            redaction: client.redaction,
            started: Instant::now(),
            updates: 0,
            ended: false,
        };
        debug!(
            model = options.model,
            messages = messages.len(),
            tools = options.tools.len(),
            "started"
        );
        if log.contents && enabled!(Level::TRACE) {
            for message in messages {
                trace!(content = %log.json(message), "message");
            }
        }
        log
    }

    /// Sees an item pass. Runs for every delta: without `trace` it must cost next to nothing.
    fn see(&mut self, item: &Result<AgentResponseUpdate>) {
        let update = match item {
            Ok(update) => update,
            Err(error) => return self.failed(error),
        };
        self.updates += 1;
        if enabled!(Level::TRACE) {
            let content = self.contents.then(|| self.json(update));
            trace!(update = update.kind(), content, "update");
        }
        if let AgentResponseUpdate::Finish { finish } = update {
            self.ended = true;
            debug!(
                reason = ?finish.reason,
                elapsed_ms = self.elapsed_ms(),
                updates = self.updates,
                input_tokens = finish.usage.input_tokens,
                output_tokens = finish.usage.output_tokens,
                "ended"
            );
        }
    }

    fn failed(&mut self, failure: &Error) {
        self.ended = true;
        let (elapsed_ms, updates) = (self.elapsed_ms(), self.updates);
        let kind = failure.kind().as_str();
        let text = || (self.redaction)(&failure.to_string()).into_owned();
        if failure.kind() == ErrorKind::Cancelled {
            debug!(elapsed_ms, updates, "cancelled");
        } else if failure.is_temporary() {
            warn!(kind, error = text(), elapsed_ms, updates, "failed");
        } else {
            error!(kind, error = text(), elapsed_ms, updates, "failed");
        }
    }

    fn json(&self, content: &impl Serialize) -> String {
        match serde_json::to_string(content) {
            Ok(json) => (self.redaction)(&json).into_owned(),
            Err(error) => format!("(no JSON: {error})"),
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        if !self.ended {
            let (elapsed_ms, updates) = (self.elapsed_ms(), self.updates);
            debug!(elapsed_ms, updates, "dropped");
        }
    }
}

#[cfg(test)]
mod tests;
