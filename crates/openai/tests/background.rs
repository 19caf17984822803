//! Background responses: taken up again where the stream broke off, asked for until they have ended.

use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, CancellationToken, ChatClientExt, ChatClientRunOptions,
    ChatMessage, Error, ErrorKind, IChatClient,
};
use raf_openai::{
    OpenAiOptions, OpenAiResponsesChatClient, ResponsesContinuation, ResponsesDialect,
    ResponsesRunOptionsExt,
};
use raf_testing::{HttpResponse, HttpServer};
use serde_json::{Value, json};

fn client(server: &HttpServer, streaming: bool) -> OpenAiResponsesChatClient {
    let options = OpenAiOptions::new()
        .with_base_url(format!("{}/v1", server.url()))
        .with_responses_dialect(ResponsesDialect::openai())
        .with_model("m")
        .with_streaming(streaming);
    OpenAiResponsesChatClient::new(options).expect("options that work")
}

async fn ask(
    server: &HttpServer,
    streaming: bool,
    options: ChatClientRunOptions,
) -> Result<AgentResponse, Error> {
    let messages = [ChatMessage::user("go")];
    client(server, streaming)
        .get_response(&messages, options)
        .await
}

fn in_background() -> ChatClientRunOptions {
    ChatClientRunOptions::new().with_background(true)
}

fn created() -> Value {
    json!({
        "type": "response.created",
        "sequence_number": 0,
        "response": {"id": "resp_1", "status": "queued", "output": []},
    })
}

fn piece(number: u64, delta: &str) -> Value {
    json!({
        "type": "response.output_text.delta",
        "sequence_number": number,
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": delta,
    })
}

fn finished(text: &str) -> Value {
    json!({
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [{
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text}],
        }],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    })
}

fn completed(number: u64, text: &str) -> Value {
    json!({
        "type": "response.completed",
        "sequence_number": number,
        "response": finished(text),
    })
}

fn events(events: &[Value]) -> HttpResponse {
    events
        .iter()
        .fold(HttpResponse::events(), |response, event| {
            response.event(event.to_string())
        })
}

