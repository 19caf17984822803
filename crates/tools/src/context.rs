//! What a running body can ask: who it is, whether to stop, how to say something meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use raf_core::{Cancellation, Content, Extensions, NestedUpdate, Occurrence, RoundUsage, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The context of one call. Cheap to clone; it may outlive the call, and then does nothing.
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    call_id: String,
    tool_name: String,
    run_id: RunId,
    parent_run_id: Option<RunId>,
    occurrence: Occurrence,
    attempt: u32,
    cancellation: Cancellation,
    extensions: Extensions,
    progress: Option<ProgressSink>,
    nested: Option<NestedSink>,
    resumption: Option<Resumption>,
}

/// Where a body says what a run nested in it says and has used.
#[derive(Clone)]
struct NestedSink {
    updates: Arc<dyn Fn(NestedUpdate) + Send + Sync>,
    report: Arc<Mutex<NestedReport>>,
}

/// What a run nested in a call has used. It goes to the run around it when the body ends, however that
/// is, and counts there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NestedReport {
    /// Its model requests, tagged with the run that made each.
    pub rounds: Vec<RoundUsage>,
    /// The tool calls that it and runs nested in it made.
    pub calls: u32,
}

impl NestedReport {
    /// A report.
    pub fn new(rounds: Vec<RoundUsage>, calls: u32) -> Self {
        Self { rounds, calls }
    }

    /// Whether nothing was used.
    pub fn is_empty(&self) -> bool {
        self.rounds.is_empty() && self.calls == 0
    }
}

type ProgressSink = Arc<dyn Fn(Content) + Send + Sync>;

/// What a body that was interrupted finds when it is entered again.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resumption {
    /// The state that it left behind.
    pub state: Value,
    /// The answer from the outside.
    pub data: Value,
    /// Whether a middleware had asked, and not the body: the body does not see it then. A middleware
    /// tells its own question from that of another middleware by the state that it left.
    pub by_middleware: bool,
}

impl Resumption {
    /// The state that a body left behind, and the answer.
    pub fn new(state: Value, data: Value) -> Self {
        Self {
            state,
            data,
            by_middleware: false,
        }
    }

    /// Sets whether a middleware had asked.
    pub fn with_middleware(mut self, by_middleware: bool) -> Self {
        self.by_middleware = by_middleware;
        self
    }
}

impl ToolContext {
    /// A context of a call outside any run, for tests and for calling a tool by hand.
    pub fn detached(call_id: impl Into<String>) -> Self {
        Self::builder(call_id, "").build()
    }

    /// A context with more than a call id.
    pub fn builder(call_id: impl Into<String>, tool_name: impl Into<String>) -> ToolContextBuilder {
        ToolContextBuilder {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            run_id: None,
            parent_run_id: None,
            occurrence: Occurrence::new(0, 0),
            attempt: 1,
            cancellation: None,
            extensions: None,
            progress: None,
            nested: None,
            resumption: None,
        }
    }

    /// The label that the model gave the call.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// The tool's name.
    pub fn tool_name(&self) -> &str {
        &self.0.tool_name
    }

    /// The run that the call belongs to.
    pub fn run_id(&self) -> &RunId {
        &self.0.run_id
    }

    /// The run that this run is nested in.
    pub fn parent_run_id(&self) -> Option<&RunId> {
        self.0.parent_run_id.as_ref()
    }

    /// The call's place in its run.
    pub fn occurrence(&self) -> Occurrence {
        self.0.occurrence
    }

    /// A key that is the same whenever this very call is run again (retry, resume, restart), and
    /// another one for each new call. Hand it to whatever must not happen twice.
    pub fn idempotency_key(&self) -> String {
        self.0.occurrence.idempotency_key(&self.0.run_id)
    }

    /// How often the body has been entered for this call, this time included: from 1. In a middleware:
    /// which entry the next one is.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// Says when to stop: the run was cancelled, or this call's deadline passed.
    pub fn cancellation(&self) -> &Cancellation {
        &self.0.cancellation
    }

