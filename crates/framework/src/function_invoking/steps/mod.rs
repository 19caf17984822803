//! The steps of a leg: what the loop does between two decisions, entered through the host that keeps the
//! values (steps.md). Between steps the loop looks at nothing but its options and these values.
//!
//! A leg without a host enters each step directly.

mod ask;
mod batch;
mod before;
mod begin;
mod end;
mod kept;
mod planning;
mod steering;

use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ChatClientRunOptions, DurableStepHost, Error, IRunStore, IStepHost, JournalKey, Result,
    RunClaim, RunId, Step,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::ask::{Ask, Asked};
pub(super) use self::batch::{BatchWork, batch, wait};
pub(super) use self::before::Before;
pub(super) use self::begin::{Begin, Begun, Turn, Way, close_left_behind};
pub(super) use self::end::{Close, RunEnd};
pub(super) use self::kept::{FORMAT, Kept, StepValue, emit_message, supported, trailing_results};
pub(super) use self::planning::{Planned, Planning};
pub(super) use self::steering::Steering;
use super::leg::Leg;

/// One step of a leg.
#[async_trait]
pub(super) trait LegStep: Send {
    /// What it decides, as it is kept.
    type Value: Serialize + DeserializeOwned + Send;

    /// Whether results at the end of the transcript are those of a batch that is in flight behind it:
    /// they are kept by that batch.
    const BEFORE_BATCH: bool = false;

    /// Whether nothing outside follows from its value alone.
    const MAY_WAIT: bool = false;

    /// Its stable name.
    fn name(&self, leg: &Leg) -> String;

    /// Does it.
    async fn enter(self, leg: &mut Leg) -> Result<Self::Value>;
}

/// What keeps the steps of a leg, and how far they are kept.
#[derive(Debug)]
pub(super) struct Steps {
    host: Arc<dyn IStepHost>,
    /// The same, where it writes to the run store.
    pub(super) durable: Option<DurableStepHost>,
    pub(super) kept: Kept,
}

impl Steps {
    /// What keeps the steps of a run with these options and this store.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) if two would keep them.
    pub(super) fn of(
        options: &mut ChatClientRunOptions,
        store: &Arc<dyn IRunStore>,
        claim: &RunClaim,
    ) -> Result<Option<Self>> {
        let host = options.take_step_host().filter(|host| host.records());
        if !store.is_durable() {
            return Ok(host.map(|host| Self {
                host,
                durable: None,
                kept: Kept::default(),
            }));
        }
        if host.is_some() {
            return Err(Error::misuse(
                "a durable run store and a step host would both keep the steps of the run: give one \
                 of them",
            ));
        }
        let host = DurableStepHost::new(Arc::clone(store), claim.clone());
        Ok(Some(Self {
            host: Arc::new(host.clone()),
            durable: Some(host),
            kept: Kept::default(),
        }))
    }
}

/// Begins the journal of a new run, where there is one.
pub(super) async fn begin_journal(leg: &mut Leg) {
    let run_id = leg.run.id.clone();
    let input = leg.input().to_vec();
    let Some(steps) = &mut leg.steps else { return };
    let Some(durable) = &steps.durable else {
        return;
    };
    steps.kept = Kept::default();
    steps.kept.input = input;
    let key = journal_key(leg.root.as_ref(), run_id);
    durable.resume_at(key, 0, 0, 0).await;
}

/// Where the journal of a run is.
pub(super) fn journal_key(root: Option<&RunId>, run_id: RunId) -> JournalKey {
    match root {
        Some(root) => JournalKey::nested(root.clone(), run_id),
        None => JournalKey::root(run_id),
    }
}

/// Enters a step, or takes its value from the host.
///
/// # Errors
/// Those of the step; those of the host.
pub(super) async fn step<S: LegStep>(leg: &mut Leg, step: S) -> Result<S::Value> {
    match &leg.steps {
        None => step.enter(leg).await,
        Some(steps) => {
            let host = Arc::clone(&steps.host);
            // Boxed: most runs keep no steps, and it would stand in the state of each.
            Box::pin(hosted(leg, step, host)).await
        }
    }
}

async fn hosted<S: LegStep>(leg: &mut Leg, step: S, host: Arc<dyn IStepHost>) -> Result<S::Value> {
    let mut key = Step::new(leg.run.id.clone(), step.name(leg));
    if S::MAY_WAIT {
        key = key.waiting();
    }
    let mut entered = None;
    let value = {
        let entered = &mut entered;
        let leg = &mut *leg;
        let body = Box::pin(async move {
            let value = step.enter(leg).await?;
            let kept = kept::value(leg, &value, S::BEFORE_BATCH)?;
            *entered = Some(value);
            Ok(kept)
        });
        host.step(&key, body).await?
    };
    match entered {
        Some(value) => {
            written(leg).await;
            Ok(value)
        }
        None => kept::restore(leg, value).await,
    }
}

/// The value of a change that is made within a step.
///
/// # Errors
/// [`ErrorKind::Store`](raf_core::ErrorKind::Store) if it has no JSON form.
pub(super) fn value_now(leg: &mut Leg) -> Result<serde_json::Value> {
    kept::value(leg, &(), true)
}

/// A value is kept: the record has the revision that its write gave it.
async fn written(leg: &mut Leg) {
    let durable = leg.steps.as_ref().and_then(|steps| steps.durable.clone());
    let Some(durable) = durable else { return };
    if let Some(record) = &mut leg.run.record {
        record.revision = durable.revision().await;
        leg.held.set(record.run_id.clone());
    }
}
