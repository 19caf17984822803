//! How a run is told to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// A token, a flag, or both: whichever says stop first.
///
/// A token wakes what waits for it. A flag has nobody to wake: what waits looks at it every 20 ms
/// (`FLAG_INTERVAL_MS`). The default never stops.
#[derive(Clone, Default)]
pub struct Cancellation {
    token: CancellationToken,
    flag: Option<Arc<AtomicBool>>,
}

impl Cancellation {
    /// How often a flag is looked at while something is awaited, in milliseconds.
    pub const FLAG_INTERVAL_MS: u64 = 20;

    /// One that never stops unless it is cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says stop, to the token.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Whether token or flag says stop.
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
            || self
                .flag
                .as_ref()
                .is_some_and(|flag| flag.load(Ordering::Acquire))
    }

    /// The token.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Whether there is a flag to look at.
    pub fn has_flag(&self) -> bool {
        self.flag.is_some()
    }

    /// Looks at a flag as well.
    pub fn with_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.flag = Some(flag);
        self
    }

    /// One that stops with this one, and can be stopped alone.
    pub fn child(&self) -> Self {
        Self {
            token: self.token.child_token(),
            flag: self.flag.clone(),
        }
    }
}

impl From<CancellationToken> for Cancellation {
    fn from(token: CancellationToken) -> Self {
        Self { token, flag: None }
    }
}

impl From<Arc<AtomicBool>> for Cancellation {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self::new().with_flag(flag)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation")
            .field("cancelled", &self.is_cancelled())
            .field("flag", &self.has_flag())
            .finish()
    }
}
