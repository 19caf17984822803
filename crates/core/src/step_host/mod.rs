//! The seam between the loop and what keeps its steps: a run is a sequence of named steps, each with a
//! value, and a host decides whether a step is entered or its value is known.
//!
//! The loop is written so that its control flow is a function of its options and of these values. A host
//! that keeps nothing ([`DirectStepHost`]) runs every body; one that keeps values ([`DurableStepHost`] over
//! a run store, or an adapter to an engine for durable execution) takes a leg up again where it ended.

mod direct;
mod durable;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Result;
use crate::identity::RunId;
use crate::options::ChatClientRunOptions;

pub use self::direct::DirectStepHost;
pub use self::durable::DurableStepHost;

/// A step of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The run as the leg knows it. In the first step of a leg the run may be found by the body: then
    /// this is a new id, and the value holds the one that counts.
    pub run_id: RunId,
    /// Its name, unique within a leg and stable: `begin`, `round/3/before`, `round/3/model`,
    /// `round/3/plan`, `round/3/batch`, `end`; behind a message that supersedes what waits also
    /// `superseded` and `turn`.
    pub name: String,
    /// Whether nothing that can be seen outside follows from its value alone: a host may keep the value
    /// back, to write it together with the next one that has effects.
    pub may_wait: bool,
}

impl Step {
    /// A step whose value is kept before the leg goes on.
    pub fn new(run_id: RunId, name: impl Into<String>) -> Self {
        Self {
            run_id,
            name: name.into(),
            may_wait: false,
        }
    }

    /// Lets the host write its value together with the next.
    pub fn waiting(mut self) -> Self {
        self.may_wait = true;
        self
    }
}

/// Whether what a call does may be done again if nobody knows whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEntry {
    /// It may be entered again with the same key.
    Idempotent,
    /// Once: started and without an outcome, it is `unknown`.
    Once,
}

/// A call of a batch whose body is about to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepCall {
    /// Its position in the reply, from 0.
    pub position: u32,
    /// Which entry of its body this is, from 1.
    pub attempt: u32,
    /// Whether it may be entered again.
    pub entry: StepEntry,
}

impl StepCall {
    /// A call that starts.
    pub fn new(position: u32, attempt: u32, entry: StepEntry) -> Self {
        Self {
            position,
            attempt,
            entry,
        }
    }
}

/// What happened in a batch, in the order in which it was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepEvent {
    /// A body was about to be entered.
    Started(StepCall),
    /// A call came to its outcome, or to a question.
    Ended {
        /// Its position in the reply, from 0.
        position: u32,
        /// What came of it.
        value: Value,
    },
}

/// The body of a step: not polled if the value is known. It completes with the value of the step, a JSON
/// object.
pub type StepBody<'a> = BoxFuture<'a, Result<Value>>;

/// The body of a batch: gets where to report to, and what an earlier entry of the same batch reported.
pub type BatchBody<'a> =
    Box<dyn FnOnce(Arc<dyn IStepRecorder>, Vec<StepEvent>) -> StepBody<'a> + Send + 'a>;

/// What keeps the steps of runs.
///
/// **Calls** of one leg come strictly one after another, from one task, and none is dropped once begun
/// unless the whole leg is. Steps come in the same order, with the same names, each time a leg is taken up
/// again with the same values.
///
/// **Values** are JSON objects with a member `format`. They hold what is new: messages, a decision, and as
/// `record` where the run stands behind the step (a [`RunRecord`](crate::RunRecord)); never the transcript or
/// a request.
///
/// **Cancel safety**: a leg that is dropped while a body runs leaves a step without a value: it is entered
/// again when the leg is taken up.
#[async_trait]
pub trait IStepHost: Debug + Send + Sync {
    /// Whether values are kept. If not, the loop makes none, and calls neither of the others.
    fn records(&self) -> bool {
        true
    }

    /// The value of a step: the kept one, or that of the body, once it is kept.
    ///
    /// # Errors
    /// Those of the body, which are not kept; [`ErrorKind::Store`](crate::ErrorKind::Store) for what keeps
    /// the host from keeping the value.
    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<Value>;

    /// The value of a batch of calls: the kept one, or that of the body, which reports what happens on
    /// the way.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    async fn batch(&self, step: &Step, body: BatchBody<'_>) -> Result<Value>;
}

/// Keeps what happens within a batch, when it happens.
///
/// Starts are reported by the task of the leg, outcomes by the tasks of the bodies: several at once.
#[async_trait]
pub trait IStepRecorder: Debug + Send + Sync {
    /// Bodies are about to be entered. They are not, unless this succeeds.
    ///
    /// # Errors
    /// What keeps the host from keeping it.
    async fn started(&self, calls: &[StepCall]) -> Result<()>;

    /// A call came to its outcome, or to a question. Nobody is told before this returns.
    ///
    /// # Errors
    /// What keeps the host from keeping it: the outcome stays with the caller.
    async fn ended(&self, position: u32, value: Value) -> Result<()>;
}

#[derive(Clone, Debug)]
struct StepHostExtension(Arc<dyn IStepHost>);

impl ChatClientRunOptions {
    /// Keeps the steps of this run with a host. On resume it is given again. Default: none.
    ///
    /// A loop over a durable run store makes its own; giving both is refused.
    pub fn with_step_host(self, host: Arc<dyn IStepHost>) -> Self {
        self.with_extension(StepHostExtension(host))
    }

    /// The host that was given.
    pub fn step_host(&self) -> Option<Arc<dyn IStepHost>> {
        let extension = self.extensions.get::<StepHostExtension>()?;
        Some(Arc::clone(&extension.0))
    }

    /// Takes the host out: what a run calls has steps of its own.
    pub fn take_step_host(&mut self) -> Option<Arc<dyn IStepHost>> {
        let extension = self.extensions.remove::<StepHostExtension>()?;
        Some(Arc::clone(&extension.0))
    }
}
