//! From what went wrong to the error that is returned: class, retry hint, and what to do.

pub(crate) mod envelope;
mod phrases;
mod redact;
pub(crate) mod retry_hint;

use std::sync::Arc;

use bytes::Bytes;
use raf_core::{Error, ErrorKind, RetryStatus};

use crate::error::envelope::WireError;
use crate::transport::Head;

/// Makes the errors of one exchange: knows where it goes and what must not be told on.
#[derive(Clone, Debug)]
pub(crate) struct Reporter(Arc<Exchange>);

struct Exchange {
    endpoint: String,
    model: String,
    secrets: Vec<String>,
    request: Bytes,
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
    pub(crate) fn new(
        endpoint: impl Into<String>,
        model: impl Into<String>,
        secrets: Vec<String>,
        request: Bytes,
    ) -> Self {
        Self(Arc::new(Exchange {
            endpoint: endpoint.into(),
            model: model.into(),
            secrets,
            request,
        }))
    }

    /// The error of a reply whose status is not a good one.
    pub(crate) fn http(&self, head: &Head, body: &[u8]) -> Error {
        let found = envelope::read_body(body);
        let status = head.status;
        if (300..400).contains(&status) {
            return self.redirect(head);
        }
        // A code inside that is a status of its own tells more than the one outside.
        let inner = found.status.unwrap_or(status);
        let kind = phrases::class(&found).unwrap_or_else(|| phrases::class_of_status(inner));
        let mut error = self.error(kind, &found).with_status(status);
        if let Some(wait) = retry_hint::from_headers(head) {
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
    pub(crate) fn in_band(&self, found: &WireError, request_id: Option<&str>) -> Error {
        let kind = phrases::class(found).unwrap_or_else(|| {
            found
                .status
                .map_or(ErrorKind::Server, phrases::class_of_status)
        });
        let error = self.error(kind, found);
        match (error.request_id(), request_id) {
            (None, Some(id)) => error.with_request_id(id),
            _ => error,
        }
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
            ErrorKind::Authentication => {
                "Check the API key (OPENAI_API_KEY, or OpenAiOptions::with_api_key) and that it \
                 belongs to this endpoint"
                    .to_owned()
            }
            ErrorKind::NotFound => format!(
                "Check the model '{}' and the base URL (it usually ends in /v1)",
                self.0.model
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
    pub(crate) fn protocol(&self, what: &str) -> Error {
        Error::new(ErrorKind::Protocol, format!("{} {what}", self.0.endpoint))
    }

    /// The reply holds nothing.
    pub(crate) fn empty(&self) -> Error {
        Error::new(
            ErrorKind::EmptyResponse,
            format!("{} sent a reply that holds nothing", self.0.endpoint),
        )
    }

    /// The stream ended before the reply did.
    pub(crate) fn truncated(&self) -> Error {
        Error::new(
            ErrorKind::TruncatedStream,
            format!(
                "the stream from {} ended before the reply did: neither a finish reason nor [DONE] \
                 came",
                self.0.endpoint
            ),
        )
    }

    /// A wait that was too long.
    pub(crate) fn timeout(&self, limit: &'static str, after: std::time::Duration) -> Error {
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
