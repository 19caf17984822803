//! What a batch belongs to, what goes into it, what happens in it.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    Cancellation, Content, Error, Extensions, NestedUpdate, Occurrence, RunId, ToolCall,
    ToolErrorClass, ToolOutcome, ToolResult,
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
    /// What keeps starts and outcomes where a crash does not lose them. Default: nothing.
    pub recorder: Option<Arc<dyn ICallRecorder>>,
}

impl BatchContext {
    /// A batch of a run.
    pub fn new(run_id: RunId, cancellation: Cancellation) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            cancellation,
            extensions: Extensions::new(),
            recorder: None,
        }
    }

    /// Has starts announced by [`BatchEvent::Starting`], and outcomes kept by the tasks of their bodies.
    pub fn with_recorder(mut self, recorder: Arc<dyn ICallRecorder>) -> Self {
        self.recorder = Some(recorder);
        self
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
    /// Bodies are about to be entered, unless the batch is told otherwise before it is asked for its next
    /// event. Only with a recorder.
    Starting {
        /// The calls.
        calls: Vec<StartingCall>,
    },
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
    /// The run that a body is could not be kept: its call comes to no outcome in this batch, and no further
    /// body is entered. Only with a recorder.
    LeftOpen {
        /// Which call.
        occurrence: Occurrence,
        /// What kept it from being kept.
        error: Error,
    },
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
    /// Whether the task of its body has kept it.
    pub kept: bool,
}

/// A call whose body is about to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartingCall {
    /// Where it was made.
    pub occurrence: Occurrence,
    /// Which entry of its body this is, from 1.
    pub attempt: u32,
    /// Whether its tool says that it may be run again.
    pub idempotent: bool,
}

/// Keeps outcomes where a crash does not lose them.
#[async_trait]
pub trait ICallRecorder: Debug + Send + Sync {
    /// Keeps the outcome of a body, in the task of the body and before anybody is told: a slow consumer
    /// cannot lose it (contract I6). Says whether it is kept; the call has its outcome in either case.
    ///
    /// `used` is what runs nested in the body have used.
    async fn ended(&self, finished: &FinishedCall, used: &NestedReport) -> bool;
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
            kept: false,
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
