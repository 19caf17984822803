//! The errors that a newcomer meets with a whole stack: each has its kind and says what to do, and none
//! shows the key.

use raf_core::{
    ChatClientBuilder, ChatClientExt, ChatClientRunOptions, ChatMessage, Error, ErrorKind, Result,
    ToolDeclaration,
};
use raf_framework::{ChatClientBuilderExt, IntoTools};
use raf_openai::{OpenAiChatClient, OpenAiOptions};
use raf_testing::{HttpResponse, HttpServer};
use raf_tools::{FunctionTool, dynamic_tool, tool_fn};
use serde_json::json;

const KEY: &str = "hidden-key-9";

#[track_caller]
fn check(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    assert!(!format!("{text} {error:?}").contains(KEY), "{error:?}");
}

fn tool(name: &str) -> FunctionTool {
    tool_fn(name, "Says what time it is.", |(): ()| async { "noon" })
}

async fn ask(options: OpenAiOptions) -> Result<String> {
    let client = OpenAiChatClient::new(options)?
        .into_builder()
        .logging()
        .function_invoking([tool("now")])
        .build()?;
    assert!(!format!("{client:?}").contains(KEY), "{client:?}");
    client.get_text("What time is it?").await
}

fn options(base_url: &str) -> OpenAiOptions {
    OpenAiOptions::new()
        .with_base_url(base_url)
        .with_api_key(KEY)
        .with_model("small")
}

async fn answered(status: u16, body: serde_json::Value) -> Error {
    let server = HttpServer::start([HttpResponse::json(status, &body)]);
    let base_url = format!("{}/v1", server.url());
    ask(options(&base_url)).await.expect_err("it is refused")
}

#[test]
fn no_key_and_no_address() {
    let error = OpenAiOptions::from_variables(|_| None).unwrap_err();
    let words = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"];
    check(&error, ErrorKind::Configuration, &words);
}

#[tokio::test]
async fn no_model() {
    let error = ask(OpenAiOptions::new().with_api_key(KEY))
        .await
        .unwrap_err();
    let words = ["OPENAI_MODEL", "with_model"];
    check(&error, ErrorKind::Configuration, &words);
}

#[tokio::test]
async fn an_address_that_is_none() {
    let error = ask(options("localhost:1234/v1")).await.unwrap_err();
    let words = ["base URL", "http://localhost:11434/v1"];
    check(&error, ErrorKind::Configuration, &words);
}

#[tokio::test]
async fn a_connection_that_is_refused() {
    let url = HttpServer::refused_url();
    let error = ask(options(&format!("{url}/v1"))).await.unwrap_err();
    check(&error, ErrorKind::Transport, &[&url, "OPENAI_BASE_URL"]);
    assert!(error.is_temporary());
}

#[tokio::test]
async fn an_address_that_leads_elsewhere() {
    let server = HttpServer::start([HttpResponse::new(404).body("<html>not here</html>")]);
    let error = ask(options(&server.url())).await.unwrap_err();
    check(&error, ErrorKind::NotFound, &["base URL", "/v1"]);
}

#[tokio::test]
async fn a_key_that_is_refused() {
    let said = format!("Incorrect API key provided: {KEY}.");
    let body = json!({"error": {"message": said, "code": "invalid_api_key"}});
    let error = answered(401, body).await;
    let words = ["Incorrect API key", "OPENAI_API_KEY", "status 401"];
    check(&error, ErrorKind::Authentication, &words);
    assert_eq!(error.code(), Some("invalid_api_key"));
}

#[tokio::test]
async fn a_model_that_is_unknown() {
    let said = "The model `small` does not exist";
    let body = json!({"error": {"message": said, "code": "model_not_found"}});
    let error = answered(404, body).await;
    check(&error, ErrorKind::NotFound, &["'small'", "Check the model"]);
    // The terminal error of a run carries what was done: nothing yet.
    assert!(error.leg().expect("it has the leg").messages.is_empty());
}

fn builder() -> ChatClientBuilder {
    OpenAiChatClient::new(options("http://localhost:9/v1"))
        .expect("the options are good")
        .into_builder()
}

fn build(tools: impl IntoTools) -> Error {
    let built = builder().function_invoking(tools).build();
    built.expect_err("the tools are refused")
}

#[test]
fn a_tool_that_is_there_twice() {
    let error = build([tool("now"), tool("later"), tool("now")]);
    check(&error, ErrorKind::Configuration, &["'now'", "Rename one"]);
}

#[test]
fn a_tool_name_that_providers_refuse() {
    let error = build([tool("what time")]);
    check(
        &error,
        ErrorKind::Configuration,
        &["'what time'", "1 to 64"],
    );
}

#[test]
fn a_schema_that_is_none() {
    let bad = json!({"type": "object", "properties": {"a": {"type": "strnig"}}});
    let declaration = ToolDeclaration::new("now", "").with_parameters(&bad);
    let error = build([dynamic_tool(declaration, |_, _| async {})]);
    check(
        &error,
        ErrorKind::Configuration,
        &["'now'", "schema", "strnig"],
    );
}

#[tokio::test]
async fn an_empty_conversation() {
    let client = builder().function_invoking([tool("now")]).build().unwrap();
    let nothing: [ChatMessage; 0] = [];
    let error = client
        .get_response(&nothing, ChatClientRunOptions::new())
        .await
        .unwrap_err();
    check(&error, ErrorKind::Misuse, &["at least one message"]);
}

#[test]
fn two_loops() {
    let error = builder()
        .function_invoking([tool("now")])
        .function_invoking([tool("later")])
        .build()
        .unwrap_err();
    check(&error, ErrorKind::Configuration, &["loop"]);
}
