//! Waiting for a cancellation that may be a flag.

use std::time::Duration;

use raf_core::Cancellation;

/// Completes when token or flag says stop. A flag is looked at every
/// [`Cancellation::FLAG_INTERVAL_MS`].
pub async fn cancelled(cancellation: &Cancellation) {
    if cancellation.has_flag() {
        // Boxed: few runs have a flag, and its timer would stand in the state of all.
        Box::pin(flagged(cancellation)).await;
    } else {
        cancellation.token().cancelled().await;
    }
}

async fn flagged(cancellation: &Cancellation) {
    let interval = Duration::from_millis(Cancellation::FLAG_INTERVAL_MS);
    while !cancellation.is_cancelled() {
        tokio::select! {
            biased;
            () = cancellation.token().cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}
