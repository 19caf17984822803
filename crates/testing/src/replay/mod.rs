//! A host that remembers the steps of a leg, stops behind one of them as if its process had died, and
//! hands the values out again when the leg is taken up.

mod client;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use raf_core::{
    BatchBody, Error, ErrorKind, IStepHost, IStepRecorder, Result, Step, StepBody, StepCall,
    StepEvent,
};
use serde_json::Value;

pub use self::client::ReplayedChatClient;
use crate::latch::Latch;

/// Keeps the steps of one leg in memory.
///
/// ```
/// use raf_core::{IStepHost, Step};
/// use raf_testing::ReplayHost;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// let host = ReplayHost::new();
/// let begin = Step::new("run".into(), "begin");
/// host.step(&begin, Box::pin(async { Ok(json!({ "format": 1 })) })).await?;
/// assert_eq!(host.names(), ["begin"]);
///
/// // Taken up behind it, the step is not entered.
/// let again = host.taken_up_behind(1);
/// let value = again.step(&begin, Box::pin(async { panic!("its value is known") })).await?;
/// assert_eq!(value, json!({ "format": 1 }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReplayHost(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    known: Vec<RecordedStep>,
    /// How many of them were there when the leg was taken up.
    replayed: usize,
    /// Which step the leg asks for next.
    next: usize,
    stops_behind: Option<usize>,
    stopped: Latch,
    /// Hands the batches that went on out as events, in this order instead of that of completion.
    shuffle: Option<u64>,
    faults: Vec<String>,
}

/// A step as it was kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedStep {
    /// Its name.
    pub name: String,
    /// What happened in it, if it is a batch.
    pub events: Vec<StepEvent>,
    /// Its value; unset while it is entered.
    pub value: Option<Value>,
}

impl ReplayHost {
    /// One that knows no step.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops for good once so many steps are kept: the leg hangs there, and is to be dropped.
    #[must_use]
    pub fn stopping_behind(self, steps: usize) -> Self {
        self.state().stops_behind = Some(steps);
        self
    }

    /// Hands a batch that went on out as what happened in it, and not by its value: its outcomes come in
    /// an order that this number draws.
    #[must_use]
    pub fn shuffling(self, seed: u64) -> Self {
        self.state().shuffle = Some(seed);
        self
    }

    /// A host for the same leg, which knows the first steps of it.
    #[must_use]
    pub fn taken_up_behind(&self, steps: usize) -> Self {
        let state = self.state();
        let known: Vec<RecordedStep> = state.known.iter().take(steps).cloned().collect();
        Self(Arc::new(Mutex::new(State {
            replayed: known.len(),
            known,
            ..State::default()
        })))
    }

    /// The steps, in order.
    pub fn steps(&self) -> Vec<RecordedStep> {
        self.state().known.clone()
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        let state = self.state();
        state.known.iter().map(|step| step.name.clone()).collect()
    }

    /// Whether the leg is beyond the steps that were known when it was taken up.
    pub fn is_live(&self) -> bool {
        let state = self.state();
        state.next > state.replayed
    }

    /// Opens when the host has stopped.
    pub fn stopped(&self) -> Latch {
        self.state().stopped.clone()
    }

    /// What was not as it must be: a step under another name than the one that was kept.
    pub fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next step: what is known of it, and its place.
    fn next(&self, step: &Step, is_batch: bool) -> Result<(usize, Known)> {
        let mut state = self.state();
        let place = state.next;
        state.next += 1;
        let Some(known) = state.known.get(place).cloned() else {
            state.known.push(RecordedStep {
                name: step.name.clone(),
                events: Vec::new(),
                value: None,
            });
            return Ok((place, Known::Events(Vec::new())));
        };
        if known.name != step.name {
            let fault = format!(
                "step {place} is '{}', and was '{}' when it was kept",
                step.name, known.name
            );
            state.faults.push(fault.clone());
            return Err(Error::new(ErrorKind::Store, fault));
        }
        let goes_on = |value: &Value| value["decided"] == "go_on";
        let (Some(seed), true) = (state.shuffle, is_batch && place + 1 == state.replayed) else {
            return Ok((place, known.known()));
        };
        if known.value.as_ref().is_some_and(goes_on) {
            return Ok((place, Known::Events(shuffled(known.events, seed))));
        }
        Ok((place, known.known()))
    }

    /// Keeps a value. Never returns if the host stops behind it.
    async fn keep(&self, place: usize, value: Value) -> Value {
        let stops = {
            let mut state = self.state();
            if let Some(step) = state.known.get_mut(place) {
                step.value = Some(value.clone());
            }
            state.stops_behind == Some(place + 1)
        };
        if stops {
            self.stopped().open();
            std::future::pending::<()>().await;
        }
        value
    }
}

enum Known {
    Value(Value),
    Events(Vec<StepEvent>),
}

impl RecordedStep {
    fn known(self) -> Known {
        match self.value {
            Some(value) => Known::Value(value),
            None => Known::Events(self.events),
        }
    }
}

/// The same starts, and the outcomes behind them in another order.
fn shuffled(events: Vec<StepEvent>, seed: u64) -> Vec<StepEvent> {
    let is_start = |event: &StepEvent| matches!(event, StepEvent::Started(_));
    let (mut starts, mut ends): (Vec<_>, Vec<_>) = events.into_iter().partition(is_start);
    let mut drawn = seed;
    for last in (1..ends.len()).rev() {
        // Knuth's generator: any order does.
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(drawn >> 33).unwrap_or_default() % (last + 1);
        ends.swap(last, other);
    }
    starts.extend(ends);
    starts
}

#[async_trait]
impl IStepHost for ReplayHost {
    async fn step(&self, step: &Step, body: StepBody<'_>) -> Result<Value> {
        let (place, known) = self.next(step, false)?;
        if let Known::Value(value) = known {
            return Ok(value);
        }
        Ok(self.keep(place, body.await?).await)
    }

    async fn batch(&self, step: &Step, body: BatchBody<'_>) -> Result<Value> {
        let (place, known) = self.next(step, true)?;
        let events = match known {
            Known::Value(value) => return Ok(value),
            Known::Events(events) => events,
        };
        let recorder = Arc::new(BatchRecorder {
            host: self.clone(),
            place,
        });
        Ok(self.keep(place, body(recorder, events).await?).await)
    }
}

/// Keeps what happens in one batch.
#[derive(Debug)]
struct BatchRecorder {
    host: ReplayHost,
    place: usize,
}

impl BatchRecorder {
    fn push(&self, event: StepEvent) {
        if let Some(step) = self.host.state().known.get_mut(self.place) {
            step.events.push(event);
        }
    }
}

#[async_trait]
impl IStepRecorder for BatchRecorder {
    async fn started(&self, calls: &[StepCall]) -> Result<()> {
        for call in calls {
            self.push(StepEvent::Started(*call));
        }
        Ok(())
    }

    async fn ended(&self, position: u32, value: Value) -> Result<()> {
        self.push(StepEvent::Ended { position, value });
        Ok(())
    }
}
