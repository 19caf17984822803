//! HTTP: the only file that knows the client library.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use raf_core::{Error, ErrorKind, Result};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use crate::endpoint::EndpointKind;
use crate::signing::{IRequestSigner, UnsignedRequest};

/// The HTTP client that a user may bring: proxies, certificates, HTTP/2 as it is set up.
pub type HttpClient = reqwest::Client;

/// Sends requests with the headers of one endpoint.
#[derive(Clone)]
pub struct Transport {
    kind: &'static EndpointKind,
    client: reqwest::Client,
    headers: Arc<HeaderMap>,
    signer: Option<Arc<dyn IRequestSigner>>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Transport")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// How the key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyHeader {
    /// `Authorization: Bearer <key>`, as nearly all servers want it.
    Bearer,
    /// `api-key: <key>`: Azure OpenAI.
    ApiKey,
    /// `x-api-key: <key>`: Anthropic.
    XApiKey,
}

/// Status and headers of a reply.
#[derive(Debug, Default)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    headers: HeaderMap,
}

/// A reply whose head has come.
#[derive(Debug)]
pub struct Exchange {
    /// Its status and headers; taken when the reply is read.
    pub head: Head,
    /// What a signer added to the request: not to be told on.
    pub(crate) signed: Vec<String>,
    response: reqwest::Response,
    /// The last piece of the body. While it is there, the client reads on into a new buffer; else it
    /// would enlarge the one that it has, and copy what was read long ago along.
    last: Option<Bytes>,
}

/// How reading a body failed.
#[derive(Debug)]
pub struct ReadFault(reqwest::Error);

impl Transport {
    /// A transport with these headers, over the caller's client or one of its own, which follows no
    /// redirects, so that neither key nor conversation goes to another host.
    ///
    /// # Errors
    /// A header that cannot be sent, or a client that cannot be built.
    pub fn new(
        kind: &'static EndpointKind,
        client: Option<HttpClient>,
        connect: Duration,
        key: Option<(&str, KeyHeader)>,
        extra: &[(String, String)],
    ) -> Result<Self> {
        let client = match client {
            Some(client) => client,
            None => reqwest::Client::builder()
                .connect_timeout(connect)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(kind.user_agent)
                .tcp_nodelay(true)
                .build()
                .map_err(|source| {
                    Error::configuration("the HTTP client cannot be built: is TLS set up?")
                        .with_source(source)
                })?,
        };
        let mut headers = HeaderMap::new();
        if let Some((key, form)) = key {
            let (name, text) = match form {
                KeyHeader::Bearer => (header::AUTHORIZATION, format!("Bearer {key}")),
                KeyHeader::ApiKey => (HeaderName::from_static("api-key"), key.to_owned()),
                KeyHeader::XApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                Error::configuration(
                    "the API key holds characters that no header may have, perhaps a line end: \
                     check how it is read",
                )
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        for (name, value) in extra {
            let fault = |what| {
                Error::configuration(format!("the {what} of extra header '{name}' is not valid"))
            };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| fault("name"))?;
            let value = HeaderValue::from_str(value).map_err(|_| fault("value"))?;
            headers.insert(header, value);
        }
        Ok(Self {
            kind,
            client,
            headers: Arc::new(headers),
            signer: None,
        })
    }

    /// The same with a signer of each request, if there is one.
    pub fn with_signer(mut self, signer: Option<Arc<dyn IRequestSigner>>) -> Self {
        self.signer = signer;
        self
    }

    /// Sends a JSON body; returns when the reply's head has come.
    pub async fn post(&self, url: &Address, body: Bytes) -> Result<Exchange> {
        let request = self
            .request(Method::POST, url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        self.exchange(request, url).await
    }

    /// Asks for a resource; returns when the reply's head has come.
    pub async fn get(&self, url: &Address) -> Result<Exchange> {
        self.exchange(self.request(Method::GET, url), url).await
    }

    fn request(&self, method: Method, url: &Address) -> reqwest::RequestBuilder {
        self.client
            .request(method, url.0.clone())
            .header(header::ACCEPT, "text/event-stream, application/json")
            .headers(HeaderMap::clone(&self.headers))
    }

    async fn exchange(&self, request: reqwest::RequestBuilder, url: &Address) -> Result<Exchange> {
        let refused = |error| send_error(error, url, self.kind);
        let request = request.build().map_err(refused)?;
        let (request, signed) = match &self.signer {
            Some(signer) => Box::pin(sign(signer.as_ref(), request)).await?,
            None => (request, Vec::new()),
        };
        let mut response = self.client.execute(request).await.map_err(refused)?;
        let head = Head {
            status: response.status().as_u16(),
            headers: detached(std::mem::take(response.headers_mut())),
        };
        Ok(Exchange {
            head,
            signed,
            response,
            last: None,
        })
    }
}

/// Adds what the signer says of the request; returns the values beside it.
async fn sign(
    signer: &dyn IRequestSigner,
    mut request: reqwest::Request,
) -> Result<(reqwest::Request, Vec<String>)> {
    let headers: Vec<(&str, &str)> = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let body = request.body().and_then(reqwest::Body::as_bytes);
    let unsigned = UnsignedRequest {
        method: request.method().as_str(),
        url: request.url().as_str(),
        headers: &headers,
        body: body.unwrap_or_default(),
    };
    let signed = signer.sign(unsigned).await?;
    for (name, value) in &signed {
        let fault = || {
            Error::configuration(format!(
                "the signer's header '{name}' is none that can be sent"
            ))
        };
        let header = HeaderName::try_from(name.as_str()).map_err(|_| fault())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| fault())?;
        value.set_sensitive(true);
        request.headers_mut().insert(header, value);
    }
    let values = signed.into_iter().map(|(_, value)| value).collect();
    Ok((request, values))
}

/// Headers in memory of their own: as they come they are slices of the read buffer of their connection,
/// which would stay as long as they do.
fn detached(mut headers: HeaderMap) -> HeaderMap {
    for value in headers.values_mut() {
        if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = copy;
        }
    }
    headers
}

