//! How many bodies of one tool may be in flight, over all runs of an executor.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A semaphore per tool that has a bound of its own.
#[derive(Debug, Default)]
pub(super) struct ToolPermits(Mutex<HashMap<String, (usize, Arc<Semaphore>)>>);

impl ToolPermits {
    /// A permit, or a future that has one in its turn.
    pub(super) fn acquire(
        &self,
        tool: &str,
        bound: usize,
    ) -> Result<OwnedSemaphorePermit, impl Future<Output = OwnedSemaphorePermit> + Send + use<>>
    {
        let bound = bound.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore = {
            let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = tools
                .entry(tool.to_owned())
                .or_insert_with(|| (bound, Arc::new(Semaphore::new(bound))));
            if entry.0 != bound {
                *entry = (bound, Arc::new(Semaphore::new(bound)));
            }
            Arc::clone(&entry.1)
        };
        Arc::clone(&semaphore)
            .try_acquire_owned()
            .map_err(|_| async move {
                semaphore
                    .acquire_owned()
                    .await
                    .expect("a semaphore that is never closed")
            })
    }
}
