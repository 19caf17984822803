//! What both stores can be told: how long what is kept, how long a hold lasts.

use std::time::Duration;

/// How long a store keeps what it has, and how long a hold lasts without a sign of life.
///
/// | setting | default |
/// |---|---|
/// | `lifetime`: a run after its last write | 30 days |
/// | `session_lifetime`: a session after its last write | 365 days |
/// | `lease`: a claim on a run, a lease of a session | 30 seconds |
///
/// A run whose lifetime is over is closed as expired; after the same time once more it is gone. While
/// the process lives the store renews its holds by itself, each third of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// How long a run is kept after its last write.
    pub lifetime: Duration,
    /// How long a session is kept after its last write.
    pub session_lifetime: Duration,
    /// How long a claim or a session's lease lasts without a sign of life.
    pub lease: Duration,
    /// Whether the store gives signs of life by itself for what this process holds.
    pub heartbeat: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_hours(30 * 24),
            session_lifetime: Duration::from_hours(365 * 24),
            lease: Duration::from_secs(30),
            heartbeat: true,
        }
    }
}

impl StoreOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a run is kept after its last write.
    pub fn with_lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Sets how long a session is kept after its last write.
    pub fn with_session_lifetime(mut self, lifetime: Duration) -> Self {
        self.session_lifetime = lifetime;
        self
    }

    /// Sets how long a hold lasts without a sign of life; at least 10 milliseconds.
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(10));
        self
    }

    /// Without it, holds last only by writes and by
    /// [`renew`](raf_core::IRunStore::renew): for those who want a worker that makes no progress to
    /// lose its runs, and for tests.
    pub fn with_heartbeat(mut self, heartbeat: bool) -> Self {
        self.heartbeat = heartbeat;
        self
    }
}

/// A span as whole milliseconds, as columns hold it.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn milliseconds(span: Duration) -> i64 {
    // A quarter of the range: sums of a few never overflow.
    i64::try_from(span.as_millis())
        .unwrap_or(i64::MAX)
        .min(i64::MAX / 4)
}
