//! How an endpoint is reached: address, key, model, limits, dialect.

use std::fmt;

use raf_core::{Error, Result};
use raf_wire::{Address, HttpClient};

use crate::endpoint::CHAT_COMPLETIONS;
use crate::{Dialect, Limits, ResponsesDialect, Timeouts};

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
/// | timeouts, limits | see [`Timeouts`], [`Limits`] |
///
/// `Debug` shows no key, and of extra headers the names only.
#[derive(Clone)]
pub struct OpenAiOptions {
    pub(crate) base_url: String,
    pub(crate) api_key: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) http_client: Option<HttpClient>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) responses_dialect: Option<ResponsesDialect>,
    pub(crate) streaming: bool,
    pub(crate) think_tags: Option<bool>,
    pub(crate) azure_api_version: Option<String>,
}

impl OpenAiOptions {
    /// Options of OpenAI itself, without a key.
    pub fn new() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            api_key: None,
            model: None,
            headers: Vec::new(),
            http_client: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            dialect: None,
            responses_dialect: None,
            streaming: true,
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
        let variable = |name: &str| {
            let value = look_up(name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let mut options = Self::new();
        options.api_key = variable("OPENAI_API_KEY");
        options.model = variable("OPENAI_MODEL");
        match variable("OPENAI_BASE_URL") {
            Some(base_url) => options.base_url = base_url,
            None if options.api_key.is_none() => {
                return Err(Error::configuration(
                    "no endpoint is configured: set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL \
                     for another server (http://localhost:11434/v1, say; one on your own machine \
                     needs no key). OPENAI_MODEL names the model",
                ));
            }
            None => {}
        }
        Ok(options)
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

    /// Sets the address below which `/chat/completions` lies. It usually ends in `/v1`.
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Sets the key.
    pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Sets the model that is used where a run names none.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sends a header with each request, as it is: `OpenAI-Organization`, say.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends requests through this client: proxies, certificates, HTTP/2 as it is set up.
    ///
    /// [`Timeouts::connect`] has no effect then. A client that follows redirects may carry the
    /// conversation to another host. It must not have a total timeout, which would cut long replies.
    /// `reqwest` is re-exported as [`raf_openai::reqwest`](crate::reqwest): a new major version of it
    /// is a new major version of this crate.
    pub fn with_http_client(mut self, client: HttpClient) -> Self {
        self.http_client = Some(client);
        self
    }

    /// Sets the timeouts.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the limits on what a server may send.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

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

    /// Sets whether replies are streamed over the wire. The updates are the same either way; without
    /// it they come all at once.
    pub fn with_streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
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
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let base_url = Address::parse(&self.base_url, &CHAT_COMPLETIONS).ok();
        f.debug_struct("OpenAiOptions")
            .field("base_url", &base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("model", &self.model)
            .field("headers", &headers)
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .field("dialect", &self.dialect.as_ref().map(Dialect::name))
            .field("streaming", &self.streaming)
            .field("think_tags", &self.think_tags)
            .field("azure_api_version", &self.azure_api_version)
            .finish_non_exhaustive()
    }
}
