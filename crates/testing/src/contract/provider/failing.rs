//! Laws of what a provider makes of failures.

use std::time::Duration;

use futures::StreamExt;
use raf_core::{AgentResponseUpdate, Error, ErrorKind};
use serde_json::json;

use super::{SPLITS, Subject, endpoint, respond, stream};
use crate::{HttpResponse, HttpServer, Reply};

async fn failure(subject: &Subject, base_url: &str) -> Error {
    let response = respond(subject, base_url).await;
    response.expect_err("it must not succeed")
}

fn base_url_of(server: &HttpServer) -> String {
    format!("{}/v1", server.url())
}

/// An error object in the middle ends the stream; what was said until then is kept. (A whole reply
/// fails as a whole.)
pub async fn an_error_within_the_stream_is_the_last_item(subject: &Subject) {
    for split in SPLITS {
        let error = Error::new(ErrorKind::Server, "the engine broke").with_code("server_error");
        let endpoint = endpoint(subject, [Reply::text("so far").error(error)], split);
        let items: Vec<_> = stream(subject, &endpoint.url()).await.collect().await;
        let Some(Err(error)) = items.last() else {
            panic!("the last item is {:?}", items.last())
        };
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.message().contains("the engine broke"), "{error}");
        assert_eq!(items.iter().filter(|item| item.is_err()).count(), 1);
        let is_streamed = endpoint.http_requests()[0].json()["stream"] == true;
        let said = AgentResponseUpdate::text("so far");
        let is_kept = items.iter().flatten().any(|update| *update == said);
        assert_eq!(is_kept, is_streamed, "what was said before the error");
    }
}

/// A connection that breaks within the reply is an error, not an end.
pub async fn a_cut_stream_is_an_error(subject: &Subject) {
    let reply = Reply::text("so far").open_call("c1", "t", "{\"a\": ").cut();
    let endpoint = endpoint(subject, [reply], None);
    let error = failure(subject, &endpoint.url()).await;
    let kinds = [ErrorKind::TruncatedStream, ErrorKind::Transport];
    assert!(kinds.contains(&error.kind()), "{error}");
    assert!(error.is_temporary());
}

/// A body that ends in order, yet before the reply has, is an error too.
pub async fn a_stream_without_its_end_is_an_error(subject: &Subject) {
    let reply = Reply::text("so far").cut_cleanly();
    let endpoint = endpoint(subject, [reply], None);
    let error = failure(subject, &endpoint.url()).await;
    assert_eq!(error.kind(), ErrorKind::TruncatedStream, "{error}");
}

/// Statuses become kinds, with status, wait and request id kept; the provider does not retry.
pub async fn statuses_map_to_kinds(subject: &Subject) {
    let cases = [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Authentication),
        (403, ErrorKind::Permission),
        (404, ErrorKind::NotFound),
        (413, ErrorKind::PayloadTooLarge),
        (429, ErrorKind::RateLimit),
        (500, ErrorKind::Server),
    ];
    for (status, kind) in cases {
        let body = json!({"error": {"message": "what went wrong", "type": "t", "code": null}});
        let response = HttpResponse::json(status, &body)
            .header("retry-after", "7")
            .header("x-request-id", "req-1");
        let server = HttpServer::start([response]);
        let error = failure(subject, &base_url_of(&server)).await;
        assert_eq!(error.kind(), kind, "for {status}: {error}");
        assert_eq!(error.status(), Some(status));
        assert!(error.message().contains("what went wrong"), "{error}");
        assert_eq!(error.request_id(), Some("req-1"), "for {status}");
        if status == 429 {
            assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
            assert!(error.is_temporary());
        }
        assert_eq!(server.requests().len(), 1, "{status} was retried");
    }
}

/// A page of a proxy instead of JSON is judged by its status, and named as such where that is 200.
pub async fn a_body_that_is_not_json_maps_to_a_kind(subject: &Subject) {
    let page = |status| {
        HttpResponse::new(status)
            .header("content-type", "text/html")
            .body("<html><body>Bad gateway</body></html>")
    };
    let server = HttpServer::start([page(502), page(200)]);
    let error = failure(subject, &base_url_of(&server)).await;
    assert_eq!(
        (error.kind(), error.status()),
        (ErrorKind::Server, Some(502))
    );
    let error = failure(subject, &base_url_of(&server)).await;
    let kinds = [ErrorKind::Protocol, ErrorKind::TruncatedStream];
    assert!(kinds.contains(&error.kind()), "{error}");
}

/// Nobody listens: the error is of the transport, and names where it went.
pub async fn a_refused_connection_is_an_error_that_says_so(subject: &Subject) {
    let base_url = format!("{}/v1", HttpServer::refused_url());
    let error = failure(subject, &base_url).await;
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    assert!(error.is_temporary());
}
