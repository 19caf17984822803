//! The executor: an assistant message with calls in, results out.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use raf_core::{
    AbandonedCall, Cancellation, ChatMessage, Error, MessageRole, Occurrence, Result, RunId,
    TerminationCause, ToolCall, ToolErrorClass, ToolOutcome, ToolResult, emit_stream,
};

use super::batch::{Batch, BatchContext, BatchEvent, QueuedCall};
use super::options::{ExecutionOptions, UnknownToolPolicy};
use super::permits::ToolPermits;
use super::prepare::{PreparedCall, SettledCall};
use crate::registered::RegisteredTool;
use crate::registry::ToolRegistry;
use crate::toolset::ToolSet;

/// Runs the calls of an assistant message: usable on its own, and the loop's only way to run a tool.
///
/// Cheap to clone; bounds per tool are shared by all clones.
#[derive(Clone, Debug)]
pub struct ToolExecutor {
    registry: ToolRegistry,
    options: ExecutionOptions,
    permits: Arc<ToolPermits>,
}

/// What belongs to one use of an executor on its own.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// The tools that are visible; `None` is those of the registry, an empty list is none.
    pub tools: Option<Vec<RegisteredTool>>,
    /// What stops the batch.
    pub cancellation: Cancellation,
    /// Per-call things that tools may read.
    pub extensions: raf_core::Extensions,
    /// The run that the calls belong to; a random one if unset.
    pub run_id: Option<RunId>,
    /// The round within the run.
    pub round: u32,
}

impl ExecuteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets which tools are visible, instead of those of the registry.
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = RegisteredTool>) -> Self {
        self.tools = Some(tools.into_iter().collect());
        self
    }

    /// Sets what stops the batch.
    pub fn with_cancellation(mut self, cancellation: impl Into<Cancellation>) -> Self {
        self.cancellation = cancellation.into();
        self
    }

    /// Sets a thing that tools may read, by its type.
    pub fn with_extension<T: std::any::Any + Send + Sync>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Sets the run and the round that the calls belong to.
    pub fn with_run(mut self, run_id: RunId, round: u32) -> Self {
        self.run_id = Some(run_id);
        self.round = round;
        self
    }
}

/// What came of a batch that was run on its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// One result per call, in call order.
    pub results: Vec<ToolResult>,
    /// Why the batch was ended early, if it was.
    pub termination: Option<TerminationCause>,
    /// Bodies that did not end within their grace.
    pub abandoned: Vec<AbandonedCall>,
}

impl Execution {
    /// One tool message per result, in call order.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.results
            .iter()
            .cloned()
            .map(ChatMessage::tool)
            .collect()
    }
}

impl ToolExecutor {
    /// An executor of a registry's tools, with default options.
    pub fn new(registry: ToolRegistry) -> Self {
        Self::with_options(registry, ExecutionOptions::default())
    }

    /// An executor with options of its own.
    pub fn with_options(registry: ToolRegistry, options: ExecutionOptions) -> Self {
        Self {
            registry,
            options,
            permits: Arc::default(),
        }
    }

    /// The registered tools.
    pub fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Limits and policies.
    pub fn options(&self) -> &ExecutionOptions {
        &self.options
    }

    /// Runs all calls of an assistant message. Gated calls are denied.
    ///
    /// Dropping the future stops the bodies.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) if the message is not an assistant's, has
    /// no calls, or no tokio runtime runs. What tools fail with is in the results.
    pub async fn execute(
        &self,
        message: &ChatMessage,
        options: ExecuteOptions,
    ) -> Result<Execution> {
        let mut batch = self.open(message, options)?;
        let mut results: Vec<(Occurrence, ToolResult)> = Vec::new();
        while let Some(event) = batch.next().await {
            if let BatchEvent::Finished(finished) = event {
                results.push((finished.occurrence, finished.result));
            }
        }
        results.sort_by_key(|(occurrence, _)| *occurrence);
        Ok(Execution {
            results: results.into_iter().map(|(_, result)| result).collect(),
            termination: batch.termination(),
            abandoned: batch.abandoned().to_vec(),
        })
    }

