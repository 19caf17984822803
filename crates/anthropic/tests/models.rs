//! The models of an endpoint: page by page, of the same type as those of other providers.

use raf_anthropic::{AnthropicChatClient, AnthropicOptions, Dialect};
use raf_core::ErrorKind;
use raf_testing::{HttpResponse, HttpServer};
use serde_json::{Value, json};

fn client(server: &HttpServer) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_base_url(server.url())
        .with_api_key("sk-ant-secret")
        .with_model("claude-b");
    AnthropicChatClient::new(options).expect("options that work")
}

fn page(ids: &[&str], has_more: bool) -> HttpResponse {
    let model = |id: &&str| json!({"type": "model", "id": id, "display_name": id.to_uppercase()});
    let data: Vec<Value> = ids.iter().map(model).collect();
    let body =
        json!({"data": data, "has_more": has_more, "first_id": ids.first(), "last_id": ids.last()});
    HttpResponse::json(200, &body)
}

fn paths(server: &HttpServer) -> Vec<String> {
    server
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect()
}

#[tokio::test]
async fn models_are_listed_page_by_page() {
    let server = HttpServer::start([
        page(&["claude-c", "claude-b"], true),
        page(&["claude-a"], false),
    ]);
    let models = client(&server).list_models().await.expect("a list");
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["claude-c", "claude-b", "claude-a"]);
    assert_eq!(models[0].display_name.as_deref(), Some("CLAUDE-C"));
    let expect = [
        "/v1/models?limit=1000",
        "/v1/models?limit=1000&after_id=claude-b",
    ];
    assert_eq!(paths(&server), expect);
    let request = &server.requests()[0];
    assert_eq!(request.method, "GET");
    assert_eq!(request.header("x-api-key"), Some("sk-ant-secret"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}

/// A server that says for ever that there is more, with or without going on, must not hold a caller.
#[tokio::test]
async fn a_list_without_end_ends() {
    let server = HttpServer::start_with(|_| page(&["claude-a"], true));
    let models = client(&server).list_models().await.expect("a list");
    assert_eq!(models.len(), 2);
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = HttpServer::start_with(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        page(&[&format!("claude-{number}")], true)
    });
    let models = client(&server).list_models().await.expect("a list");
    assert_eq!(models.len(), 20);
}

#[tokio::test]
async fn an_endpoint_is_checked_in_words() {
    let server = HttpServer::start([page(&["claude-b"], false), page(&["claude-x"], false)]);
    let health = client(&server).check().await.expect("it answers");
    assert!(health.is_good(), "{health}");
    let health = client(&server).check().await.expect("it answers");
    assert!(
        health
            .to_string()
            .contains("does not list the model 'claude-b'"),
        "{health}"
    );

    let missing = json!({"type": "error", "error": {"type": "not_found_error", "message": "no"}});
    let refused =
        json!({"type": "error", "error": {"type": "authentication_error", "message": "no"}});
    let server = HttpServer::start([
        HttpResponse::json(404, &missing),
        HttpResponse::json(401, &refused),
    ]);
    let health = client(&server).check().await.expect("it answers");
    assert_eq!(health.models, None);
    assert!(
        health.to_string().contains("the part before /v1/messages"),
        "{health}"
    );
    let error = client(&server)
        .check()
        .await
        .expect_err("the key is refused");
    assert_eq!(error.kind(), ErrorKind::Authentication);
}

#[tokio::test]
async fn clouds_list_their_models_elsewhere() {
    for dialect in ["bedrock", "vertex"] {
        let server = HttpServer::start([]);
        let options = AnthropicOptions::new()
            .with_base_url(server.url())
            .with_dialect(Dialect::named(dialect).expect("it is known"));
        let client = AnthropicChatClient::new(options).expect("options that work");
        let error = client.list_models().await.expect_err("no list");
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(server.requests().is_empty());
    }
}
