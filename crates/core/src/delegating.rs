//! The layer that changes nothing: the base to copy.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;

use crate::client::{ChatClientMetadata, IChatClient, UpdateStream};
use crate::error::Result;
use crate::message::ChatMessage;
use crate::options::ChatClientRunOptions;

/// Forwards everything to the client below.
///
/// Copy it to write a layer: keep the field, change `run`, keep the rest. Place: anywhere. Dropping
/// the stream drops the inner stream.
#[derive(Debug, Clone)]
pub struct DelegatingChatClient {
    inner: Arc<dyn IChatClient>,
}

impl DelegatingChatClient {
    /// A layer around a client.
    pub fn new(inner: Arc<dyn IChatClient>) -> Self {
        Self { inner }
    }

    /// The client below.
    pub fn inner(&self) -> &Arc<dyn IChatClient> {
        &self.inner
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for DelegatingChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        self.inner.run(messages, options).await
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}
