//! Errors as an OpenAI-compatible endpoint reports them.

use raf_core::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::server::HttpResponse;

/// An error response of this status.
pub(in crate::endpoint) fn response(status: u16, code: &str, message: &str) -> HttpResponse {
    let body = json!({"error": {
        "message": message,
        "type": code,
        "param": null,
        "code": code,
    }});
    HttpResponse::json(status, &body)
}

/// The response that means this error.
pub(in crate::endpoint) fn of(error: &Error) -> HttpResponse {
    let status = error.status().unwrap_or_else(|| status(error.kind()));
    let mut response = HttpResponse::json(status, &object(error));
    if let Some(wait) = error.retry_after() {
        response = response.header("retry-after", wait.as_secs().to_string());
    }
    if let Some(id) = error.request_id() {
        response = response.header("x-request-id", id);
    }
    response
}

/// The error object, as a body or within a stream.
pub(in crate::endpoint) fn object(error: &Error) -> Value {
    json!({"error": {
        "message": error.message(),
        "type": code(error),
        "param": null,
        "code": code(error),
    }})
}

fn code(error: &Error) -> &str {
    error.code().unwrap_or_else(|| match error.kind() {
        ErrorKind::Authentication => "invalid_api_key",
        ErrorKind::NotFound => "model_not_found",
        ErrorKind::RateLimit => "rate_limit_exceeded",
        ErrorKind::Quota => "insufficient_quota",
        ErrorKind::ContextLength => "context_length_exceeded",
        ErrorKind::ContentFilter => "content_filter",
        ErrorKind::InvalidRequest => "invalid_request_error",
        kind => kind.as_str(),
    })
}

fn status(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::Authentication => 401,
        ErrorKind::Permission => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::Timeout => 408,
        ErrorKind::PayloadTooLarge => 413,
        ErrorKind::RateLimit | ErrorKind::Quota => 429,
        ErrorKind::ContextLength | ErrorKind::ContentFilter | ErrorKind::InvalidRequest => 400,
        ErrorKind::Overloaded => 503,
        _ => 500,
    }
}
