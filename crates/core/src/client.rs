//! The seam: one trait that providers and layers implement.

use std::any::{Any, TypeId};
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::options::ChatClientRunOptions;
use crate::update::AgentResponseUpdate;

/// The stream of one leg: updates, then one terminal item, then `None` for ever.
pub type UpdateStream = BoxStream<'static, Result<AgentResponseUpdate>>;

/// Something that turns a conversation into a stream of updates: a provider, or a layer around
/// another client.
///
/// # Contract
/// - `run(..).await` does no I/O: its `Err` is a request that is wrong by itself. Nothing is sent
///   before the stream is first polled.
/// - The stream ends with one terminal item: `Finish` as an update, or an `Err`; then `None`.
/// - Dropping the stream stops the work. No task outlives it.
/// - Messages and options of the caller are never changed.
/// - Content that is not understood passes through unchanged, in order.
///
/// # Minimal implementation
/// A provider implements [`run`](IChatClient::run) and should describe itself in
/// [`metadata`](IChatClient::metadata). It calls
/// [`refuse_resume_data`](ChatClientRunOptions::refuse_resume_data) first.
///
/// # Layers
/// A layer holds `inner: Arc<dyn IChatClient>`, forwards what it does not change (start from
/// [`DelegatingChatClient`](crate::DelegatingChatClient)), and carries
/// `#[deny(clippy::missing_trait_methods)]` on its impl, so that a method which is added later is
/// not silently un-forwarded.
#[async_trait]
pub trait IChatClient: Debug + Send + Sync {
    /// Starts a leg over the whole conversation as the caller knows it.
    ///
    /// # Errors
    /// A request that is wrong by itself. All else comes as the stream's last item.
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream>;

    /// What is at the bottom of the stack.
    fn metadata(&self) -> ChatClientMetadata {
        ChatClientMetadata::default()
    }

    /// A service of this client or one below it, by type; see
    /// [`ChatClientExt::get_service`](crate::ChatClientExt::get_service).
    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        let _ = id;
        None
    }
}

/// Who answers at the bottom of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatClientMetadata {
    /// The provider's name, as OpenTelemetry's `gen_ai.provider.name` has it: `openai`, say.
    pub provider: Option<String>,
    /// The model that is used where the options name none.
    pub model: Option<String>,
    /// The address, without credentials.
    pub endpoint: Option<String>,
}

impl ChatClientMetadata {
    /// Metadata of a provider.
    pub fn new(provider: impl Into<String>) -> Self {
        Self {
            provider: Some(provider.into()),
            ..Self::default()
        }
    }

    /// Sets the default model.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the address. It must hold no credentials.
    pub fn with_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }
}

macro_rules! forward {
    ($($pointer:ident),*) => {$(
        #[deny(clippy::missing_trait_methods)]
        impl<C: IChatClient + ?Sized> IChatClient for $pointer<C> {
            // As `async_trait` writes it: the future is handed on, not put into another one.
            fn run<'client, 'messages, 'run>(
                &'client self,
                messages: &'messages [ChatMessage],
                options: ChatClientRunOptions,
            ) -> BoxFuture<'run, Result<UpdateStream>>
            where
                'client: 'run,
                'messages: 'run,
                Self: 'run,
            {
                (**self).run(messages, options)
            }

            fn metadata(&self) -> ChatClientMetadata {
                (**self).metadata()
            }

            fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
                (**self).service(id)
            }
        }
    )*};
}

forward!(Arc, Box);
