//! Hands the outcomes of calls to the host of the steps, by the tasks of their bodies.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use raf_core::{Error, IStepRecorder, Result, StepCall, StepEntry};
use raf_tools::{FinishedCall, ICallRecorder, NestedReport, OpenBatch, ReadyCall, StartingCall};

use super::value::Outcome;

/// What keeps the outcomes of one batch, and the first failure to.
#[derive(Debug)]
pub(in crate::function_invoking) struct OutcomeRecorder {
    recorder: Arc<dyn IStepRecorder>,
    failure: Mutex<Option<Error>>,
}

impl OutcomeRecorder {
    pub(in crate::function_invoking) fn new(recorder: Arc<dyn IStepRecorder>) -> Self {
        Self {
            recorder,
            failure: Mutex::default(),
        }
    }

    /// Keeps that these are about to start.
    ///
    /// # Errors
    /// What the host fails with: nothing may start.
    pub(in crate::function_invoking) async fn started(&self, calls: &[StartingCall]) -> Result<()> {
        let call = |call: &StartingCall| {
            let entry = if call.idempotent {
                StepEntry::Idempotent
            } else {
                StepEntry::Once
            };
            StepCall::new(call.occurrence.position, call.attempt, entry)
        };
        let calls: Vec<StepCall> = calls.iter().map(call).collect();
        self.recorder.started(&calls).await
    }

    /// Keeps an outcome; says whether it is kept.
    async fn keep(&self, outcome: &Outcome) -> bool {
        let value = match outcome.to_json() {
            Ok(value) => value,
            Err(error) => return self.failed(error),
        };
        match self.recorder.ended(outcome.position, value).await {
            Ok(()) => true,
            Err(error) => self.failed(error),
        }
    }

    /// The first failure.
    fn failure(&self) -> Option<Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    /// Keeps an outcome, unless one could not be kept before: what is not kept comes back.
    async fn lost(&self, outcome: Outcome) -> Option<(Error, Outcome)> {
        if self.failure().is_none() && self.keep(&outcome).await {
            return None;
        }
        Some((self.failure()?, outcome))
    }

    fn failed(&self, error: Error) -> bool {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
        false
    }
}

#[async_trait]
impl ICallRecorder for OutcomeRecorder {
    async fn ended(&self, finished: &FinishedCall, used: &NestedReport) -> bool {
        self.keep(&Outcome::finished(finished, used.clone())).await
    }
}

/// Keeps an outcome that the task of its body has not kept. What cannot be kept comes back.
pub(in crate::function_invoking) async fn lost(
    recorder: Option<&OutcomeRecorder>,
    finished: &FinishedCall,
    used: NestedReport,
) -> Option<(Error, Outcome)> {
    let recorder = recorder.filter(|_| !finished.kept)?;
    let outcome = Outcome::finished(finished, used);
    recorder.lost(outcome).await
}

/// Keeps what a call asks the outside. What cannot be kept comes back.
pub(in crate::function_invoking) async fn lost_question(
    recorder: Option<&OutcomeRecorder>,
    batch: &OpenBatch,
    asking: &ReadyCall,
    used: NestedReport,
) -> Option<(Error, Outcome)> {
    let recorder = recorder?;
    let mut calls = batch.to_records(None).into_iter();
    let call = calls.find(|call| call.position == asking.occurrence.position)?;
    recorder.lost(Outcome::asks(call, used)).await
}
