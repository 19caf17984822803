//! Keeps steps in the journal of a run store, each with the record behind it in one write.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use futures::lock::Mutex as Turn;
use serde::Serialize;
use serde_json::Value;

use super::{BatchBody, IStepHost, IStepRecorder, Step, StepBody, StepCall, StepEvent};
use crate::error::{Error, ErrorKind, Result};
use crate::record::RunRecord;
use crate::run_store::{IRunStore, JournalEntry, JournalKey, JournalKind, RunClaim, WriteOutcome};

/// The steps of one leg, in the journal of its run.
///
/// **Writes.** A step is one entry; the member `record` of its value is written as the run's record in
/// the same transaction (in the journal of a nested run it stays in the entry: its record is not the
/// store's). A step that may wait is written together with the next that may not, or with the first start of
/// a batch. What several bodies report at once goes into one write. Every write is fenced by the claim.
///
/// **Going on.** Nothing is replayed: the record says where the run stands, so a leg that takes a run up
/// begins there. [`resume_at`](Self::resume_at) says where its journal ends.
///
/// **Failures.** After a write that failed, nothing more is written: nobody knows whether it was made.
#[derive(Clone)]
pub struct DurableStepHost(Arc<Shared>);

struct Shared {
    store: Arc<dyn IRunStore>,
    claim: RunClaim,
    queue: Mutex<Queue>,
    /// Who holds it writes all that is queued.
    turn: Turn<Journal>,
}

/// What is to be written, in order.
#[derive(Default)]
struct Queue {
    place: Option<Place>,
    entries: Vec<JournalEntry>,
    record: Option<RunRecord>,
    /// How many were ever queued.
    count: u64,
}

#[derive(Clone)]
struct Place {
    key: JournalKey,
    leg: u32,
}

/// What is written.
#[derive(Default)]
struct Journal {
    /// Entries that the journal has.
    length: u64,
    revision: u64,
    /// How many of those that were ever queued are written.
    count: u64,
    failed: Option<Error>,
}

impl DurableStepHost {
    /// A host for one leg, whose writes are fenced by this claim.
    pub fn new(store: Arc<dyn IRunStore>, claim: RunClaim) -> Self {
        Self(Arc::new(Shared {
            store,
            claim,
            queue: Mutex::default(),
            turn: Turn::default(),
        }))
    }

    /// Writes on in a journal of so many entries, beside a record of this revision (0: there is none
    /// yet). `leg` counts the legs of the run, from 0.
    pub async fn resume_at(&self, key: JournalKey, leg: u32, length: u64, revision: u64) {
        let mut journal = self.0.turn.lock().await;
        let mut queue = self.queue();
        queue.place = Some(Place { key, leg });
        journal.length = length;
        journal.revision = revision;
    }

    /// Which leg of its run this is, from 0.
    pub fn leg(&self) -> u32 {
        self.queue().place.as_ref().map_or(0, |place| place.leg)
    }

    /// Whether values wait to be written.
    pub fn has_waiting(&self) -> bool {
        !self.queue().entries.is_empty()
    }

    /// The revision of the record in the store.
    pub async fn revision(&self) -> u64 {
        self.0.turn.lock().await.revision
    }

    /// Puts outcomes of a batch into the journal, in one write.
    ///
    /// # Errors
    /// As [`IStepRecorder::ended`].
    pub async fn append_ended(&self, batch: &str, values: Vec<(u32, Value)>) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut count = 0;
        for (position, value) in values {
            let event = StepEvent::Ended { position, value };
            count = self.push(batch, JournalKind::Settled, &event, None)?;
        }
        self.write(count).await
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an entry; says how many were ever queued.
    fn push(
        &self,
        step: &str,
        kind: JournalKind,
        value: &impl Serialize,
        record: Option<RunRecord>,
    ) -> Result<u64> {
        let value = serde_json::to_value(value).map_err(|error| {
            Error::new(ErrorKind::Store, "a step of the run has no JSON form").with_source(error)
        })?;
        let mut queue = self.queue();
        let leg = queue.place.as_ref().map_or(0, |place| place.leg);
        queue
            .entries
            .push(JournalEntry::new(leg, step, kind, value));
        queue.record = record.or_else(|| queue.record.take());
        queue.count += 1;
        Ok(queue.count)
    }

