//! Errors as an endpoint of the Messages API reports them.

use raf_core::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::server::HttpResponse;

/// An error response of this status.
pub(super) fn response(status: u16, code: &str, message: &str) -> HttpResponse {
    HttpResponse::json(status, &envelope(code, message, None))
}

/// The response that means this error.
pub(super) fn of(error: &Error) -> HttpResponse {
    let status = error.status().unwrap_or_else(|| status(error.kind()));
    let mut response = HttpResponse::json(status, &object(error));
    if let Some(wait) = error.retry_after() {
        response = response.header("retry-after", wait.as_secs().to_string());
    }
    if let Some(id) = error.request_id() {
        response = response.header("request-id", id);
    }
    response
}

/// The error object, as a body or as an event.
pub(super) fn object(error: &Error) -> Value {
    envelope(code(error), error.message(), error.request_id())
}

fn envelope(code: &str, message: &str, request_id: Option<&str>) -> Value {
    json!({
        "type": "error",
        "error": {"type": code, "message": message},
        "request_id": request_id,
    })
}

/// The type of the error; where the API tells a kind by its words alone, the kind's own.
fn code(error: &Error) -> &str {
    error.code().unwrap_or_else(|| match error.kind() {
        ErrorKind::Authentication => "authentication_error",
        ErrorKind::Permission => "permission_error",
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::RateLimit => "rate_limit_error",
        ErrorKind::Quota => "billing_error",
        ErrorKind::ContextLength => "context_length_exceeded",
        ErrorKind::ContentFilter => "content_filter",
        ErrorKind::InvalidRequest => "invalid_request_error",
        ErrorKind::PayloadTooLarge => "request_too_large",
        ErrorKind::Overloaded => "overloaded_error",
        ErrorKind::Timeout => "timeout_error",
        ErrorKind::Server => "api_error",
        kind => kind.as_str(),
    })
}

fn status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Authentication => 401,
        ErrorKind::Quota => 402,
        ErrorKind::Permission => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::PayloadTooLarge => 413,
        ErrorKind::RateLimit => 429,
        ErrorKind::ContextLength | ErrorKind::ContentFilter | ErrorKind::InvalidRequest => 400,
        ErrorKind::Timeout => 504,
        ErrorKind::Overloaded => 529,
        _ => 500,
    }
}
