//! What a batch belongs to, what goes into it, what happens in it.

use raf_core::{
    Cancellation, Content, Extensions, NestedUpdate, Occurrence, RunId, ToolCall, ToolErrorClass,
    ToolOutcome, ToolResult,
};

use crate::context::NestedReport;
use crate::error::Interrupt;
use crate::execution::digest::ResultDigest;
use crate::execution::prepare::{ReadyCall, SettledCall};

/// What a batch belongs to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchContext {
    /// The run.
    pub run_id: RunId,
    /// The run that it is nested in.
    pub parent_run_id: Option<RunId>,
    /// What stops it.
    pub cancellation: Cancellation,
    /// Per-run things that tools may read.
    pub extensions: Extensions,
}

impl BatchContext {
    /// A batch of a run.
    pub fn new(run_id: RunId, cancellation: Cancellation) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            cancellation,
            extensions: Extensions::new(),
        }
    }

    /// Sets the per-run things that tools may read.
    pub fn with_extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = extensions;
        self
    }

    /// Sets the run that the run is nested in.
    pub fn with_parent_run_id(mut self, parent: Option<RunId>) -> Self {
        self.parent_run_id = parent;
        self
    }
}

/// What happens in a batch.
#[derive(Debug)]
#[non_exhaustive]
pub enum BatchEvent {
    /// A body is being entered.
    Started {
        /// Which call.
        occurrence: Occurrence,
        /// As the model made it.
        call: ToolCall,
    },
    /// A running body says something.
    Progress {
        /// Which call.
        occurrence: Occurrence,
        /// What it says.
        content: Content,
    },
    /// A run nested in a running body says something.
    Nested {
        /// Which call.
        occurrence: Occurrence,
        /// What it says.
        nested: NestedUpdate,
    },
    /// What a run nested in a body has used, before that body's end is told.
    NestedUsed {
        /// Which call.
        occurrence: Occurrence,
        /// What it used.
        report: NestedReport,
    },
    /// A call has its outcome.
    Finished(FinishedCall),
    /// A body waits for the outside.
    Interrupted {
        /// The call, to be entered again with the answer.
        ready: Box<ReadyCall>,
        /// What it says, and what it wants to find again.
        interrupt: Interrupt,
        /// A random id by which an answer names it.
        request_id: String,
    },
}

/// A call that has its outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedCall {
    /// Which call.
    pub occurrence: Occurrence,
    /// As the model made it.
    pub call: ToolCall,
    /// What became of it.
    pub result: ToolResult,
    /// The fingerprint of the result before it was rendered.
    pub digest: ResultDigest,
    /// Whether equal calls of this tool are a way to wait.
    pub polling: bool,
}

impl FinishedCall {
    /// A call that was not run.
    pub(in crate::execution) fn from_settled(settled: SettledCall) -> Self {
        let outcome = settled.result.outcome();
        let text = match outcome {
            ToolOutcome::Error(ToolErrorClass::InvalidArguments) => settled.result.text(),
            _ => String::new(),
        };
        Self {
            occurrence: settled.occurrence,
            call: settled.call,
            digest: ResultDigest::of(outcome, &text),
            result: settled.result,
            polling: false,
        }
    }
}

/// One item of the queue.
#[derive(Debug)]
pub enum QueuedCall {
    /// A body to run.
    Ready(Box<ReadyCall>),
    /// An outcome to report in its turn.
    Settled(SettledCall),
}

impl QueuedCall {
    /// The call's place in its run.
    pub fn occurrence(&self) -> Occurrence {
        match self {
            Self::Ready(ready) => ready.occurrence,
            Self::Settled(settled) => settled.occurrence,
        }
    }
}
