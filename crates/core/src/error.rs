//! The one error type: a `Copy` kind, whether a retry can help, context, source, and what was done.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::response::LegSnapshot;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a value to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, unknown or revoked (HTTP 401).
    Authentication,
    /// The key is known, yet may not do this (HTTP 403).
    Permission,
    /// The model or the address does not exist (HTTP 404).
    NotFound,
    /// Too many requests or tokens in a span of time.
    RateLimit,
    /// Money or credit is used up; waiting does not help.
    Quota,
    /// The conversation is longer than the model's context.
    ContextLength,
    /// The provider refused the content.
    ContentFilter,
    /// The provider says that the request is wrong.
    InvalidRequest,
    /// The request is too large for the provider's door (HTTP 413).
    PayloadTooLarge,
    /// The provider failed (HTTP 5xx).
    #[serde(rename = "server_error")]
    Server,
    /// The provider is overloaded (HTTP 529, 503).
    Overloaded,
    /// No answer in time: to connect, to the first byte, or between two reads.
    Timeout,
    /// The stream ended without its end marker.
    TruncatedStream,
    /// The connection could not be made, or broke.
    Transport,
    /// What arrived is not what the protocol says, or is larger than a limit allows.
    Protocol,
    /// The reply holds nothing.
    EmptyResponse,
    /// The provider could not make a valid tool call of what the model wrote.
    ToolUseFailed,
    /// The run was cancelled by its token or flag.
    Cancelled,
    /// A store could not read or write.
    Store,
    /// Another run holds this session or this run.
    BusySession,
    /// Answers did not fit the pending requests, and nothing else came with them.
    ApprovalRefused,
    /// The request is wrong by itself: the caller's own mistake.
    Misuse,
    /// A setting is missing or wrong: key, address, model, tool set.
    Configuration,
}

impl ErrorKind {
    /// Whether the model or the way to it failed, not the caller, a tool or a store.
    pub const fn is_model(self) -> bool {
        !matches!(
            self,
            Self::Cancelled
                | Self::Store
                | Self::BusySession
                | Self::ApprovalRefused
                | Self::Misuse
                | Self::Configuration
        )
    }