    /// Writes what is queued, up to this one at least.
    async fn write(&self, until: u64) -> Result<()> {
        let mut journal = self.0.turn.lock().await;
        if journal.count >= until {
            return Ok(());
        }
        if let Some(error) = &journal.failed {
            return Err(error.clone());
        }
        let (place, entries, record, count) = {
            let mut queue = self.queue();
            let entries = std::mem::take(&mut queue.entries);
            (
                queue.place.clone(),
                entries,
                queue.record.take(),
                queue.count,
            )
        };
        let Some(place) = place else {
            return Err(Error::misuse(
                "a durable step host was used before `resume_at` said where it writes",
            ));
        };
        // A write that is dropped may have been made.
        journal.failed = Some(interrupted());
        let record = record.map(|mut record| {
            record.revision = journal.revision;
            record
        });
        let written = self
            .0
            .store
            .append(
                &place.key,
                &self.0.claim,
                journal.length,
                &entries,
                record.as_ref(),
            )
            .await;
        match written {
            Ok(WriteOutcome::Written(now)) => {
                journal.length += entries.len() as u64;
                if record.is_some() {
                    journal.revision = now;
                }
                journal.count = count;
                journal.failed = None;
                Ok(())
            }
            Ok(WriteOutcome::Conflict | WriteOutcome::ClaimLost) => {
                let error = Error::new(
                    ErrorKind::BusySession,
                    "another leg of this run is in flight: wait for its end, then give the answers \
                     again",
                )
                .with_context("run", place.key.run.as_str());
                journal.failed = Some(error.clone());
                Err(error)
            }
            Err(error) => {
                journal.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Keeps the value of a step; the record in it gets its revision.
    async fn keep(&self, step: &Step, value: Value) -> Result<Value> {
        if is_empty(&value) {
            return Ok(value);
        }
        let has_effects = value.get("record").is_some() && !step.may_wait;
        let (entry, record) = self.split(value)?;
        let count = self.push(&step.name, JournalKind::Step, &entry, record)?;
        if has_effects {
            self.write(count).await?;
        }
        Ok(entry)
    }

    /// The value without the record that goes to its own place.
    fn split(&self, mut value: Value) -> Result<(Value, Option<RunRecord>)> {
        let is_nested = {
            let queue = self.queue();
            let key = queue.place.as_ref().map(|place| &place.key);
            key.is_some_and(|key| key.root != key.run)
        };
        if is_nested {
            return Ok((value, None));
        }
        let record = value
            .as_object_mut()
            .and_then(|members| members.remove("record"));
        let record = record.map(serde_json::from_value).transpose();
        let record = record.map_err(|error| {
            Error::new(ErrorKind::Store, "the record in a step cannot be read").with_source(error)
        })?;
        Ok((value, record))
    }
}

#[async_trait]
impl IStepHost for DurableStepHost {
    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<Value> {
        let value = body.await?;
        self.keep(step, value).await
    }

    async fn batch(&self, step: &Step, body: BatchBody<'_>) -> Result<Value> {
        let recorder = BatchRecorder {
            host: Arc::downgrade(&self.0),
            batch: step.name.clone(),
        };
        let value = body(Arc::new(recorder), Vec::new()).await?;
        self.keep(step, value).await
    }
}

/// Keeps what happens in a batch as long as the leg is there: the task of a body does not hold its run.
#[derive(Debug)]
struct BatchRecorder {
    host: Weak<Shared>,
    batch: String,
}

impl BatchRecorder {
    fn host(&self) -> Result<DurableStepHost> {
        let shared = self.host.upgrade();
        shared.map(DurableStepHost).ok_or_else(interrupted)
    }
}

#[async_trait]
impl IStepRecorder for BatchRecorder {
    async fn started(&self, calls: &[StepCall]) -> Result<()> {
        let host = self.host()?;
        let mut count = 0;
        for call in calls {
            let event = StepEvent::Started(*call);
            count = host.push(&self.batch, JournalKind::Started, &event, None)?;
        }
        host.write(count).await
    }

    async fn ended(&self, position: u32, value: Value) -> Result<()> {
        let host = self.host()?;
        host.append_ended(&self.batch, vec![(position, value)])
            .await
    }
}

impl fmt::Debug for DurableStepHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DurableStepHost").field(&self.0).finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// Whether a value says nothing but its version: it is not written.
fn is_empty(value: &Value) -> bool {
    let members = value.as_object();
    members.is_some_and(|members| members.keys().all(|key| key == "format"))
}

fn interrupted() -> Error {
    Error::new(
        ErrorKind::Store,
        "a write to the run store was dropped before its end: nobody knows whether it was made",
    )
}
