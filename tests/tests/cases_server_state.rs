//! The cases of what a server holds: conversations by id, responses that go on, tools that it runs.

use std::sync::Arc;

use raf_core::{
    AgentResponse, ChatClientBuilder, ChatClientExt, ChatClientRunOptions, ChatMessage, Content,
    ErrorKind, FinishReason, IChatClient,
};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_openai::{
    OpenAiOptions, OpenAiResponsesChatClient, ResponsesContinuation, ResponsesRunOptionsExt,
};
use raf_testing::{HttpRequest, HttpResponse, HttpServer};
use raf_tools::{ToolRegistry, tool_fn};
use serde_json::{Value, json};

/// A finished response of this id, if it has one, with this output.
fn response(id: Option<&str>, output: &Value) -> HttpResponse {
    let mut body = json!({"object": "response", "status": "completed", "output": output});
    if let Some(id) = id {
        body["id"] = id.into();
    }
    HttpResponse::json(200, &body)
}

fn call(number: u32) -> Value {
    json!([{
        "type": "function_call",
        "id": format!("fc_{number}"),
        "call_id": format!("call_{number}"),
        "name": "f",
        "arguments": "{}",
    }])
}

fn text(words: &str) -> Value {
    json!([{
        "type": "message",
        "id": "msg_9",
        "role": "assistant",
        "content": [{"type": "output_text", "text": words}],
    }])
}

fn provider(server: &HttpServer) -> Arc<dyn IChatClient> {
    let options = OpenAiOptions::new()
        .with_base_url(format!("{}/v1", server.url()))
        .with_responses_dialect(raf_openai::ResponsesDialect::openai())
        .with_model("m")
        .with_streaming(false);
    Arc::new(OpenAiResponsesChatClient::new(options).expect("options that work"))
}

/// The loop with one tool over the provider.
fn client(server: &HttpServer) -> Arc<dyn IChatClient> {
    let tool = tool_fn("f", "Says a word.", |(): ()| async { "word" });
    let stack = ChatClientBuilder::new(provider(server)).function_invoking([tool]);
    Arc::new(stack.build().expect("one loop"))
}

async fn ask(
    server: &HttpServer,
    messages: &[ChatMessage],
    options: ChatClientRunOptions,
) -> AgentResponse {
    let response = client(server).get_response(messages, options).await;
    response.expect("it ends well")
}

fn body(request: &HttpRequest) -> Value {
    request.json()
}

/// The types of the items that a request sends.
fn items(request: &HttpRequest) -> Vec<String> {
    let body = body(request);
    let items = body["input"].as_array().cloned().unwrap_or_default();
    let kind = |item: &Value| match item["role"].as_str() {
        Some(role) => role.to_owned(),
        None => item["type"].as_str().unwrap_or("?").to_owned(),
    };
    items.iter().map(kind).collect()
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::user("go")]
}

/// The next request names the response, and sends the results alone.
#[tokio::test]
async fn fi15_a_response_that_is_kept_is_named_and_only_results_are_sent() {
    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        response(Some("resp_1"), &text("done")),
    ]);
    let options = ChatClientRunOptions::new().with_server_state(true);
    let messages = [ChatMessage::system("be brief"), ChatMessage::user("go")];
    let answer = ask(&server, &messages, options).await;
    assert_eq!(answer.text(), "done");
    let requests = server.requests();
    let (first, second) = (body(&requests[0]), body(&requests[1]));
    assert_eq!(first["previous_response_id"], Value::Null);
    assert_eq!(first["store"], true);
    assert_eq!(second["previous_response_id"], "resp_0");
    assert_eq!(items(&requests[1]), ["function_call_output"]);
    assert_eq!(second["input"][0]["call_id"], "call_1");
    // The server does not remember them.
    assert_eq!(second["instructions"], "be brief");
}

