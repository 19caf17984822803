//! Lists models, and says in words what is wrong with an endpoint: for both protocols alike.

use raf_core::Result;
use raf_wire::{Address, Connection, EndpointHealth, ModelInfo};

use crate::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient};

/// `<base URL>/models`; with an Azure API version `<resource>/openai/models`.
fn url(connection: &Connection, options: &OpenAiOptions) -> Address {
    match &options.azure_api_version {
        Some(version) => connection
            .base()
            .join("openai/models")
            .with_query("api-version", version),
        None => connection.base().join("models"),
    }
}

async fn check(connection: &Connection, options: &OpenAiOptions) -> Result<EndpointHealth> {
    let listed = connection.models(&url(connection, options)).await;
    // Azure asks for deployments, whose names the list does not have.
    connection.health(listed, options.azure_api_version.is_none())
}

impl OpenAiChatClient {
    /// The models that the endpoint offers, in its order.
    ///
    /// Asks `<base URL>/models`; with an Azure API version `<resource>/openai/models`. Cancel-safe:
    /// dropping it stops the request.
    ///
    /// # Errors
    /// As a run's stream; [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) outside a tokio runtime.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>> {
        let (connection, options) = self.parts();
        connection.models(&url(connection, options)).await
    }

    /// A cheap check of the endpoint, which spends no tokens: whether it answers, takes the key, and
    /// offers the model that is set.
    ///
    /// # Errors
    /// What is wrong if the endpoint cannot be used at all: not reached, key refused, something else
    /// at this address. A server that does not list its models is none of these.
    pub async fn check(&self) -> Result<EndpointHealth> {
        let (connection, options) = self.parts();
        check(connection, options).await
    }
}

impl OpenAiResponsesChatClient {
    /// The models that the endpoint offers: as [`OpenAiChatClient::list_models`].
    ///
    /// # Errors
    /// As there.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>> {
        let (connection, options) = self.parts();
        connection.models(&url(connection, options)).await
    }

    /// A cheap check of the endpoint: as [`OpenAiChatClient::check`].
    ///
    /// # Errors
    /// As there.
    pub async fn check(&self) -> Result<EndpointHealth> {
        let (connection, options) = self.parts();
        check(connection, options).await
    }
}
