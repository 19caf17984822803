//! A gate that a test opens: the only way in which fakes wait.

use std::time::Duration;

use raf_core::CancellationToken;

/// A gate that starts closed and, once opened, stays open. A cheap handle: clones are the same gate.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let latch = raf_testing::Latch::new();
/// let gate = latch.clone();
/// let (_, ()) = tokio::join!(gate.wait(), async { latch.open() });
/// assert!(gate.is_open());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Latch {
    opened: CancellationToken,
    patience: Option<Duration>,
}

impl Latch {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// A gate that is open from the start.
    pub fn opened() -> Self {
        let latch = Self::new();
        latch.open();
        latch
    }

    /// A gate that lets each who waits pass after this long, if nobody opens it before: a pause, for
    /// programs that show how something streams. Waiting needs a tokio runtime.
    pub fn pause(patience: Duration) -> Self {
        Self {
            patience: Some(patience),
            ..Self::default()
        }
    }

    /// Opens it for all who wait and all who come.
    pub fn open(&self) {
        self.opened.cancel();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.opened.is_cancelled()
    }

    /// Waits until it is open. Needs no runtime, but for a [`pause`](Latch::pause).
    pub async fn wait(&self) {
        match self.patience {
            None => self.opened.cancelled().await,
            Some(patience) => {
                let _ = tokio::time::timeout(patience, self.opened.cancelled()).await;
            }
        }
    }
}
