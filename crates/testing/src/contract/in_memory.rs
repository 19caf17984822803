//! The in-memory stores under the laws of stores.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{IRunStore, ISessionStore, InMemoryRunStore, InMemorySessionStore};

use super::run_store::{IRunStoreFixture, LIFETIME};
use super::session_store::ISessionStoreFixture;

/// In-memory stores with a clock of the test's own: what a store of one's own can be compared with.
pub struct InMemoryFixture {
    runs: InMemoryRunStore,
    sessions: InMemorySessionStore,
    milliseconds: Arc<AtomicU64>,
}

impl Debug for InMemoryFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InMemoryFixture")
    }
}

impl Default for InMemoryFixture {
    fn default() -> Self {
        Self::new()
    }
}

impl InMemoryFixture {
    /// Empty stores.
    pub fn new() -> Self {
        let milliseconds = Arc::new(AtomicU64::new(1_000_000));
        let clock = |milliseconds: &Arc<AtomicU64>| {
            let milliseconds = Arc::clone(milliseconds);
            move || Duration::from_millis(milliseconds.load(Ordering::SeqCst))
        };
        Self {
            runs: InMemoryRunStore::new()
                .with_durable(true)
                .with_lifetime(LIFETIME)
                .with_clock(clock(&milliseconds)),
            sessions: InMemorySessionStore::new()
                .with_lifetime(LIFETIME)
                .with_clock(clock(&milliseconds)),
            milliseconds,
        }
    }

    fn advance(&self, time: Duration) {
        let by = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.fetch_add(by, Ordering::SeqCst);
    }
}

#[async_trait]
impl IRunStoreFixture for InMemoryFixture {
    async fn open(&self) -> Arc<dyn IRunStore> {
        Arc::new(self.runs.clone())
    }

    fn pass(&self, time: Duration) {
        self.advance(time);
    }
}

#[async_trait]
impl ISessionStoreFixture for InMemoryFixture {
    async fn open(&self) -> Arc<dyn ISessionStore> {
        Arc::new(self.sessions.clone())
    }

    fn pass(&self, time: Duration) {
        self.advance(time);
    }
}
