//! The errors that a newcomer meets: each says what, where and what to do.

use futures::StreamExt;
use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, Error, ErrorKind, FinishReason, IChatClient,
};
use raf_openai::{OpenAiChatClient, OpenAiOptions};
use raf_testing::wire::{Cut, End, WireReply, serve};

fn reply(status: u16, body: &str) -> WireReply {
    WireReply {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        reads: vec![body.as_bytes().to_vec()],
        cut: Cut::AsWritten,
        end: End::Eof,
    }
}

async fn ask(options: OpenAiOptions) -> Result<raf_core::AgentResponse, Error> {
    let client = OpenAiChatClient::new(options.with_model("small"))?;
    client
        .get_response(&[ChatMessage::user("Hello")], ChatClientRunOptions::new())
        .await
}

async fn ask_server(answer: WireReply) -> Result<raf_core::AgentResponse, Error> {
    let (url, serving) = serve(answer).await;
    let options = OpenAiOptions::new()
        .with_base_url(url)
        .with_api_key("hidden-key-9");
    tokio::select! {
        response = ask(options) => response,
        () = serving => unreachable!("the server serves for ever"),
    }
}

#[tokio::test]
async fn an_answer() {
    let body = concat!(
        "data: {\"id\":\"r1\",\"model\":\"small-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}\n\n",
        "data: [DONE]\n\n",
    );
    let response = ask_server(reply(200, body)).await.unwrap();
    assert_eq!(response.text(), "Hi");
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.usage.total_tokens, Some(4));
    assert_eq!(response.metadata.model.as_deref(), Some("small-1"));
}

#[test]
fn no_key() {
    let error = OpenAiOptions::from_variables(|_| Some(" ".to_owned())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
    assert!(error.message().contains("OPENAI_BASE_URL"), "{error}");
}

#[test]
fn a_local_server_needs_no_key() {
    let local =
        |name: &str| (name == "OPENAI_BASE_URL").then(|| "http://localhost:11434/v1/".to_owned());
    let client = OpenAiChatClient::new(OpenAiOptions::from_variables(local).unwrap()).unwrap();
    assert_eq!(client.dialect().name(), "ollama");
}

#[test]
fn wrong_base_urls() {
    for url in ["localhost:1234", "api.openai.com/v1", "ftp://x/v1", ""] {
        let error = OpenAiChatClient::new(OpenAiOptions::new().with_base_url(url)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{url}");
        assert!(
            error.message().contains("http://localhost:11434/v1"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn no_model() {
    let client = OpenAiChatClient::new(OpenAiOptions::new().with_api_key("k")).unwrap();
    let messages = [ChatMessage::user("Hello")];
    let error = client
        .run(&messages, ChatClientRunOptions::new())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("OPENAI_MODEL"), "{error}");
}

#[tokio::test]
async fn a_connection_that_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let error = ask(OpenAiOptions::new().with_base_url(&url))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.is_temporary());
    assert!(error.message().contains(&url), "{error}");
    assert!(error.message().contains("OPENAI_BASE_URL"), "{error}");
    assert!(
        error.message().to_lowercase().contains("refused"),
        "{error}"
    );
}

#[tokio::test]
async fn a_key_that_is_refused() {
    let body = r#"{"error":{"message":"Incorrect API key provided: hidden-key-9."}}"#;
    let error = ask_server(reply(401, body)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert_eq!(error.status(), Some(401));
    assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
    assert!(
        !format!("{error} {error:?}").contains("hidden-key-9"),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_model_that_is_unknown() {
    let body =
        r#"{"error":{"message":"The model `small` does not exist","code":"model_not_found"}}"#;
    let error = ask_server(reply(404, body)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.code(), Some("model_not_found"));
    assert!(error.message().contains("'small'"), "{error}");
}

#[tokio::test]
async fn a_page_where_an_api_should_be() {
    let error = ask_server(reply(200, "<!doctype html><html></html>"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("base URL"), "{error}");
}

#[test]
fn no_runtime() {
    let client = OpenAiChatClient::new(OpenAiOptions::new().with_model("small")).unwrap();
    let messages = [ChatMessage::user("Hello")];
    let mut run = client.run(&messages, ChatClientRunOptions::new());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(updates) = run.as_mut().poll(&mut context) else {
        panic!("a run starts without waiting");
    };
    let mut updates = updates.unwrap();
    let std::task::Poll::Ready(Some(Err(error))) = updates.poll_next_unpin(&mut context) else {
        panic!("an error at once");
    };
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("tokio"), "{error}");
}

#[test]
fn a_runtime_without_timers() {
    let client = OpenAiChatClient::new(OpenAiOptions::new().with_model("small")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let messages = [ChatMessage::user("Hello")];
        let run = client.run(&messages, ChatClientRunOptions::new());
        let Some(Err(error)) = run.await.unwrap().next().await else {
            panic!("an error at once");
        };
        let listed = client.list_models().await.unwrap_err();
        for error in [error, listed] {
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains("enable_all"), "{error}");
        }
    });
}

#[test]
fn debug_shows_no_secret() {
    let options = OpenAiOptions::new()
        .with_api_key("hidden-key-9")
        .with_header("x-secret", "hidden-value-9")
        .with_base_url("http://user:hidden-word-9@localhost/v1?key=hidden-query-9");
    let client = OpenAiChatClient::new(options.clone()).unwrap();
    let shown = format!("{options:?} {client:?} {:?}", client.metadata());
    assert!(!shown.contains("hidden"), "{shown}");
}