/// A reply without an id means that nothing is kept any more: all is sent, no id named.
#[tokio::test]
async fn fi15_a_response_without_an_id_sends_the_whole_history() {
    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        response(None, &call(2)),
        response(None, &text("done")),
    ]);
    let options = ChatClientRunOptions::new().with_server_state(true);
    ask(&server, &question(), options).await;
    let requests = server.requests();
    assert_eq!(body(&requests[1])["previous_response_id"], "resp_0");
    assert_eq!(body(&requests[2])["previous_response_id"], Value::Null);
    let all = [
        "user",
        "function_call",
        "function_call_output",
        "function_call",
        "function_call_output",
    ];
    assert_eq!(items(&requests[2]), all);
}

/// The caller's conversation stays on every request, whether the server says it back or not.
#[tokio::test]
async fn fi15_the_callers_conversation_stays_though_it_is_never_echoed() {
    for id in [Some("resp_0"), None] {
        let server = HttpServer::start([response(id, &call(1)), response(id, &text("done"))]);
        let options = ChatClientRunOptions::new().with_conversation_id("conv_1");
        ask(&server, &question(), options).await;
        let requests = server.requests();
        for request in &requests {
            assert_eq!(body(request)["conversation"], "conv_1");
            assert_eq!(body(request)["previous_response_id"], Value::Null);
        }
        assert_eq!(items(&requests[1]), ["function_call_output"]);
    }
}

/// So does the caller's response, as long as no reply has an id of its own.
#[tokio::test]
async fn fi15_the_callers_response_is_named_until_a_reply_has_an_id() {
    let server = HttpServer::start([
        response(None, &call(1)),
        response(Some("resp_7"), &call(2)),
        response(None, &text("done")),
    ]);
    let options = ChatClientRunOptions::new().with_previous_response_id("resp_x");
    ask(&server, &question(), options).await;
    let requests = server.requests();
    let named: Vec<Value> = requests
        .iter()
        .map(|request| body(request)["previous_response_id"].clone())
        .collect();
    assert_eq!(named, ["resp_x", "resp_x", "resp_7"]);
    let since = ["user", "function_call", "function_call_output"];
    assert_eq!(items(&requests[1]), since);
    assert_eq!(items(&requests[2]), ["function_call_output"]);
}

/// A reply that broke off was never committed: the conversation goes on behind the one before it.
#[tokio::test]
async fn fi15_after_an_abort_the_last_committed_response_is_named() {
    let begun = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n\
                 data: {\"type\":\"response.output_text.delta\",\"delta\":\"Half\"}\n\n";
    let server = HttpServer::start([
        response(Some("resp_0"), &text("one")),
        HttpResponse::events().write(begun).abort(),
        response(Some("resp_2"), &text("three")),
    ]);
    let options = || ChatClientRunOptions::new().with_server_state(true);
    let mut messages = question();
    messages.extend(ask(&server, &messages, options()).await.messages);
    messages.push(ChatMessage::user("two?"));
    let failed = client(&server).get_response(&messages, options()).await;
    let error = failed.expect_err("it broke off");
    assert!(error.is_temporary(), "{error}");
    let begun = error.leg().expect("what was done").messages.clone();
    messages.extend(begun);
    messages.push(ChatMessage::user("three?"));
    let answer = ask(&server, &messages, options()).await;
    assert_eq!(answer.text(), "three");
    let last = &server.requests()[2];
    assert_eq!(body(last)["previous_response_id"], "resp_0");
    assert_eq!(items(last), ["user", "assistant", "user"]);
}

/// A server that lost what it held is given all of it, once.
#[tokio::test]
async fn fi15_a_response_that_is_not_found_sends_the_whole_history_once() {
    let lost = json!({"error": {
        "message": "Previous response with id 'resp_0' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }});
    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        HttpResponse::json(400, &lost),
        response(Some("resp_2"), &text("done")),
    ]);
    let options = ChatClientRunOptions::new().with_server_state(true);
    let answer = ask(&server, &question(), options).await;
    assert_eq!(answer.text(), "done");
    let last = &server.requests()[2];
    assert_eq!(body(last)["previous_response_id"], Value::Null);
    let all = ["user", "function_call", "function_call_output"];
    assert_eq!(items(last), all);

    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        HttpResponse::json(400, &lost),
        HttpResponse::json(400, &lost),
    ]);
    let options = ChatClientRunOptions::new().with_server_state(true);
    let failed = client(&server).get_response(&question(), options).await;
    assert_eq!(
        failed.expect_err("not twice").kind(),
        ErrorKind::InvalidRequest
    );
}