    /// Whether to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancellation.is_cancelled()
    }

    /// Completes when the call is to stop. It is signalled before the body is dropped, and the body
    /// has a grace period to end by itself.
    pub async fn cancelled(&self) {
        crate::execution::cancelled(&self.0.cancellation).await;
    }

    /// Says something to the consumer of the stream while the tool runs. Never blocks: pieces that
    /// the consumer is too slow for are joined, and dropped beyond a bound. No part of the result.
    pub fn progress(&self, content: impl Into<Content>) {
        if let Some(progress) = &self.0.progress {
            progress(content.into());
        }
    }

    /// Says what a run nested in this call says: the consumer sees it as
    /// [`AgentResponseUpdate::Nested`](raf_core::AgentResponseUpdate::Nested). Never blocks: deltas that
    /// the consumer is too slow for are joined, and beyond a bound all is dropped but requests to the
    /// outside.
    pub fn nested(&self, update: NestedUpdate) {
        if let Some(sink) = &self.0.nested {
            (sink.updates)(update);
        }
    }

    /// Says what a run nested in this call has used. Several reports add up.
    pub fn report_nested(&self, mut report: NestedReport) {
        if let Some(sink) = &self.0.nested {
            let mut sum = sink.report.lock().unwrap_or_else(PoisonError::into_inner);
            sum.rounds.append(&mut report.rounds);
            sum.calls = sum.calls.saturating_add(report.calls);
        }
    }

    /// Per-run things by type, as the caller gave them in the options.
    pub fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    /// Set if an earlier entry of this call was interrupted: its state, and the answer.
    pub fn resumption(&self) -> Option<&Resumption> {
        self.0.resumption.as_ref()
    }

    /// The context as a body sees it at an entry of it: without answers to questions of middleware.
    pub(crate) fn for_body(mut self, attempt: u32) -> Self {
        let hidden = self.resumption().is_some_and(|answer| answer.by_middleware);
        if hidden || attempt != self.0.attempt {
            let inner = Arc::make_mut(&mut self.0);
            inner.attempt = attempt;
            inner.resumption.take_if(|answer| answer.by_middleware);
        }
        self
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.0.call_id)
            .field("tool_name", &self.0.tool_name)
            .field("run_id", &self.0.run_id)
            .field("occurrence", &self.0.occurrence)
            .field("attempt", &self.0.attempt)
            .field("extensions", &self.0.extensions)
            .finish_non_exhaustive()
    }
}

/// Builds a [`ToolContext`].
pub struct ToolContextBuilder {
    call_id: String,
    tool_name: String,
    run_id: Option<RunId>,
    parent_run_id: Option<RunId>,
    occurrence: Occurrence,
    attempt: u32,
    cancellation: Option<Cancellation>,
    extensions: Option<Extensions>,
    progress: Option<ProgressSink>,
    nested: Option<NestedSink>,
    resumption: Option<Resumption>,
}

impl fmt::Debug for ToolContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContextBuilder").finish_non_exhaustive()
    }
}

impl ToolContextBuilder {
    /// Sets the run.
    pub fn run_id(mut self, id: RunId) -> Self {
        self.run_id = Some(id);
        self
    }

    /// Sets the run that the run is nested in.
    pub fn parent_run_id(mut self, id: Option<RunId>) -> Self {
        self.parent_run_id = id;
        self
    }

    /// Sets the place of the call.
    pub fn occurrence(mut self, occurrence: Occurrence) -> Self {
        self.occurrence = occurrence;
        self
    }

    /// Sets which entry this is, from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sets what says when to stop.
    pub fn cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets the per-run things.
    pub fn extensions(mut self, extensions: Extensions) -> Self {
        self.extensions = Some(extensions);
        self
    }

    /// Sets where progress goes. It must not block.
    pub fn progress(mut self, sink: impl Fn(Content) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }

    /// Sets where updates of nested runs go, which must not block, and what keeps what they used.
    pub fn nested(
        mut self,
        updates: impl Fn(NestedUpdate) + Send + Sync + 'static,
        report: Arc<Mutex<NestedReport>>,
    ) -> Self {
        let updates = Arc::new(updates);
        self.nested = Some(NestedSink { updates, report });
        self
    }

    /// Says that an earlier entry was interrupted.
    pub fn resumption(mut self, resumption: Option<Resumption>) -> Self {
        self.resumption = resumption;
        self
    }

    /// The context.
    pub fn build(self) -> ToolContext {
        ToolContext(Arc::new(Inner {
            call_id: self.call_id,
            tool_name: self.tool_name,
            run_id: self.run_id.unwrap_or_else(|| RunId::from("detached")),
            parent_run_id: self.parent_run_id,
            occurrence: self.occurrence,
            attempt: self.attempt,
            cancellation: self.cancellation.unwrap_or_default(),
            extensions: self.extensions.unwrap_or_default(),
            progress: self.progress,
            nested: self.nested,
            resumption: self.resumption,
        }))
    }
}
