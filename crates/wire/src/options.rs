//! What the options of every provider hold: address, key, model, headers, client, limits.

use std::fmt::{self, DebugStruct};
use std::sync::Arc;

use raf_core::{Error, Result};

use crate::endpoint::EndpointKind;
use crate::limits::{Limits, Timeouts};
use crate::signing::IRequestSigner;
use crate::transport::{Address, HttpClient};

/// How an endpoint is reached. A provider's own options hold one, and get its setters from
/// [`endpoint_setters!`](crate::endpoint_setters).
#[derive(Clone)]
#[non_exhaustive]
pub struct EndpointOptions {
    /// The address below which everything lies.
    pub base_url: String,
    /// The key; none by default.
    pub api_key: Option<String>,
    /// The model of runs that name none; none by default.
    pub model: Option<String>,
    /// Headers that go along with each request.
    pub headers: Vec<(String, String)>,
    /// The HTTP client to send with, instead of one of its own.
    pub http_client: Option<HttpClient>,
    /// What signs each request; nothing by default.
    pub request_signer: Option<Arc<dyn IRequestSigner>>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much may come.
    pub limits: Limits,
    /// Whether replies are streamed over the wire; on by default.
    pub streaming: bool,
}

impl EndpointOptions {
    /// Options of this address, without a key.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            model: None,
            headers: Vec::new(),
            http_client: None,
            request_signer: None,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            streaming: true,
        }
    }

    /// Options from the variables `<prefix>_API_KEY`, `<prefix>_BASE_URL` and `<prefix>_MODEL` that a
    /// function looks up; one that is blank counts as unset. Without an address this one is taken.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) with these words if there is
    /// neither a key nor an address.
    pub fn from_variables(
        prefix: &str,
        look_up: impl Fn(&str) -> Option<String>,
        base_url: &str,
        unconfigured: &str,
    ) -> Result<Self> {
        let variable = |name: &str| {
            let value = look_up(&format!("{prefix}_{name}"))?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let mut options = Self::new(base_url);
        options.api_key = variable("API_KEY");
        options.model = variable("MODEL");
        match variable("BASE_URL") {
            Some(base_url) => options.base_url = base_url,
            None if options.api_key.is_none() => return Err(Error::configuration(unconfigured)),
            None => {}
        }
        Ok(options)
    }

    /// Writes the options as fields of a `Debug` text: no key, no user or password of the address, and of
    /// headers the names only.
    pub fn write_fields(&self, kind: &EndpointKind, fields: &mut DebugStruct<'_, '_>) {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        fields
            .field("base_url", &Address::parse(&self.base_url, kind).ok())
            .field("api_key", &self.api_key.as_ref().map(|_| "[redacted]"))
            .field("model", &self.model)
            .field("headers", &headers)
            .field("request_signer", &self.request_signer)
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .field("streaming", &self.streaming);
    }
}

impl fmt::Debug for EndpointOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("EndpointOptions");
        self.write_fields(&EndpointKind::UNKNOWN, &mut fields);
        fields.finish_non_exhaustive()
    }
}

/// The setters that the options of every provider have, for a type with a field `endpoint` of
/// [`EndpointOptions`]. The text says what the base URL is. For use inside of an `impl`; the type's crate
/// re-exports [`Timeouts`](crate::Timeouts) and [`reqwest`](crate::reqwest), to which the docs refer.
#[macro_export]
macro_rules! endpoint_setters {
    ($base_url:literal) => {
        #[doc = $base_url]
        pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
            self.endpoint.base_url = base_url.into();
            self
        }

        /// Sets the key.
        pub fn with_api_key(mut self, key: impl Into<String>) -> Self {
            self.endpoint.api_key = Some(key.into());
            self
        }

        /// Sets the model that is used where a run names none.
        pub fn with_model(mut self, model: impl Into<String>) -> Self {
            self.endpoint.model = Some(model.into());
            self
        }

        /// Sends a header with each request, as it is.
        pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.endpoint.headers.push((name.into(), value.into()));
            self
        }

        /// Sends requests through this client: proxies, certificates, HTTP/2 as it is set up.
        ///
        /// [`Timeouts::connect`](crate::Timeouts::connect) has no effect then. A client that follows
        /// redirects may carry the conversation to another host. It must not have a total timeout,
        /// which would cut long replies. [`reqwest`](crate::reqwest) is re-exported: a new major version
        /// of it is a new major version of this crate.
        pub fn with_http_client(mut self, client: $crate::HttpClient) -> Self {
            self.endpoint.http_client = Some(client);
            self
        }

        /// Signs each request just before it is sent, in place of a key or beside it: signatures of a
        /// cloud, tokens that expire.
        pub fn with_request_signer(
            mut self,
            signer: impl $crate::IRequestSigner + 'static,
        ) -> Self {
            self.endpoint.request_signer = Some(::std::sync::Arc::new(signer));
            self
        }

        /// Sets the timeouts.
        pub fn with_timeouts(mut self, timeouts: $crate::Timeouts) -> Self {
            self.endpoint.timeouts = timeouts;
            self
        }

        /// Sets the limits on what a server may send.
        pub fn with_limits(mut self, limits: $crate::Limits) -> Self {
            self.endpoint.limits = limits;
            self
        }

        /// Sets whether replies are streamed over the wire. The updates are the same either way; without
        /// it they come all at once.
        pub fn with_streaming(mut self, streaming: bool) -> Self {
            self.endpoint.streaming = streaming;
            self
        }
    };
}
