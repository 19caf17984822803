//! How many bodies of one tool may be in flight, over all runs of an executor.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::registered::ToolIdentity;

/// A semaphore per tool that has a bound of its own: kept by those who hold or await a permit.
#[derive(Debug, Default)]
pub(super) struct ToolPermits(Mutex<HashMap<(ToolIdentity, usize), Weak<Semaphore>>>);

impl ToolPermits {
    /// A permit, or a future that has one in its turn.
    pub(super) fn acquire(
        &self,
        tool: ToolIdentity,
        bound: usize,
    ) -> Result<OwnedSemaphorePermit, impl Future<Output = OwnedSemaphorePermit> + Send + use<>>
    {
        let semaphore = self.semaphore(tool, bound.clamp(1, Semaphore::MAX_PERMITS));
        Arc::clone(&semaphore)
            .try_acquire_owned()
            .map_err(|_| async move {
                semaphore
                    .acquire_owned()
                    .await
                    .expect("a semaphore that is never closed")
            })
    }

    fn semaphore(&self, tool: ToolIdentity, bound: usize) -> Arc<Semaphore> {
        let mut tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = tools.get(&(tool, bound)).and_then(Weak::upgrade) {
            return semaphore;
        }
        tools.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(bound));
        tools.insert((tool, bound), Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::ToolPermits;
    use crate::registered::RegisteredTool;
    use crate::tool_fn;

    #[test]
    fn a_bound_is_of_a_tool_and_not_of_its_name_and_the_map_does_not_grow() {
        let tool = || RegisteredTool::new(tool_fn("f", "f.", |(): ()| async { "x" })).unwrap();
        let (first, second) = (tool(), tool());
        let permits = ToolPermits::default();
        let held = permits.acquire(first.identity(), 1).ok().unwrap();
        assert!(permits.acquire(second.identity(), 1).is_ok());
        // Another tool of this name, whose bound is another one, does not lift the first one's.
        assert!(permits.acquire(second.identity(), 2).is_ok());
        let waits = permits.acquire(first.clone().identity(), 1).err().unwrap();
        drop(held);
        let held = waits.now_or_never().unwrap();
        assert!(permits.acquire(first.identity(), 1).is_err());
        drop(held);
        for _ in 0..100 {
            drop(permits.acquire(tool().identity(), 1).ok());
        }
        assert!(permits.0.lock().unwrap().len() < 3);
    }
}