fn asked(server: &HttpServer) -> Vec<String> {
    let requests = server.requests();
    let line = |request: &raf_testing::HttpRequest| format!("{} {}", request.method, request.path);
    requests.iter().map(line).collect()
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_taken_up_behind_its_last_event() {
    let whole = "Hello world, again";
    let server = HttpServer::start([
        events(&[created(), piece(1, "Hello")]).abort(),
        events(&[piece(2, " world")]),
        events(&[piece(3, ", again"), completed(4, whole)]),
    ]);
    let response = ask(&server, true, in_background()).await;
    let response = response.expect("it goes on");
    assert_eq!(response.text(), whole);
    assert_eq!(response.messages.len(), 1);
    assert_eq!(response.usage.total_tokens, Some(5));
    let path = "GET /v1/responses/resp_1?stream=true&starting_after=";
    let first = "POST /v1/responses".to_owned();
    assert_eq!(
        asked(&server),
        [first, format!("{path}1"), format!("{path}2")]
    );
    let sent = server.requests()[0].json();
    assert_eq!(
        (&sent["background"], &sent["store"]),
        (&json!(true), &json!(true))
    );
}

#[tokio::test]
async fn what_was_said_before_the_break_is_not_said_again() {
    let server = HttpServer::start([
        events(&[created(), piece(1, "Hello")]).abort(),
        // One that sends all of it once more, whatever it was asked for.
        events(&[created(), piece(1, "Hello"), completed(2, "Hello world")]),
    ]);
    let response = ask(&server, true, in_background()).await;
    assert_eq!(response.expect("it goes on").text(), "Hello world");
}

#[tokio::test]
async fn without_background_a_break_is_an_error() {
    let server = HttpServer::start([events(&[created(), piece(1, "Hello")]).abort()]);
    let error = ask(&server, true, ChatClientRunOptions::new()).await;
    assert!(error.expect_err("it broke off").is_temporary());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_response_that_is_gone_ends_the_run_and_says_which_it_was() {
    let gone =
        json!({"error": {"message": "Response not found.", "type": "invalid_request_error"}});
    let server = HttpServer::start([
        events(&[created(), piece(1, "Hello")]).abort(),
        HttpResponse::json(404, &gone),
    ]);
    let error = ask(&server, true, in_background()).await;
    let error = error.expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error
            .context()
            .contains(&("response_id".into(), "resp_1".to_owned()))
    );
    let leg = error.leg().expect("what was said");
    assert_eq!(leg.messages[0].text(), "Hello");
}

#[tokio::test]
async fn a_response_that_is_queued_is_asked_for_until_it_has_ended() {
    let queued = json!({"id": "resp_1", "object": "response", "status": "queued", "output": []});
    let server = HttpServer::start([
        HttpResponse::json(200, &queued),
        HttpResponse::json(200, &queued),
        HttpResponse::json(200, &finished("Hello")),
    ]);
    let response = ask(&server, false, in_background()).await;
    assert_eq!(response.expect("it ends").text(), "Hello");
    let get = "GET /v1/responses/resp_1";
    assert_eq!(asked(&server), ["POST /v1/responses", get, get]);
}

#[tokio::test]
async fn another_process_goes_on_with_what_one_has_read() {
    let server = HttpServer::start([events(&[piece(2, " world"), completed(3, "Hello world")])]);
    let token = ResponsesContinuation::new("resp_1").with_starting_after(1);
    let options = ChatClientRunOptions::new().with_continuation(token);
    let response = ask(&server, true, options).await.expect("it goes on");
    assert_eq!(response.text(), " world");
    assert_eq!(response.messages[0].message_id(), Some("resp_1"));
    let path = "GET /v1/responses/resp_1?stream=true&starting_after=1";
    assert_eq!(asked(&server), [path]);
}

#[tokio::test]
async fn a_server_that_keeps_nothing_runs_nothing_in_the_background() {
    let options = OpenAiOptions::new()
        .with_base_url("http://localhost:9/v1")
        .with_responses_dialect(ResponsesDialect::named("llamacpp").expect("it is known"))
        .with_model("m");
    let client = OpenAiResponsesChatClient::new(options).expect("options that work");
    let messages = [ChatMessage::user("go")];
    let refused = client.get_response(&messages, in_background()).await;
    assert_eq!(refused.expect_err("refused").kind(), ErrorKind::Misuse);
}

/// Reads a run until it said something, cancels it, and returns the error that it ends in.
async fn cancelled(server: &HttpServer, options: ChatClientRunOptions) -> Error {
    let token = CancellationToken::new();
    let options = options.with_cancellation(token.clone());
    let run = client(server, true)
        .run(&[ChatMessage::user("go")], options)
        .await;
    let mut updates = run.expect("nothing is wrong with it");
    loop {
        match updates.next().await.expect("the end comes as an error") {
            Ok(AgentResponseUpdate::TextDelta { .. }) => token.cancel(),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn a_background_run_that_is_cancelled_tells_the_server_before_it_ends() {
    let begun = || events(&[created(), piece(1, "Hello")]).hang();
    let stopped = json!({"id": "resp_1", "object": "response", "status": "cancelled"});
    let post = "POST /v1/responses".to_owned();
    let cancel = "POST /v1/responses/resp_1/cancel".to_owned();
    let failed = json!({"error": {"message": "down", "type": "server_error"}});
    for (answer, options, expect) in [
        (
            HttpResponse::json(200, &stopped),
            in_background(),
            vec![post.clone(), cancel.clone()],
        ),
        // What becomes of it changes nothing for the run.
        (
            HttpResponse::json(500, &failed),
            in_background(),
            vec![post.clone(), cancel],
        ),
        // Without the background the end of the connection stops it.
        (
            HttpResponse::json(200, &stopped),
            ChatClientRunOptions::new(),
            vec![post],
        ),
    ] {
        let server = HttpServer::start([begun(), answer]);
        let error = cancelled(&server, options).await;
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(asked(&server), expect);
    }
}

#[tokio::test]
async fn a_background_run_whose_deadline_passes_goes_on_at_the_server() {
    let begun = events(&[created(), piece(1, "Hello")]).hang();
    let server = HttpServer::start([begun]);
    let options = in_background().with_deadline(Duration::from_millis(100));
    let error = ask(&server, true, options).await.expect_err("it hangs");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let requests = asked(&server);
    assert!(
        !requests.iter().any(|line| line.ends_with("/cancel")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_dropped_run_sends_nothing_and_its_response_can_be_cancelled_by_its_id() {
    let stopped = json!({"id": "resp_1", "object": "response", "status": "cancelled"});
    let ended = json!({"id": "resp_1", "object": "response", "status": "completed"});
    let gone =
        json!({"error": {"message": "Response not found.", "type": "invalid_request_error"}});
    let server = HttpServer::start([
        events(&[created(), piece(1, "Hello")]).hang(),
        HttpResponse::json(200, &stopped),
        HttpResponse::json(200, &ended),
        HttpResponse::json(404, &gone),
    ]);
    let client = client(&server, true);
    let run = client
        .run(&[ChatMessage::user("go")], in_background())
        .await;
    let mut updates = run.expect("nothing is wrong with it");
    let mut id = None;
    while id.is_none() {
        let update = updates.next().await.expect("more comes");
        if let AgentResponseUpdate::MessageStart { message_id, .. } = update.expect("it goes well")
        {
            id = message_id;
        }
    }
    drop(updates);
    let id = id.expect("the message has the response's id");
    for status in ["cancelled", "completed"] {
        assert_eq!(client.cancel_response(&id).await.expect(status), status);
    }
    let error = client.cancel_response(&id).await.expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for no_id in ["", "a/b", "../files"] {
        let error = client.cancel_response(no_id).await.expect_err("no id");
        assert_eq!(error.kind(), ErrorKind::Misuse);
    }
    let cancel = "POST /v1/responses/resp_1/cancel".to_owned();
    let mut expect = vec![cancel; 4];
    expect[0] = "POST /v1/responses".to_owned();
    assert_eq!(asked(&server), expect);
}
