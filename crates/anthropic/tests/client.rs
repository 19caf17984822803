//! The client itself: where its settings come from, and what it never tells.

use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt,
};
use raf_core::{ChatClientRunOptions, ChatMessage, ErrorKind, IChatClient, collect};
use raf_testing::{HttpResponse, HttpServer};
use serde_json::json;

fn options(server: &HttpServer) -> AnthropicOptions {
    AnthropicOptions::new()
        .with_base_url(server.url())
        .with_api_key("house-key-0123456")
        .with_model("claude-test")
}

#[tokio::test]
async fn debug_shows_no_key_and_no_prompt() {
    let server = HttpServer::start([]);
    let options = options(&server).with_header("x-secret", "hidden");
    let shown = format!("{options:?}");
    let client = AnthropicChatClient::new(options).unwrap();
    for shown in [shown, format!("{client:?} {:?}", client.metadata())] {
        assert!(
            !shown.contains("house-key-0123456") && !shown.contains("hidden"),
            "{shown}"
        );
    }
    let tool = json!({"type": "mcp", "name": "tool", "authorization_token": "hidden"});
    let own = AnthropicRunOptions::new().with_server_tools([tool]);
    let shown = format!(
        "{own:?} {:?}",
        ChatClientRunOptions::new().with_anthropic(own.clone())
    );
    assert!(
        shown.contains("tool") && !shown.contains("hidden"),
        "{shown}"
    );
}

#[test]
fn settings_come_from_variables() {
    let with = |set: &'static [(&str, &str)]| {
        AnthropicOptions::from_variables(move |name| {
            let found = set.iter().find(|(of, _)| *of == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let error = with(&[("ANTHROPIC_API_KEY", " ")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("ANTHROPIC_BASE_URL"));
    for set in [
        &[("ANTHROPIC_API_KEY", "sk")][..],
        &[("ANTHROPIC_BASE_URL", "http://localhost:8080/v1")],
    ] {
        let client = AnthropicChatClient::new(with(set).unwrap()).unwrap();
        let asked = [ChatMessage::user("Hi")];
        let error = client.request_body(&asked, &ChatClientRunOptions::new());
        assert!(error.unwrap_err().message().contains("ANTHROPIC_MODEL"));
    }
}

#[tokio::test]
async fn errors_tell_neither_the_key_nor_what_was_asked() {
    let question = "What do horses dream of when nobody is there to ask them about it?";
    let words = format!("messages.0: '{question}' with key house-key-0123456 is not valid");
    let error = json!({"type": "invalid_request_error", "message": words});
    let body = json!({"type": "error", "error": error, "request_id": "req_1"});
    let server = HttpServer::start([HttpResponse::json(400, &body)]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let asked = [ChatMessage::user(question)];
    let updates = client.run(&asked, ChatClientRunOptions::new()).await;
    let error = collect(updates.unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.request_id(), Some("req_1"));
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains("horses") && !shown.contains("house-key"),
        "{shown}"
    );
    assert!(shown.contains("messages.0"), "{shown}");
}
