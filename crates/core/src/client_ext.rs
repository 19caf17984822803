//! Sugar over [`IChatClient`] that nobody implements.

use std::any::{Any, TypeId};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::builder::ChatClientBuilder;
use crate::client::{IChatClient, UpdateStream};
use crate::error::Result;
use crate::fold::ResponseFold;
use crate::message::ChatMessage;
use crate::options::ChatClientRunOptions;
use crate::response::AgentResponse;
use crate::update::AgentResponseUpdate;

/// Ways to use a client that all rest on [`IChatClient::run`].
#[async_trait]
pub trait ChatClientExt: IChatClient {
    /// The whole response: the fold of the stream, nothing else.
    ///
    /// # Errors
    /// What ended the leg, with [`Error::leg`](crate::Error::leg) set: transcript, usage and open
    /// calls until then.
    async fn get_response(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<AgentResponse> {
        collect(self.run(messages, options).await?).await
    }

    /// The answer's text to one message of the user, with default options.
    ///
    /// # Errors
    /// As [`get_response`](ChatClientExt::get_response).
    async fn get_text(&self, message: &str) -> Result<String> {
        let messages = [ChatMessage::user(message)];
        let response = self
            .get_response(&messages, ChatClientRunOptions::new())
            .await?;
        Ok(response.text())
    }

    /// The text of the leg as it arrives, of all its rounds; all other updates are left out.
    ///
    /// # Errors
    /// As [`IChatClient::run`]; the stream's last item is the error that ended the leg.
    async fn stream_text(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<BoxStream<'static, Result<String>>> {
        let updates = self.run(messages, options).await?;
        Ok(updates
            .filter_map(|update| async move {
                match update {
                    Ok(AgentResponseUpdate::TextDelta { text }) => Some(Ok(text)),
                    Ok(_) => None,
                    Err(error) => Some(Err(error)),
                }
            })
            .boxed())
    }

    /// Starts a stack on this client: short for
    /// [`ChatClientBuilder::new`](crate::ChatClientBuilder::new).
    fn into_builder(self) -> ChatClientBuilder
    where
        Self: Sized + 'static,
    {
        ChatClientBuilder::new(self)
    }

    /// A service of this client or one below it.
    fn get_service<T: Any + Send + Sync>(&self) -> Option<&T>
    where
        Self: Sized,
    {
        get_service(self)
    }
}

impl<C: IChatClient + ?Sized> ChatClientExt for C {}

/// A service of a client held as a trait object, or one below it.
pub fn get_service<T: Any + Send + Sync>(client: &dyn IChatClient) -> Option<&T> {
    client.service(TypeId::of::<T>())?.downcast_ref()
}

/// Folds a stream to its response.
///
/// # Errors
/// What ended the leg, with [`Error::leg`](crate::Error::leg) set.
pub async fn collect(
    mut updates: impl Stream<Item = Result<AgentResponseUpdate>> + Unpin + Send,
) -> Result<AgentResponse> {
    let mut fold = ResponseFold::new();
    while let Some(update) = updates.next().await {
        match update {
            Ok(update) => fold.push(&update),
            Err(error) => return Err(fold.fail(error)),
        }
    }
    fold.finish()
}

#[allow(dead_code, reason = "a check by the compiler: the seam is object safe")]
fn object_safe(client: &dyn IChatClient, stream: UpdateStream) -> (&dyn IChatClient, UpdateStream) {
    (client, stream)
}
