//! Counts how often bodies are polled: after a drop they must not be polled again.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use raf_core::{ToolDeclaration, TrustLabel};
use raf_tools::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits, ToolOutput};

/// A tool that counts how often its bodies are polled.
#[derive(Clone, Debug)]
pub struct PollCounted<T> {
    inner: T,
    polls: Arc<AtomicUsize>,
}

impl<T: ITool> PollCounted<T> {
    /// A tool whose bodies have not been polled.
    pub fn new(inner: T) -> Self {
        let polls = Arc::default();
        Self { inner, polls }
    }

    /// The count, which goes on.
    pub fn counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.polls)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<T: ITool> ITool for PollCounted<T> {
    fn declaration(&self) -> &ToolDeclaration {
        self.inner.declaration()
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        let mut body = self.inner.call(context, arguments);
        poll_fn(|context| {
            self.polls.fetch_add(1, Ordering::SeqCst);
            body.poll_unpin(context)
        })
        .await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn requires_approval(&self) -> bool {
        self.inner.requires_approval()
    }

    fn limits(&self) -> ToolLimits {
        self.inner.limits()
    }

    fn trust(&self) -> TrustLabel {
        self.inner.trust()
    }
}