impl Exchange {
    /// The next bytes of the body; `None` at its clean end. Cancel-safe.
    pub async fn read(&mut self) -> Result<Option<Bytes>, ReadFault> {
        let next = self.response.chunk().await.map_err(ReadFault)?;
        self.last.clone_from(&next);
        Ok(next)
    }
}

impl ReadFault {
    /// The error of a body that broke off, with what is known of the cause.
    pub fn attach(self, error: Error) -> Error {
        error.with_source(self.0.without_url())
    }
}

fn send_error(error: reqwest::Error, url: &Address, kind: &EndpointKind) -> Error {
    let error = error.without_url();
    let cause = root_cause(&error);
    let at = url.display();
    let setting = kind.url_setting;
    let (kind, message) = if error.is_timeout() {
        let message = format!("{at} did not take the connection in time. Is the address right?");
        (ErrorKind::Timeout, message)
    } else if error.is_connect() {
        let message = format!(
            "{at} cannot be reached: {cause}. Check that the server runs and that the base URL \
             ({setting}) is right"
        );
        (ErrorKind::Transport, message)
    } else if error.is_builder() {
        (
            ErrorKind::Configuration,
            format!("no request can be made to {at}: {cause}"),
        )
    } else {
        (
            ErrorKind::Transport,
            format!("the exchange with {at} broke off: {cause}"),
        )
    };
    Error::new(kind, message).with_source(error)
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn StdError = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    cause.to_string()
}

impl Head {
    /// A header's text. Names are lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the status is a good one.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The provider's id of the request, under the names that providers have for it.
    pub fn request_id(&self) -> Option<&str> {
        const NAMES: &[&str] = &[
            "x-request-id",
            "request-id",
            "apim-request-id",
            "x-ms-request-id",
            "x-amzn-requestid",
            "x-ds-trace-id",
            "x-goog-request-id",
            "cf-ray",
        ];
        let rank = |name: &str| NAMES.iter().position(|of| *of == name);
        let ranked = self
            .texts()
            .filter_map(|(name, id)| Some((rank(name)?, id)));
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, id)| id)
    }

    /// The headers that are texts.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.headers.iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    #[cfg(test)]
    pub(crate) fn of(status: u16, headers: &[(&'static str, &str)]) -> Self {
        let headers = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        Self {
            status,
            headers: headers.collect(),
        }
    }
}

/// An address that can be asked.
#[derive(Clone)]
pub struct Address(Url);

impl Address {
    /// Reads a base URL: `http` or `https`, with a host. The paths of the endpoint itself may stand at
    /// its end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, kind: &EndpointKind) -> Result<Self> {
        let fault = |what: &str| {
            Error::configuration(format!(
                "the base URL is not usable: {what}. It looks like {}",
                kind.url_examples
            ))
        };
        let mut url = Url::parse(text.trim()).map_err(|error| fault(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault("it must begin with http:// or https://"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let inner = kind.paths.iter().find_map(|end| path.strip_suffix(end));
        let path = inner.unwrap_or(path).to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The address of a path below this one.
    pub fn join(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        Self(url)
    }

    /// The same address with a query parameter.
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        self.0.query_pairs_mut().append_pair(name, value);
        self
    }

    /// The host, in lower case.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or("")
    }

    /// The port, where it is not the scheme's own.
    pub fn port(&self) -> Option<u16> {
        self.0.port()
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The address as it may be told: without user, password and query.
    pub fn display(&self) -> String {
        let mut url = self.0.clone();
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}
