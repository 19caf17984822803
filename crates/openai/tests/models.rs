//! The models of an endpoint are the same whichever of its protocols asks for them.

use raf_core::{ErrorKind, Result};
use raf_openai::{
    EndpointHealth, ModelInfo, OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient,
};
use raf_testing::{HttpResponse, HttpServer};
use serde_json::{Value, json};

type Asked = (Result<Vec<ModelInfo>>, Result<EndpointHealth>);

/// What both clients say of an endpoint that answers each question with this.
async fn asked(options: impl Fn(&str) -> OpenAiOptions, status: u16, body: &Value) -> Vec<Asked> {
    let server = HttpServer::start((0..4).map(|_| HttpResponse::json(status, body)));
    let chat = OpenAiChatClient::new(options(&server.url())).expect("options that work");
    let responses =
        OpenAiResponsesChatClient::new(options(&server.url())).expect("options that work");
    let asked = vec![
        (chat.list_models().await, chat.check().await),
        (responses.list_models().await, responses.check().await),
    ];
    let paths: Vec<String> = server
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert_eq!(paths.len(), 4);
    assert!(paths.iter().all(|path| *path == paths[0]), "{paths:?}");
    asked
}

fn plain(url: &str) -> OpenAiOptions {
    OpenAiOptions::new()
        .with_base_url(format!("{url}/v1"))
        .with_model("small")
}

#[tokio::test]
async fn both_protocols_list_the_models_of_their_endpoint() {
    let body = json!({"object": "list", "data": [
        {"id": "big", "object": "model", "owned_by": "x", "max_model_len": 4096},
        {"id": "small", "object": "model"},
    ]});
    for (listed, health) in asked(plain, 200, &body).await {
        let listed = listed.expect("a list");
        assert_eq!(
            (listed[0].id.as_str(), listed[1].id.as_str()),
            ("big", "small")
        );
        assert_eq!(listed[0].owned_by.as_deref(), Some("x"));
        assert_eq!(listed[0].context_length, Some(4096));
        let health = health.expect("it answers");
        assert!(health.is_good(), "{health}");
        assert_eq!(health.models, Some(listed));
    }
}

#[tokio::test]
async fn an_endpoint_that_lists_none_is_usable_and_one_that_refuses_the_key_is_not() {
    let body = json!({"error": {"message": "no"}});
    for (listed, health) in asked(plain, 404, &body).await {
        assert_eq!(listed.expect_err("no list").kind(), ErrorKind::NotFound);
        assert!(!health.expect("it answers").is_good());
    }
    for (listed, health) in asked(plain, 401, &body).await {
        assert_eq!(
            listed.expect_err("refused").kind(),
            ErrorKind::Authentication
        );
        assert_eq!(
            health.expect_err("refused").kind(),
            ErrorKind::Authentication
        );
    }
}

/// Azure lists models, but is asked for deployments: a name that is not in the list is none the worse.
#[tokio::test]
async fn a_deployment_need_not_be_among_the_models_of_azure() {
    let azure = |url: &str| OpenAiOptions::azure(url, "2024-10-21").with_model("my-deployment");
    let body = json!({"data": [{"id": "gpt-x"}]});
    for (listed, health) in asked(azure, 200, &body).await {
        assert_eq!(listed.expect("a list")[0].id, "gpt-x");
        assert!(health.expect("it answers").is_good());
    }
}
