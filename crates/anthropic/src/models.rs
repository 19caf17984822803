//! Lists models, page by page, and says in words what is wrong with an endpoint.

use raf_core::{Error, Result};
use raf_wire::{EndpointHealth, Json, ModelInfo, read_models};

use crate::AnthropicChatClient;
use crate::dialect::EndpointForm;

/// The most models of a page that the API gives.
const PAGE: &str = "1000";

/// The most pages that are asked for: a server that never says that it is done must not hold a caller.
const MOST_PAGES: usize = 20;

impl AnthropicChatClient {
    /// The models that the endpoint offers, in its order: the newest first at Anthropic.
    ///
    /// Asks `<base URL>/v1/models`, once for each page of a thousand, twenty times at most. Cancel-safe:
    /// dropping it stops the request.
    ///
    /// # Errors
    /// As a run's stream; [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) outside a tokio runtime, and
    /// for Bedrock and Vertex, which list models by interfaces of their own.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>> {
        let form = self.dialect().rules.form;
        if form != EndpointForm::Messages {
            return Err(Error::misuse(format!(
                "{form:?} lists its models by an interface of its own: ask there"
            )));
        }
        let connection = self.connection();
        let first = connection
            .base()
            .join("v1/models")
            .with_query("limit", PAGE);
        let mut models = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let url = match &after {
                Some(id) => first.clone().with_query("after_id", id),
                None => first.clone(),
            };
            let page = connection.get(&url).await?;
            models.extend(read_models(&page).ok_or_else(|| {
                let reporter = connection.reporter(&url, "", bytes::Bytes::new());
                reporter.protocol("answered with something that is no list of models")
            })?);
            let last = page.get("last_id").and_then(Json::as_str);
            match last.filter(|_| page.get("has_more") == Some(&Json::Bool(true))) {
                Some(last) if after.as_deref() != Some(last) => after = Some(last.to_owned()),
                _ => break,
            }
        }
        Ok(models)
    }

    /// A cheap check of the endpoint, which spends no tokens: whether it answers, takes the key, and
    /// offers the model that is set.
    ///
    /// # Errors
    /// What is wrong if the endpoint cannot be used at all: not reached, key refused, something else
    /// at this address. A server that does not list its models is none of these. Bedrock and Vertex are
    /// not checked: as [`list_models`](AnthropicChatClient::list_models).
    pub async fn check(&self) -> Result<EndpointHealth> {
        let listed = self.list_models().await;
        self.connection().health(listed, true)
    }
}
