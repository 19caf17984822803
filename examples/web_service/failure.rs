//! What is told to a client that asked for what cannot be.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use raf_core::{Error, ErrorKind, RefusalReason};
use serde_json::json;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store has no such run.
    NoSuchRun,
    /// An answer does not fit what waits.
    Refused(RefusalReason),
    /// The framework says so.
    Framework(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Framework(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, error, message) = match self {
            Self::NoSuchRun => (
                StatusCode::NOT_FOUND,
                "no_such_run",
                "there is no such run, or it was forgotten".to_owned(),
            ),
            Self::Refused(reason) => (
                match reason {
                    RefusalReason::UnknownRequest => StatusCode::NOT_FOUND,
                    _ => StatusCode::CONFLICT,
                },
                reason.as_str(),
                "that answer does not fit what waits: nothing runs for it".to_owned(),
            ),
            Self::Framework(error) => {
                tracing::warn!(%error, "a request failed");
                let status = match error.kind() {
                    ErrorKind::BusySession => StatusCode::CONFLICT,
                    ErrorKind::Misuse => StatusCode::BAD_REQUEST,
                    ErrorKind::Store if error.is_temporary() => StatusCode::SERVICE_UNAVAILABLE,
                    kind if kind.is_model() => StatusCode::BAD_GATEWAY,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                // An error's words hold no secret; its source is for the log.
                (status, error.kind().as_str(), error.to_string())
            }
        };
        let body = json!({"error": error, "message": message});
        (status, Json(body)).into_response()
    }
}