    /// The kind as text: lower case, words joined by `_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Authentication => "authentication",
            Self::Permission => "permission",
            Self::NotFound => "not_found",
            Self::RateLimit => "rate_limit",
            Self::Quota => "quota",
            Self::ContextLength => "context_length",
            Self::ContentFilter => "content_filter",
            Self::InvalidRequest => "invalid_request",
            Self::PayloadTooLarge => "payload_too_large",
            Self::Server => "server_error",
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::TruncatedStream => "truncated_stream",
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::EmptyResponse => "empty_response",
            Self::ToolUseFailed => "tool_use_failed",
            Self::Cancelled => "cancelled",
            Self::Store => "store",
            Self::BusySession => "busy_session",
            Self::ApprovalRefused => "approval_refused",
            Self::Misuse => "misuse",
            Self::Configuration => "configuration",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the same request can succeed if it is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryStatus {
    /// It fails again.
    Permanent,
    /// It may succeed, after [`Error::retry_after`] if that is known.
    Temporary,
    /// It was retried until a retry layer gave up: an outer layer does not retry it once more.
    Persistent,
}

/// What any part of raf fails with.
///
/// Cheap to move (one pointer) and to clone. `Display` says what, where and what to do; it never
/// holds a key, a prompt or an argument. [`Error::leg`] holds what a run had done before it failed.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    retry: RetryStatus,
    retry_after: Option<Duration>,
    message: String,
    status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    context: Vec<(Cow<'static, str>, String)>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    leg: Option<Box<LegSnapshot>>,
}

impl Error {
    /// An error of a kind with a message that says what, where and what to do.
    ///
    /// The retry status starts as the kind suggests: temporary for rate limits, failing and
    /// overloaded servers, timeouts, cut streams, transport faults and empty replies.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retry = match kind {
            ErrorKind::RateLimit
            | ErrorKind::Server
            | ErrorKind::Overloaded
            | ErrorKind::Timeout
            | ErrorKind::TruncatedStream
            | ErrorKind::Transport
            | ErrorKind::EmptyResponse
            | ErrorKind::ToolUseFailed
            | ErrorKind::BusySession => RetryStatus::Temporary,
            _ => RetryStatus::Permanent,
        };
        Self(Box::new(Inner {
            kind,
            retry,
            retry_after: None,
            message: message.into(),
            status: None,
            code: None,
            request_id: None,
            context: Vec::new(),
            source: None,
            leg: None,
        }))
    }

    /// The caller's own mistake ([`ErrorKind::Misuse`]).
    pub fn misuse(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// A missing or wrong setting ([`ErrorKind::Configuration`]).
    pub fn configuration(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Configuration, message)
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether making the same request again can help.
    pub fn retry_status(&self) -> RetryStatus {
        self.0.retry
    }

    /// Whether the status is [`RetryStatus::Temporary`].
    pub fn is_temporary(&self) -> bool {
        self.0.retry == RetryStatus::Temporary
    }

    /// How long the provider asks to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The message alone, without kind and context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The HTTP status, where the error came with one.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The provider's own code or type of error.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The provider's id of the request, for a report to its support.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// Pairs that say where it happened.
    pub fn context(&self) -> &[(Cow<'static, str>, String)] {
        &self.0.context
    }

    /// What the leg had done until it failed: transcript, usage, open calls. Only on the terminal
    /// item of a run and on errors of the collecting helpers.
    pub fn leg(&self) -> Option<&LegSnapshot> {
        self.0.leg.as_deref()
    }

    /// Takes [`Error::leg`] out.
    pub fn take_leg(&mut self) -> Option<LegSnapshot> {
        self.0.leg.take().map(|leg| *leg)
    }

    /// Sets the retry status.
    pub fn with_retry(mut self, retry: RetryStatus) -> Self {
        self.0.retry = retry;
        self
    }

    /// Sets the wait before a retry.
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    /// Sets the HTTP status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Sets the provider's own code.
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Sets the provider's request id.
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into());
        self
    }

    /// Adds a pair that says where it happened. Values must hold no secret.
    pub fn with_context(
        mut self,
        key: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        self.0.context.push((key.into(), value.into()));
        self
    }

    /// Sets the error below this one.
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Attaches what the leg had done.
    pub fn with_leg(mut self, leg: LegSnapshot) -> Self {
        self.0.leg = Some(Box::new(leg));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind, self.0.message)?;
        let mut separator = " (";
        if let Some(status) = self.0.status {
            write!(f, "{separator}status {status}")?;
            separator = ", ";
        }
        if let Some(code) = &self.0.code {
            write!(f, "{separator}code {code}")?;
            separator = ", ";
        }
        if let Some(id) = &self.0.request_id {
            write!(f, "{separator}request id {id}")?;
            separator = ", ";
        }
        for (key, value) in &self.0.context {
            write!(f, "{separator}{key}: {value}")?;
            separator = ", ";
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// What `main` prints of an error that it returns: the words, and those of the errors below. The
/// fields by name are in the alternate form, `{:#?}`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            write!(f, "{self}")?;
            let mut below = StdError::source(self);
            while let Some(error) = below {
                write!(f, ": {error}")?;
                below = error.source();
            }
            return Ok(());
        }
        let mut debug = f.debug_struct("Error");
        debug
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("retry", &self.0.retry);
        if let Some(wait) = self.0.retry_after {
            debug.field("retry_after", &wait);
        }
        if let Some(status) = self.0.status {
            debug.field("status", &status);
        }
        if let Some(code) = &self.0.code {
            debug.field("code", code);
        }
        if let Some(id) = &self.0.request_id {
            debug.field("request_id", id);
        }
        if !self.0.context.is_empty() {
            debug.field("context", &self.0.context);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.field("leg", &self.0.leg.is_some()).finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|source| &**source as &(dyn StdError + 'static))
    }
}
