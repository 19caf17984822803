//! The outcome of a body, kept by the task of the body.

use std::sync::{Arc, Mutex, PoisonError};

use raf_core::TerminationCause;

use super::end::TaskEnd;
use super::{FinishedCall, ICallRecorder};
use crate::context::NestedReport;
use crate::execution::body::BodyEnd;
use crate::execution::invoke::{Entries, lock};
use crate::execution::options::ExecutionOptions;
use crate::execution::prepare::ReadyCall;
use crate::execution::render::{BodyOutcome, Rendered, render};

/// What the task of a body needs to keep its outcome.
pub(super) struct Keeper {
    pub(super) recorder: Arc<dyn ICallRecorder>,
    pub(super) ready: Arc<ReadyCall>,
    pub(super) entries: Arc<Mutex<Entries>>,
    pub(super) nested: Arc<Mutex<NestedReport>>,
    pub(super) options: Arc<ExecutionOptions>,
}

impl Keeper {
    /// Makes the outcome and keeps it. What has no outcome of its own is left to the batch: a question,
    /// a body that was not entered or was given up, a run that could not be kept.
    pub(super) async fn keep(self, end: BodyEnd) -> TaskEnd {
        if let Some(error) = lock(&self.entries).left_open.take() {
            return TaskEnd::Body(BodyEnd::LeftOpen(error));
        }
        let is_outcome = match &end {
            BodyEnd::Returned(_) => !end.asks(),
            BodyEnd::Panicked(_) | BodyEnd::TimedOut => true,
            BodyEnd::NeverEntered | BodyEnd::Abandoned | BodyEnd::LeftOpen(_) => false,
        };
        if !is_outcome {
            return TaskEnd::Body(end);
        }
        let (ready, entered) = {
            let mut entries = lock(&self.entries);
            entries.ended = true;
            (self.ready.ran(&mut entries, &end), entries.count > 0)
        };
        let BodyOutcome::Settled(rendered) = render(&ready, end, entered, &self.options) else {
            unreachable!("a body without an outcome was left to the batch")
        };
        let (mut finished, termination) = FinishedCall::of_body(&ready, rendered);
        let used = self
            .nested
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        finished.kept = self.recorder.ended(&finished, &used).await;
        TaskEnd::Outcome(Box::new(finished), termination)
    }
}

impl FinishedCall {
    /// What came of a body, and whether it ends the run.
    pub(super) fn of_body(
        ready: &ReadyCall,
        rendered: Rendered,
    ) -> (Self, Option<TerminationCause>) {
        let finished = Self {
            occurrence: ready.occurrence,
            call: ready.call.clone(),
            result: rendered.result,
            digest: rendered.digest,
            polling: ready.tool.tool().limits().polling,
            kept: false,
        };
        (finished, rendered.termination)
    }
}
