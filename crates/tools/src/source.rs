//! Where the tools of a run come from.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, Result};

use crate::registered::RegisteredTool;
use crate::registry::ToolRegistry;

/// Something that says which tools there are now.
///
/// It is asked before each model request (contract D10), so that a tool which appears or goes away
/// during a run is seen in the next request. An answer that costs much is worth keeping: building a
/// [`RegisteredTool`] compiles its schema, so build once and hand out clones.
///
/// Implemented for [`ToolRegistry`], `Vec<RegisteredTool>`, and, for a registry that changes while
/// runs go on, `RwLock<ToolRegistry>`; and for `Arc`s of sources.
#[async_trait]
pub trait IToolSource: Debug + Send + Sync {
    /// The tools, in the order in which the model is told of them. Names must be unique.
    ///
    /// # Errors
    /// What keeps it from answering; the run ends with it, and no model request is made.
    async fn tools(&self) -> Result<Vec<RegisteredTool>>;
}

#[async_trait]
impl<T: IToolSource + ?Sized> IToolSource for Arc<T> {
    async fn tools(&self) -> Result<Vec<RegisteredTool>> {
        (**self).tools().await
    }
}

#[async_trait]
impl IToolSource for ToolRegistry {
    async fn tools(&self) -> Result<Vec<RegisteredTool>> {
        Ok(Self::tools(self).to_vec())
    }
}

#[async_trait]
impl IToolSource for RwLock<ToolRegistry> {
    async fn tools(&self) -> Result<Vec<RegisteredTool>> {
        let registry = self.read().unwrap_or_else(PoisonError::into_inner);
        Ok(registry.tools().to_vec())
    }
}

#[async_trait]
impl IToolSource for Vec<RegisteredTool> {
    async fn tools(&self) -> Result<Vec<RegisteredTool>> {
        Ok(self.clone())
    }
}

/// The sources that were given with the options of one run.
#[derive(Clone, Debug, Default)]
struct ProviderTools(Vec<Arc<dyn IToolSource>>);

/// Tools for one run, in its options.
pub trait ToolOptionsExt: Sized {
    /// Adds tools for this run only. Several calls add up, in order; where names clash the earlier
    /// wins, after those that the agent has registered, and a gated twin makes the tool gated
    /// (contract D10). On resume they are given again.
    fn with_provider_tools(self, source: impl IToolSource + 'static) -> Self;

    /// Without the sources given so far: those of a run are not those of a run nested in it.
    fn without_provider_tools(self) -> Self;

    /// The sources given with [`with_provider_tools`](ToolOptionsExt::with_provider_tools), in
    /// order.
    fn provider_tools(&self) -> Vec<Arc<dyn IToolSource>>;
}

impl ToolOptionsExt for ChatClientRunOptions {
    fn with_provider_tools(mut self, source: impl IToolSource + 'static) -> Self {
        let mut sources = self.provider_tools();
        sources.push(Arc::new(source));
        self.extensions.insert(ProviderTools(sources));
        self
    }

    fn without_provider_tools(mut self) -> Self {
        self.extensions.remove::<ProviderTools>();
        self
    }

    fn provider_tools(&self) -> Vec<Arc<dyn IToolSource>> {
        self.extensions
            .get::<ProviderTools>()
            .map(|tools| tools.0.clone())
            .unwrap_or_default()
    }
}
