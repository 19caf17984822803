//! Requests that are signed: each by itself, over what is really sent, and without telling the signature.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt, Dialect,
    IRequestSigner, UnsignedRequest,
};
use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage, Error, ErrorKind, Result};
use raf_testing::{HttpRequest, HttpResponse, HttpServer};
use serde_json::{Value, json};

/// Signs with a number, as a cloud signs over a time, and writes down what it saw.
#[derive(Clone, Debug, Default)]
struct Signer(Arc<Mutex<Vec<(String, String, Value)>>>);

#[async_trait]
impl IRequestSigner for Signer {
    async fn sign(&self, request: UnsignedRequest<'_>) -> Result<Vec<(String, String)>> {
        assert!(
            request
                .headers
                .contains(&("content-type", "application/json"))
        );
        let body = serde_json::from_slice(request.body).expect("the body that is sent");
        let mut seen = self.0.lock().expect("no test panics here");
        seen.push((request.method.to_owned(), request.url.to_owned(), body));
        let number = seen.len();
        Ok(vec![
            (
                "authorization".to_owned(),
                format!("AWS4-HMAC-SHA256 Credential=secret-{number}"),
            ),
            ("x-amz-date".to_owned(), format!("20260101T00000{number}Z")),
        ])
    }
}

fn answer(stop_reason: &str) -> HttpResponse {
    HttpResponse::json(
        200,
        &json!({
            "type": "message", "id": "msg_1", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "Hello"}],
            "stop_reason": stop_reason, "usage": {"input_tokens": 1, "output_tokens": 1},
        }),
    )
}

fn client(server: &HttpServer, signer: impl IRequestSigner + 'static) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_base_url(server.url())
        .with_dialect(Dialect::named("anthropic").expect("it is known"))
        .with_model("m")
        .with_streaming(false)
        .with_request_signer(signer);
    AnthropicChatClient::new(options).expect("options that work")
}

#[tokio::test]
async fn each_request_of_a_run_is_signed_over_what_is_sent() {
    // The server pauses the turn once: the run makes a second request.
    let server = HttpServer::start([answer("pause_turn"), answer("end_turn")]);
    let signer = Signer::default();
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = AnthropicRunOptions::new().with_server_tools([search]);
    let options = ChatClientRunOptions::new().with_anthropic(own);
    let asked = [ChatMessage::user("Hi")];
    let client = client(&server, signer.clone());
    client
        .get_response(&asked, options)
        .await
        .expect("an answer");
    let sent = server.requests();
    let seen = signer.0.lock().expect("no test panics here").clone();
    assert_eq!((sent.len(), seen.len()), (2, 2));
    for (number, (sent, (method, url, body))) in sent.iter().zip(&seen).enumerate() {
        assert_eq!(*method, sent.method);
        assert_eq!(*url, format!("{}{}", server.url(), sent.path));
        assert_eq!(*body, sent.json());
        let name = |header: &str| {
            HttpRequest::header(sent, header)
                .unwrap_or_default()
                .to_owned()
        };
        let credential = format!("AWS4-HMAC-SHA256 Credential=secret-{}", number + 1);
        assert_eq!(name("authorization"), credential);
        assert_eq!(name("x-amz-date"), format!("20260101T00000{}Z", number + 1));
    }
}

#[tokio::test]
async fn an_error_does_not_repeat_what_the_signer_added() {
    let words = "bad signature: AWS4-HMAC-SHA256 Credential=secret-1 (secret-1)";
    let body =
        json!({"type": "error", "error": {"type": "authentication_error", "message": words}});
    let server = HttpServer::start([HttpResponse::json(401, &body)]);
    let error = client(&server, Signer::default()).get_text("Hi").await;
    let error = error.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Authentication);
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("bad signature"), "{shown}");
    assert!(!shown.contains("secret-1"), "{shown}");
}

/// Has no credentials.
#[derive(Debug)]
struct Nothing;

#[async_trait]
impl IRequestSigner for Nothing {
    async fn sign(&self, _: UnsignedRequest<'_>) -> Result<Vec<(String, String)>> {
        Err(Error::configuration("no credentials were found"))
    }
}

#[tokio::test]
async fn what_cannot_be_signed_is_not_sent() {
    let server = HttpServer::start([answer("end_turn")]);
    let error = client(&server, Nothing).get_text("Hi").await;
    let error = error.expect_err("it is not signed");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("no credentials were found"));
    assert!(server.requests().is_empty());
}