/// The token is for the first request; the caller's own is as it was.
#[tokio::test]
async fn fi16_a_continuation_is_on_the_first_request_only() {
    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        response(Some("resp_1"), &text("done")),
    ]);
    let token = ResponsesContinuation::new("resp_0");
    let options = ChatClientRunOptions::new()
        .with_server_state(true)
        .with_continuation(token.clone());
    let answer = ask(&server, &question(), options.clone()).await;
    assert_eq!(answer.text(), "done");
    let requests = server.requests();
    let asked: Vec<(&str, &str)> = requests
        .iter()
        .map(|request| (request.method.as_str(), request.path.as_str()))
        .collect();
    assert_eq!(
        asked,
        [("GET", "/v1/responses/resp_0"), ("POST", "/v1/responses")]
    );
    assert_eq!(body(&requests[1])["previous_response_id"], "resp_0");

    // The same options take it up once more.
    server.push(response(Some("resp_0"), &text("again")));
    assert_eq!(ask(&server, &question(), options).await.text(), "again");
    assert_eq!(server.requests()[2].method, "GET");
    let kept: ResponsesContinuation =
        serde_json::from_value(serde_json::to_value(&token).unwrap()).unwrap();
    assert_eq!(kept, token);
}

/// The last request allows no function any more, but what the server runs itself.
#[tokio::test]
async fn fi08_tools_of_the_server_stay_in_the_last_request() {
    let server = HttpServer::start([
        response(Some("resp_0"), &call(1)),
        response(Some("resp_1"), &text("done")),
    ]);
    let tool = tool_fn("f", "Says a word.", |(): ()| async { "word" });
    let registry = ToolRegistry::builder().with_tool(tool).build();
    let registry = registry.expect("one tool");
    let limits = FunctionInvokingOptions::new()
        .with_max_rounds(2)
        .with_wrap_up(true);
    let client = FunctionInvokingChatClient::with_options(provider(&server), registry, limits);
    let options = ChatClientRunOptions::new().with_hosted_tool(json!({"type": "web_search"}));
    let answer = client
        .get_response(&question(), options)
        .await
        .expect("it ends well");
    assert_eq!(answer.finish_reason, FinishReason::MaxRounds);
    let requests = server.requests();
    let kinds = |request: &HttpRequest| -> Vec<Value> {
        let tools = body(request)["tools"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        tools.iter().map(|tool| tool["type"].clone()).collect()
    };
    assert_eq!(kinds(&requests[0]), ["function", "web_search"]);
    let allowed =
        json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]});
    assert_eq!(kinds(&requests[1]), ["function", "web_search"]);
    assert_eq!(body(&requests[1])["tool_choice"], allowed);
}

/// What the server did itself is a part of the transcript, and goes back where nothing is kept.
#[tokio::test]
async fn items_of_the_server_are_parts_that_go_back() {
    let searched = json!([
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}},
        text("found")[0],
    ]);
    let server = HttpServer::start([
        response(Some("resp_0"), &searched),
        response(Some("resp_1"), &text("more")),
    ]);
    let mut messages = question();
    let answer = ask(&server, &messages, ChatClientRunOptions::new()).await;
    let parts = answer.messages[0].contents().iter();
    let kinds: Vec<&str> = parts
        .filter_map(|part| match part {
            Content::Unknown(part) => Some(part.kind()),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["web_search_call", "message"]);
    assert_eq!(answer.text(), "found");
    messages.extend(answer.messages);
    messages.push(ChatMessage::user("and?"));
    ask(&server, &messages, ChatClientRunOptions::new()).await;
    let second = &server.requests()[1];
    assert_eq!(
        items(second),
        ["user", "web_search_call", "assistant", "user"]
    );
    assert_eq!(body(second)["input"][1]["action"]["query"], "q");
    assert!(!second.text().contains("raf_"), "{}", second.text());
}
