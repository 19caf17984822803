//! Signs of life: while a leg works, its claim is renewed, so that no other process takes its run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raf_core::{IRunStore, RunClaim, RunId};

/// The run that a leg holds in a durable store, once it does.
#[derive(Clone, Debug, Default)]
pub(in crate::function_invoking) struct Held(Arc<Mutex<Option<RunId>>>);

impl Held {
    /// The leg holds this run.
    pub(in crate::function_invoking) fn set(&self, run_id: RunId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(run_id);
    }

    fn get(&self) -> Option<RunId> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Does the work, and renews the claim meanwhile. A claim that is lost is noticed at the next write,
/// which is fenced.
pub(in crate::function_invoking) async fn while_held<T>(
    store: Arc<dyn IRunStore>,
    claim: RunClaim,
    held: Held,
    work: impl Future<Output = T>,
) -> T {
    let Some(lease) = store.lease() else {
        return work.await;
    };
    tokio::select! {
        biased;
        done = work => done,
        () = beat(store, claim, held, lease / 3) => std::future::pending().await,
    }
}

async fn beat(store: Arc<dyn IRunStore>, claim: RunClaim, held: Held, every: Duration) {
    let every = every.max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(every).await;
        let Some(run_id) = held.get() else { continue };
        // One that hangs gives way to the next.
        match tokio::time::timeout(every, store.renew(&run_id, &claim)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the claim of a run could not be renewed"),
            Err(_) => tracing::warn!("the claim of a run was not renewed in time"),
        }
    }
}
