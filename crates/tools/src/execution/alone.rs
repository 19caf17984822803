//! What goes into an executor that is used on its own, and what comes out.

use raf_core::{
    AbandonedCall, Cancellation, ChatMessage, PausedRun, PendingCall, RefusalReason, RunId,
    TerminationCause, ToolDeclaration, ToolResult,
};

use super::batch::BatchEvent;
use crate::registered::RegisteredTool;

/// What belongs to one use of an executor on its own.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExecuteOptions {
    /// The tools that are visible; `None` is those of the registry, an empty list is none.
    pub tools: Option<Vec<RegisteredTool>>,
    /// Tools that have no body here: their calls wait for the caller's results.
    pub declared: Vec<ToolDeclaration>,
    /// What stops the batch.
    pub cancellation: Cancellation,
    /// Per-call things that tools may read.
    pub extensions: raf_core::Extensions,
    /// The run that the calls belong to; a random one if unset.
    pub run_id: Option<RunId>,
    /// The run that the run is nested in.
    pub parent_run_id: Option<RunId>,
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

    /// Sets the tools that have no body here.
    pub fn with_declared(mut self, tools: impl IntoIterator<Item = ToolDeclaration>) -> Self {
        self.declared = tools.into_iter().collect();
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

    /// Sets the run that the run is nested in: that of the tool whose body uses the executor.
    pub fn with_parent_run_id(mut self, parent: RunId) -> Self {
        self.parent_run_id = Some(parent);
        self
    }
}

/// What came of a batch that was run on its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// The results so far, in call order; one per call where nothing is pending. After a resume,
    /// those of earlier legs are among them.
    pub results: Vec<ToolResult>,
    /// The calls that wait for the outside, each with its id and address.
    pub pending: Vec<PendingCall>,
    /// The batch as a value, if calls are pending: give it to [`ToolExecutor::resume`](crate::ToolExecutor::resume).
    pub paused: Option<PausedRun>,
    /// Answers that did not fit, and why. Their calls are as they were.
    pub refusals: Vec<(String, RefusalReason)>,
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

/// One item of a batch that is run on its own, as a stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExecutionUpdate {
    /// What happens, as it happens.
    Event(BatchEvent),
    /// What came of it: the last item.
    End(Box<Execution>),
}
