//! From what went wrong to the error that is returned: class, retry hint, and what to do.

mod envelope;
mod phrases;
mod redact;
mod retry_hint;
mod timestamp;

use std::sync::Arc;

use raf_core::{Error, ErrorKind, RetryStatus};

use crate::endpoint::EndpointKind;
use crate::transport::Head;

pub use envelope::{WireError, in_band, read_body, read_error};
pub use phrases::{ErrorSign, SignRow};
pub use redact::Said;
pub use retry_hint::{RateLimitHeaders, duration_text};

/// Makes the errors of one exchange: knows where it goes and what must not be told on.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter(Arc<Exchange>);

#[derive(Clone)]
struct Exchange {
    kind: &'static EndpointKind,
    endpoint: String,
    model: String,
    secrets: Vec<String>,
    request: Said,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Reporter {
    /// A reporter of an exchange with this endpoint; `request` holds what its messages said.
    pub fn new(
        kind: &'static EndpointKind,
        endpoint: impl Into<String>,
        model: impl Into<String>,
        secrets: Vec<String>,
        request: impl Into<Said>,
    ) -> Self {
        Self(Arc::new(Exchange {
            kind,
            endpoint: endpoint.into(),
            model: model.into(),
            secrets,
            request: request.into(),
        }))
    }

    /// The same, which keeps further secrets to itself.
    pub(crate) fn keeping(&self, secrets: &[String]) -> Self {
        if secrets.is_empty() {
            return self.clone();
        }
        let mut exchange = Exchange::clone(&self.0);
        // A server repeats the token rather than its scheme.
        let words = secrets
            .iter()
            .flat_map(|secret| secret.split([' ', ',', '=']));
        exchange.secrets.extend(secrets.iter().cloned());
        exchange.secrets.extend(words.map(str::to_owned));
        Self(Arc::new(exchange))
    }

    /// The error of a reply whose status is not a good one.
    pub fn http(&self, head: &Head, body: &[u8]) -> Error {
        let found = read_body(body);
        let status = head.status;
        if (300..400).contains(&status) {
            return self.redirect(head);
        }
        // A code inside that is a status of its own tells more than the one outside.
        let inner = found.status.unwrap_or(status);
        let kind = self
            .class(&found)
            .unwrap_or_else(|| phrases::class_of_status(inner));
        let mut error = self.error(kind, &found).with_status(status);
        if let Some(wait) = retry_hint::from_headers(head, self.0.kind.rate_limits) {
            error = error.with_retry_after(Some(wait));
        }
        if status == 409 {
            error = error.with_retry(RetryStatus::Temporary);
        }
        match retry_hint::should_retry(head) {
            Some(true) => error = error.with_retry(RetryStatus::Temporary),
            Some(false) => error = error.with_retry(RetryStatus::Permanent),
            None => {}
        }
        match head.request_id() {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }

    /// The error that a reply of a good status holds.
    pub fn in_band(&self, found: &WireError, request_id: Option<&str>) -> Error {
        let kind = self.class(found).unwrap_or_else(|| {
            let is_ours = |code: &String| code == "invalid_request_error";
            match found.status {
                Some(status) => phrases::class_of_status(status),
                None if found.codes.iter().any(is_ours) => ErrorKind::InvalidRequest,
                None => ErrorKind::Server,
            }
        });
        let error = self.error(kind, found);
        match (error.request_id(), request_id) {
            (None, Some(id)) => error.with_request_id(id),
            _ => error,
        }
    }

    /// The class by the endpoint's own signs, then by those that hold for all.
    fn class(&self, found: &WireError) -> Option<ErrorKind> {
        phrases::class(found, self.0.kind.signs)
    }

    fn error(&self, kind: ErrorKind, found: &WireError) -> Error {
        let secrets: Vec<&str> = self.0.secrets.iter().map(String::as_str).collect();
        let said = redact::clean(&found.message, &secrets, &self.0.request);
        let mut message = match said.trim() {
            "" => format!("{} answered with an error and no words", self.0.endpoint),
            said => format!("{} says: {said}", self.0.endpoint),
        };
        if let Some(advice) = self.advice(kind) {
            if !message.ends_with(['.', '!', '?']) {
                message.push('.');
            }
            message.push(' ');
            message.push_str(&advice);
        }
        let mut error = Error::new(kind, message);
        let wait = found
            .retry_after
            .or_else(|| retry_hint::from_message(&found.message));
        if error.is_temporary() && wait.is_some() {
            error = error.with_retry_after(wait);
        }
        if let Some(code) = found.codes.first() {
            error = error.with_code(redact::clean(code, &secrets, &self.0.request));
        }
        match &found.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }

    fn advice(&self, kind: ErrorKind) -> Option<String> {
        Some(match kind {
            ErrorKind::Authentication => format!(
                "Check the API key ({}) and that it belongs to this endpoint",
                self.0.kind.key_settings
            ),
            ErrorKind::NotFound => format!(
                "Check the model '{}' and the base URL ({})",
                self.0.model, self.0.kind.url_hint
            ),
            ErrorKind::Quota => "Waiting does not help: check plan and billing".to_owned(),
            ErrorKind::ContextLength => {
                "Shorten the conversation or the tool results, or take a model with more context"
                    .to_owned()
            }
            _ => return None,
        })
    }

    fn redirect(&self, head: &Head) -> Error {
        let to = head
            .get("location")
            .and_then(|location| location.split(['?', '#']).next())
            .unwrap_or("an unknown place");
        Error::new(
            ErrorKind::Protocol,
            format!(
                "{} redirects to {to}, which is not followed, so that the key is not sent there. \
                 Set the base URL to the final address",
                self.0.endpoint
            ),
        )
        .with_status(head.status)
    }

    /// What arrived is not what the protocol says.
    pub fn protocol(&self, what: &str) -> Error {
        Error::new(ErrorKind::Protocol, format!("{} {what}", self.0.endpoint))
    }

    /// An event that cannot be read. The same request may go better.
    pub fn garbled(&self) -> Error {
        self.protocol("sent an event that is no JSON")
            .with_retry(RetryStatus::Temporary)
    }

    /// A page for people came where JSON belongs.
    pub fn html_page(&self) -> Error {
        let hint = self.0.kind.url_hint;
        self.protocol(&format!(
            "answered with an HTML page: is the base URL right ({hint})?"
        ))
    }

    /// The reply holds nothing.
    pub fn empty(&self) -> Error {
        Error::new(
            ErrorKind::EmptyResponse,
            format!("{} sent a reply that holds nothing", self.0.endpoint),
        )
    }

    /// The stream ended before the reply did.
    pub fn truncated(&self) -> Error {
        Error::new(
            ErrorKind::TruncatedStream,
            format!(
                "the stream from {} ended before the reply did: {}",
                self.0.endpoint, self.0.kind.missing_end
            ),
        )
    }

    /// A wait that was too long.
    pub fn timeout(&self, limit: &'static str, after: std::time::Duration) -> Error {
        Error::new(
            ErrorKind::Timeout,
            format!(
                "{} was silent for longer than the timeout '{limit}' ({after:?}) allows",
                self.0.endpoint
            ),
        )
        .with_context("timeout", limit)
    }
}
