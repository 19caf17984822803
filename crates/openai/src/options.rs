//! How an endpoint is reached: address, key, model, limits, dialect.

use std::fmt;

use raf_core::Result;
use raf_wire::EndpointOptions;

use crate::endpoint::CHAT_COMPLETIONS;
use crate::{Dialect, ResponsesDialect};

/// Where OpenAI itself answers.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// Options of an [`OpenAiChatClient`](crate::OpenAiChatClient).
///
/// | option | default |
/// |---|---|
/// | base URL | `https://api.openai.com/v1` |
/// | key | none (local servers need none) |
/// | model | none: each run must name one |
/// | dialect | recognised by the base URL, else [`Dialect::compatible`] |
/// | streaming | on |
/// | think tags | as the dialect has it |
/// | timeouts, limits | see [`Timeouts`](crate::Timeouts), [`Limits`](crate::Limits) |
///
/// `Debug` shows no key, and of extra headers the names only.
#[derive(Clone)]
pub struct OpenAiOptions {
    pub(crate) endpoint: EndpointOptions,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) responses_dialect: Option<ResponsesDialect>,
    pub(crate) think_tags: Option<bool>,
    pub(crate) azure_api_version: Option<String>,
}

impl OpenAiOptions {
    /// Options of OpenAI itself, without a key.
    pub fn new() -> Self {
        Self {
            endpoint: EndpointOptions::new(DEFAULT_BASE_URL),
            dialect: None,
            responses_dialect: None,
            think_tags: None,
            azure_api_version: None,
        }
    }

    /// Options from the environment: `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`; a
    /// variable that is blank counts as unset.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if there is neither a key nor
    /// a base URL.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Options from variables that a function looks up, as
    /// [`from_env`](OpenAiOptions::from_env) does in the environment.
    ///
    /// # Errors
    /// As [`from_env`](OpenAiOptions::from_env).
    pub fn from_variables(look_up: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let endpoint = EndpointOptions::from_variables(
            "OPENAI",
            look_up,
            DEFAULT_BASE_URL,
            "no endpoint is configured: set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL \
             for another server (http://localhost:11434/v1, say; one on your own machine \
             needs no key). OPENAI_MODEL names the model",
        )?;
        Ok(Self {
            endpoint,
            ..Self::new()
        })
    }

    /// Options of an Azure OpenAI resource (`https://<name>.openai.azure.com`), by its API version
    /// (`2024-10-21`, say): requests go to
    /// `<resource>/openai/deployments/<model>/chat/completions?api-version=<version>`, the key in the
    /// header `api-key`. The model of a run is the name of the deployment.
    ///
    /// For Azure's version-less API, set the base URL to `<resource>/openai/v1` instead.
    pub fn azure(resource: impl Into<String>, api_version: impl Into<String>) -> Self {
        let mut options = Self::new().with_base_url(resource);
        options.azure_api_version = Some(api_version.into());
        options.dialect = Dialect::named("azure");
        options
    }

    raf_wire::endpoint_setters!(
        "Sets the address below which `/chat/completions` lies. It usually ends in `/v1`."
    );

    /// Sets the rules by which requests are written, instead of those recognised by the base URL.
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets the rules by which requests to the Responses API are written, instead of those that belong
    /// to the other dialect or the base URL.
    pub fn with_responses_dialect(mut self, dialect: ResponsesDialect) -> Self {
        self.responses_dialect = Some(dialect);
        self
    }

    /// Sets whether a `<think>` block at the start of a reply is reasoning.
    pub fn with_think_tags(mut self, think_tags: bool) -> Self {
        self.think_tags = Some(think_tags);
        self
    }
}

impl Default for OpenAiOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpenAiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("OpenAiOptions");
        self.endpoint.write_fields(&CHAT_COMPLETIONS, &mut fields);
        fields
            .field("dialect", &self.dialect.as_ref().map(Dialect::name))
            .field("think_tags", &self.think_tags)
            .field("azure_api_version", &self.azure_api_version)
            .finish_non_exhaustive()
    }
}
