//! Laws of how a provider behaves: lazy, tidy, discreet.

use std::error::Error as _;

use futures::StreamExt;
use raf_core::{
    ChatClientRunOptions, ChatMessage, Error, ErrorKind, ToolApprovalResponse, ToolCall,
    ToolChoice, ToolDeclaration, ToolResult, collect,
};
use serde_json::json;

use super::{KEY, Subject, endpoint, question, respond, stream};
use crate::{HttpResponse, HttpServer, Reply};

/// Key, messages, tools and options stand in the request as they were given.
pub async fn the_request_carries_key_messages_and_options(subject: &Subject) {
    let endpoint = endpoint(subject, [Reply::text("ok")], None);
    let messages = [
        ChatMessage::system("be brief"),
        ChatMessage::user("go"),
        ChatMessage::assistant_calls([ToolCall::new("c1", "look", "{\"a\":1}")]),
        ChatMessage::tool(ToolResult::ok("c1", "seen")),
    ];
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let options = ChatClientRunOptions::new()
        .with_model("a-model")
        .with_temperature(0.5)
        .with_max_output_tokens(77)
        .with_tools([ToolDeclaration::new("look", "Looks.").with_parameters(&schema)])
        .with_tool_choice(ToolChoice::Required)
        .with_extra_body("x_extra", json!({"a": [1]}));
    let client = (subject.make)(&endpoint.url());
    let stream = client
        .run(&messages, options)
        .await
        .expect("it is a good request");
    collect(stream).await.expect("it ends well");
    let request = &endpoint.requests()[0];
    let lines = ["S:be brief", "U:go", "A:[c1]", "R(c1, ok: 'seen')"];
    assert_eq!(request.lines(), lines);
    let call = request.messages[2].tool_calls().next().cloned();
    assert_eq!(call, Some(ToolCall::new("c1", "look", "{\"a\":1}")));
    assert_eq!(request.options.model.as_deref(), Some("a-model"));
    assert_eq!(request.options.temperature, Some(0.5));
    assert_eq!(request.options.max_output_tokens, Some(77));
    assert_eq!(request.options.tool_choice, Some(ToolChoice::Required));
    assert_eq!(request.options.tools[0].parameters(), schema);
    assert_eq!(
        request.options.extra_body.get("x_extra"),
        Some(&json!({"a": [1]}))
    );
    let sent = &endpoint.http_requests()[0];
    let key_is_sent = sent.headers.iter().any(|(_, value)| value.contains(KEY));
    assert!(key_is_sent, "the key is in no header");
    assert!(!sent.path.contains(KEY) && !sent.text().contains(KEY));
}

/// The key is in no `Debug` and no error, not even where the server says it back.
pub async fn no_key_in_debug_or_errors(subject: &Subject) {
    let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}.")}});
    let server = HttpServer::start([HttpResponse::json(401, &body)]);
    let base_url = format!("{}/v1", server.url());
    let client = (subject.make)(&base_url);
    must_not_hold_the_key(&format!("{client:?}"));
    let error = respond(subject, &base_url)
        .await
        .expect_err("it was refused");
    must_be_discreet(&error);
    let refused = format!("{}/v1", HttpServer::refused_url());
    let error = respond(subject, &refused)
        .await
        .expect_err("nobody listens");
    must_be_discreet(&error);
}

fn must_be_discreet(error: &Error) {
    must_not_hold_the_key(&format!("{error} {error:?}"));
    let mut source = error.source();
    while let Some(below) = source {
        must_not_hold_the_key(&format!("{below} {below:?}"));
        source = below.source();
    }
}

fn must_not_hold_the_key(text: &str) {
    assert!(!text.contains(KEY), "the key is in {text}");
}

/// Making the stream does not even connect.
pub async fn nothing_is_sent_before_the_first_poll(subject: &Subject) {
    let server = HttpServer::start([]);
    let stream = stream(subject, &format!("{}/v1", server.url())).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    assert_eq!((server.connections(), server.requests().len()), (0, 0));
}

/// A consumer that leaves takes the request with it.
pub async fn dropping_the_stream_closes_the_connection(subject: &Subject) {
    let endpoint = endpoint(subject, [Reply::text("a").hang()], None);
    let mut stream = stream(subject, &endpoint.url()).await;
    tokio::select! {
        biased;
        () = endpoint.server().wait_for_requests(1) => {}
        () = async { while stream.next().await.is_some() {} } => panic!("it ended by itself"),
    }
    drop(stream);
    endpoint.server().wait_for_client_left(1).await;
}

/// After `None` comes `None`.
pub async fn none_after_the_end_for_ever(subject: &Subject) {
    let failing = Reply::text("a").error(Error::new(ErrorKind::Server, "down"));
    for reply in [Reply::text("a"), failing] {
        let endpoint = endpoint(subject, [reply], None);
        let mut stream = stream(subject, &endpoint.url()).await;
        while stream.next().await.is_some() {}
        for _ in 0..3 {
            assert!(stream.next().await.is_none(), "an item after the end");
        }
    }
}

/// Answers to approval requests are refused before anything is sent.
pub async fn resume_data_is_refused(subject: &Subject) {
    let endpoint = endpoint(subject, [], None);
    let answer = ToolApprovalResponse::approve("nobody-asked");
    let options = ChatClientRunOptions::new().with_tool_approval_responses([answer]);
    let refused = (subject.make)(&endpoint.url())
        .run(&question(), options)
        .await;
    let error = refused.err().expect("it must be refused");
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(endpoint.server().connections(), 0);
}

/// The provider says who it is and where, without the key.
pub async fn metadata_names_the_provider(subject: &Subject) {
    let endpoint = endpoint(subject, [], None);
    let metadata = (subject.make)(&endpoint.url()).metadata();
    assert!(metadata.provider.is_some(), "no provider in {metadata:?}");
    must_not_hold_the_key(&format!("{metadata:?}"));
}