    /// Runs all calls of an assistant message and says what happens as it happens: starts,
    /// progress, outcomes in order of completion. Gated calls are denied.
    ///
    /// Dropping the stream stops the bodies.
    ///
    /// # Errors
    /// As [`ToolExecutor::execute`].
    pub fn stream(
        &self,
        message: &ChatMessage,
        options: ExecuteOptions,
    ) -> Result<BoxStream<'static, BatchEvent>> {
        let mut batch = self.open(message, options)?;
        let events = emit_stream(async move |mut out: raf_core::Emitter<BatchEvent>| {
            while let Some(event) = batch.next().await {
                out.emit(event).await;
            }
            Ok(())
        });
        Ok(events
            .filter_map(|event| std::future::ready(event.ok()))
            .boxed())
    }

    /// A batch over calls that were prepared.
    pub fn batch(&self, context: BatchContext, calls: Vec<QueuedCall>) -> Batch {
        let permits = Arc::clone(&self.permits);
        Batch::new(context, self.options.clone(), permits, calls)
    }

    fn open(&self, message: &ChatMessage, options: ExecuteOptions) -> Result<Batch> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(no_runtime());
        }
        if message.role() != MessageRole::Assistant {
            return Err(Error::misuse(format!(
                "tool calls stand in an assistant message; this one's role is {:?}",
                message.role()
            )));
        }
        let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
        if calls.is_empty() {
            return Err(Error::misuse(
                "the assistant message asks for no tool calls",
            ));
        }
        let tools = match &options.tools {
            Some(tools) => ToolSet::merge(tools, &[], &[], &[], &[])?,
            None => ToolSet::merge(self.registry.tools(), &[], &[], &[], &[])?,
        };
        let occurrences = (0..).map(|position| Occurrence::new(options.round, position));
        let prepared: Vec<(Occurrence, ToolCall, PreparedCall)> = occurrences
            .zip(&calls)
            .map(|(occurrence, call)| (occurrence, call.clone(), tools.prepare(occurrence, call)))
            .collect();
        let stops = self.options.unknown_tools == UnknownToolPolicy::Stop
            && prepared.iter().any(|(_, _, call)| is_unknown(call));
        let queue = prepared
            .into_iter()
            .map(|(occurrence, call, prepared)| match prepared {
                PreparedCall::Settled(settled) => QueuedCall::Settled(settled),
                _ if stops => QueuedCall::Settled(SettledCall::skipped(
                    occurrence,
                    &call,
                    raf_core::SkipReason::Terminated,
                )),
                PreparedCall::Run(ready) => QueuedCall::Ready(ready),
                PreparedCall::Gated(_) => QueuedCall::Settled(denied(occurrence, &call)),
                PreparedCall::DeclaredOnly => QueuedCall::Settled(SettledCall::new(
                    occurrence,
                    &call,
                    ToolOutcome::Error(ToolErrorClass::UnknownTool),
                    Some(format!("The tool '{}' has no body here.", call.name())),
                )),
            })
            .collect();
        let context = BatchContext {
            run_id: options.run_id.unwrap_or_else(RunId::random),
            parent_run_id: None,
            cancellation: options.cancellation,
            extensions: options.extensions,
        };
        let mut batch = self.batch(context, queue);
        if stops {
            batch.terminate(TerminationCause::UnknownTool);
        }
        Ok(batch)
    }
}

/// Whether a call was settled because its tool is unknown.
pub(super) fn is_unknown(call: &PreparedCall) -> bool {
    matches!(call, PreparedCall::Settled(settled)
        if settled.result.outcome() == ToolOutcome::Error(ToolErrorClass::UnknownTool))
}

/// A gated call where nobody can be asked.
fn denied(occurrence: Occurrence, call: &ToolCall) -> SettledCall {
    SettledCall::new(
        occurrence,
        call,
        ToolOutcome::Denied,
        Some(format!(
            "Rejected: the tool '{}' needs an approval, and nobody can be asked here.",
            call.name()
        )),
    )
}

fn no_runtime() -> Error {
    Error::misuse(
        "tools run on a tokio runtime, and none is running here: call this from inside \
         `#[tokio::main]` or `Runtime::block_on`",
    )
}
