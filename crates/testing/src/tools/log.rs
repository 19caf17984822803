//! How a scripted tool was called: every entry of its body, and how it ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raf_core::{Occurrence, RunId};
use raf_tools::{Resumption, ToolArguments, ToolContext};
use tokio::sync::watch;

/// One entry of a body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecordedCall {
    /// The label that the model gave.
    pub call_id: String,
    /// The run.
    pub run_id: RunId,
    /// The call's place in it.
    pub occurrence: Occurrence,
    /// The key that a repetition of this call shares.
    pub idempotency_key: String,
    /// Which entry for this call it is, from 1.
    pub attempt: u32,
    /// The arguments.
    pub arguments: ToolArguments,
    /// State and answer, if an earlier entry was interrupted.
    pub resumption: Option<Resumption>,
}

/// Counts of a tool's bodies. A cheap handle: clones count together.
#[derive(Clone, Debug)]
pub struct ToolLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    counts: watch::Sender<Counts>,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    entered: Vec<RecordedCall>,
    violations: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    entries: usize,
    completions: usize,
    panics: usize,
    dropped: usize,
    running: usize,
    most_at_once: usize,
}

impl Default for ToolLog {
    fn default() -> Self {
        Self(Arc::new(Inner {
            counts: watch::Sender::new(Counts::default()),
            calls: Mutex::default(),
        }))
    }
}

impl ToolLog {
    /// How often the body was entered.
    pub fn entries(&self) -> usize {
        self.counts().entries
    }

    /// How many bodies returned, with a value or an error.
    pub fn completions(&self) -> usize {
        self.counts().completions
    }

    /// How many bodies panicked.
    pub fn panics(&self) -> usize {
        self.counts().panics
    }

    /// How many bodies were dropped before they had returned.
    pub fn dropped(&self) -> usize {
        self.counts().dropped
    }

    /// How many bodies are in flight.
    pub fn running(&self) -> usize {
        self.counts().running
    }

    /// The most bodies that were in flight at once.
    pub fn max_concurrent(&self) -> usize {
        self.counts().most_at_once
    }

    /// The entries, in order.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.lock().entered.clone()
    }

    /// The ids of the calls, in the order of their entry.
    pub fn call_ids(&self) -> Vec<String> {
        let calls = self.lock();
        let ids = calls.entered.iter().map(|call| call.call_id.clone());
        ids.collect()
    }

    /// Entries that the tool's script had nothing for.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// Waits until the body was entered this often.
    pub async fn wait_for_entries(&self, count: usize) {
        self.wait(|counts| counts.entries >= count).await;
    }

    /// Waits until this many bodies have returned.
    pub async fn wait_for_completions(&self, count: usize) {
        self.wait(|counts| counts.completions >= count).await;
    }

    /// Waits until no body is in flight.
    pub async fn wait_until_idle(&self) {
        self.wait(|counts| counts.running == 0).await;
    }

    async fn wait(&self, reached: impl Fn(&Counts) -> bool) {
        let mut counts = self.0.counts.subscribe();
        let _ = counts.wait_for(|counts| reached(counts)).await;
    }

    fn counts(&self) -> Counts {
        *self.0.counts.borrow()
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn violation(&self, text: String) {
        self.lock().violations.push(text);
    }

    /// Counts an entry; the guard counts how it ends.
    pub(super) fn enter(&self, context: &ToolContext, arguments: &ToolArguments) -> Entry {
        self.lock().entered.push(RecordedCall {
            call_id: context.call_id().to_owned(),
            run_id: context.run_id().clone(),
            occurrence: context.occurrence(),
            idempotency_key: context.idempotency_key(),
            attempt: context.attempt(),
            arguments: arguments.clone(),
            resumption: context.resumption().cloned(),
        });
        self.0.counts.send_modify(|counts| {
            counts.entries += 1;
            counts.running += 1;
            counts.most_at_once = counts.most_at_once.max(counts.running);
        });
        Entry {
            log: self.clone(),
            completed: false,
        }
    }
}

/// A body in flight.
pub(super) struct Entry {
    log: ToolLog,
    completed: bool,
}

impl Entry {
    pub(super) fn complete(mut self) {
        self.completed = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.log.0.counts.send_modify(|counts| {
            counts.running -= 1;
            if self.completed {
                counts.completions += 1;
            } else if std::thread::panicking() {
                counts.panics += 1;
            } else {
                counts.dropped += 1;
            }
        });
    }
}
