//! A request that failed is not sent again by the client: the server may have done what it was asked, and
//! whoever retries must know it.

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, Content, Error, IChatClient, MessageRole,
};
use raf_openai::{
    OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect,
    ResponsesRunOptionsExt,
};
use raf_testing::{HttpResponse, HttpServer};
use raf_wire::{Json, provider_part};
use serde_json::json;

fn options(server: &HttpServer) -> OpenAiOptions {
    OpenAiOptions::new()
        .with_base_url(format!("{}/v1", server.url()))
        .with_responses_dialect(ResponsesDialect::openai())
        .with_model("m")
}

/// What comes of a run, and how often the server was asked.
async fn asked(
    make: fn(OpenAiOptions) -> Box<dyn IChatClient>,
    options_of_run: ChatClientRunOptions,
    answer: &HttpResponse,
) -> (Error, usize) {
    let server = HttpServer::start([answer.clone(), answer.clone(), answer.clone()]);
    let client = make(options(&server));
    // The server holds all but the last message, where it holds anything.
    let mark = json!({"type": "response", "id": "resp_1"});
    let held = [
        Content::text("Hi."),
        provider_part("openai", &Json::from(&mark)),
    ];
    let messages = [
        ChatMessage::user("Hello"),
        ChatMessage::new(MessageRole::Assistant, held),
        ChatMessage::user("go"),
    ];
    let error = client.get_response(&messages, options_of_run).await;
    (error.expect_err("it fails"), server.requests().len())
}

fn chat(options: OpenAiOptions) -> Box<dyn IChatClient> {
    Box::new(OpenAiChatClient::new(options).expect("options that work"))
}

fn responses(options: OpenAiOptions) -> Box<dyn IChatClient> {
    Box::new(OpenAiResponsesChatClient::new(options).expect("options that work"))
}

#[tokio::test]
async fn a_request_that_failed_is_not_sent_again() {
    let failed = json!({"error": {"message": "down", "type": "server_error"}});
    let limited = json!({"error": {"message": "slow down", "type": "rate_limit_exceeded"}});
    let plain = ChatClientRunOptions::new;
    let goes_on = || plain().with_previous_response_id("resp_1");
    for (make, run) in [
        (chat as fn(_) -> _, plain()),
        (responses, plain()),
        (responses, plain().with_server_state(true)),
        (responses, goes_on()),
        (responses, goes_on().with_background(true)),
    ] {
        for answer in [
            HttpResponse::json(500, &failed),
            HttpResponse::json(503, &failed),
            HttpResponse::json(429, &limited),
            HttpResponse::events().abort(),
        ] {
            let (error, times) = asked(make, run.clone(), &answer).await;
            assert!(error.is_temporary(), "{error}");
            assert_eq!(times, 1, "{error}");
        }
    }
}

/// What a server holds alone cannot be sent again: without it the model would be asked something else. Where
/// the whole conversation is here, it is sent once (fi15).
#[tokio::test]
async fn what_a_response_held_that_is_gone_is_not_left_out_in_silence() {
    let gone = json!({"error": {
        "message": "Previous response with id 'resp_1' not found.",
        "type": "invalid_request_error",
        "code": "previous_response_not_found",
    }});
    let run = ChatClientRunOptions::new().with_previous_response_id("resp_1");
    let (error, times) = asked(responses, run, &HttpResponse::json(400, &gone)).await;
    assert_eq!(error.code(), Some("previous_response_not_found"));
    assert_eq!(times, 1);
}
