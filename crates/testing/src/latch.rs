//! A gate that a test opens: the only way in which fakes wait.

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
pub struct Latch(CancellationToken);

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

    /// Opens it for all who wait and all who come.
    pub fn open(&self) {
        self.0.cancel();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is open. Needs no runtime.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}
