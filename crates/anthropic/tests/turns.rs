//! Turns over HTTP: those that the server pauses, what comes with a reply, when it starts and stops.

use std::time::Duration;

use futures::StreamExt;
use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt, Dialect,
    EndpointForm,
};
use raf_core::{
    AgentResponse, AgentResponseUpdate, CancellationToken, ChatClientRunOptions, ChatMessage,
    Content, ErrorKind, FinishReason, IChatClient, ToolResult, collect,
};
use raf_testing::invariants::{assert_holds, check_reply_updates};
use raf_testing::{HttpResponse, HttpServer};
use serde_json::{Value, json};

fn options(server: &HttpServer) -> AnthropicOptions {
    AnthropicOptions::new()
        .with_base_url(server.url())
        .with_api_key("sk-ant-secret")
        .with_model("claude-test")
        .with_dialect(Dialect::named("anthropic").expect("a row"))
}

fn searching() -> ChatClientRunOptions {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = AnthropicRunOptions::new().with_server_tools([search]);
    ChatClientRunOptions::new().with_anthropic(own)
}

/// A streamed reply of these blocks.
fn streamed(id: &str, blocks: &[Value], stop_reason: &str) -> HttpResponse {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": id, "model": "claude-test", "content": [], "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in blocks.iter().enumerate() {
        let kind = "content_block_start";
        events.push(json!({"type": kind, "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason},
        "usage": {"output_tokens": 5},
    }));
    events.push(json!({"type": "message_stop"}));
    let response = HttpResponse::events();
    events.iter().fold(response, |response, event| {
        response.event(event.to_string())
    })
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "rain"}})
}

fn found(id: &str) -> Value {
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [
        {"type": "web_search_result", "url": "https://example.com", "encrypted_content": "ENC"},
    ]})
}

async fn respond(
    client: &AnthropicChatClient,
    messages: &[ChatMessage],
    options: ChatClientRunOptions,
) -> AgentResponse {
    let updates = client.run(messages, options).await;
    let items: Vec<_> = updates.expect("a good request").collect().await;
    assert_holds(check_reply_updates(&items));
    let updates = futures::stream::iter(items).boxed();
    collect(updates).await.expect("it ends well")
}

#[tokio::test]
async fn a_paused_turn_goes_on_in_the_same_stream() {
    let server = HttpServer::start([
        streamed(
            "msg_1",
            &[text("Let me look."), search("srv_1")],
            "pause_turn",
        ),
        streamed("msg_2", &[found("srv_1"), search("srv_2")], "pause_turn"),
        streamed("msg_3", &[found("srv_2"), text("It rains. ")], "end_turn"),
    ]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let asked = [ChatMessage::user("Does it rain?")];
    let response = respond(&client, &asked, searching()).await;
    assert_eq!(response.finish_reason, FinishReason::Stop);
    assert_eq!(response.messages.len(), 1);
    assert_eq!(response.text(), "Let me look.It rains. ");
    let kinds: Vec<&str> = response.messages[0]
        .contents()
        .iter()
        .map(|content| match content {
            Content::Unknown(part) => part.kind(),
            Content::Text(_) => "text",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "text",
            "server_tool_use",
            "web_search_tool_result",
            "server_tool_use",
            "web_search_tool_result",
            "text"
        ]
    );
    // Each exchange counts.
    assert_eq!(response.usage.input_tokens, Some(30));
    assert_eq!(response.usage.output_tokens, Some(15));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let turns = |at: usize| requests[at].json()["messages"].clone();
    let user = json!({"role": "user", "content": [text("Does it rain?")]});
    let first = [text("Let me look."), search("srv_1")];
    let assistant = json!({"role": "assistant", "content": first});
    assert_eq!(turns(1), json!([user, assistant]));
    let both = [first.to_vec(), vec![found("srv_1"), search("srv_2")]].concat();
    let assistant = json!({"role": "assistant", "content": both});
    assert_eq!(turns(2), json!([user, assistant]));
    assert_eq!(requests[1].json()["tools"], requests[0].json()["tools"]);
    // The whole turn goes back in the next run.
    let mut asked = asked.to_vec();
    asked.extend(response.messages);
    asked.push(ChatMessage::user("And tomorrow?"));
    let body = client.request_body(&asked, &searching()).unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let whole = [both, vec![found("srv_2"), text("It rains. ")]].concat();
    assert_eq!(body["messages"][1]["content"], json!(whole));
}

#[tokio::test]
async fn a_turn_that_pauses_again_and_again_ends_within_bounds() {
    let paused = || streamed("msg_1", &[text("Hm."), search("srv_1")], "pause_turn");
    for (most, asked) in [(0, 1), (2, 3)] {
        let server = HttpServer::start([paused(), paused(), paused(), paused()]);
        let client = AnthropicChatClient::new(options(&server).with_continuations(most)).unwrap();
        let response = respond(&client, &[ChatMessage::user("Hi")], searching()).await;
        let paused = FinishReason::Other("pause_turn".to_owned());
        assert_eq!(response.finish_reason, paused);
        assert_eq!(server.requests().len(), asked);
        let word = response.metadata.raw_finish_reason.as_deref();
        assert_eq!(word, Some("pause_turn"));
    }
}

#[tokio::test]
async fn what_fails_in_a_paused_turn_keeps_what_came_before() {
    let body =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let server = HttpServer::start([
        streamed(
            "msg_1",
            &[text("Let me look."), search("srv_1")],
            "pause_turn",
        ),
        HttpResponse::json(529, &body),
    ]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let updates = client.run(&[ChatMessage::user("Hi")], searching()).await;
    let error = collect(updates.unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    let leg = error.leg().expect("what came before");
    assert_eq!(leg.messages[0].text(), "Let me look.");
}

#[tokio::test]
async fn calls_of_a_paused_turn_are_for_the_client() {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}});
    let server = HttpServer::start([streamed("msg_1", &[search("srv_1"), call], "pause_turn")]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let response = respond(&client, &[ChatMessage::user("Hi")], searching()).await;
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn citations_stand_behind_their_text_and_go_back_with_it() {
    let cited =
        json!({"type": "text", "text": "It rains", "citations": [{"type": "page_location"}]});
    let blocks = [text("Well: "), cited.clone(), text(", they say.")];
    let server = HttpServer::start([streamed("msg_1", &blocks, "end_turn")]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let asked = [ChatMessage::user("Hi")];
    let response = respond(&client, &asked, ChatClientRunOptions::new()).await;
    assert_eq!(response.text(), "Well: It rains, they say.");
    let [asked] = asked;
    let history = [
        asked,
        response.messages[0].clone(),
        ChatMessage::user("So?"),
    ];
    let sent = |name: &str| {
        let options = options(&server).with_dialect(Dialect::named(name).unwrap());
        let client = AnthropicChatClient::new(options).unwrap();
        let body = client.request_body(&history, &ChatClientRunOptions::new());
        let body: Value = serde_json::from_str(&body.unwrap()).unwrap();
        body["messages"][1]["content"].clone()
    };
    assert_eq!(sent("anthropic"), json!(blocks));
    // Another endpoint knows nothing of them.
    let plain = json!([text("Well: "), text("It rains"), text(", they say.")]);
    assert_eq!(sent("kimi"), plain);
}

#[tokio::test]
async fn limits_and_ids_are_told_with_a_reply() {
    let reply = streamed("msg_1", &[text("Hi")], "end_turn")
        .header("anthropic-ratelimit-requests-remaining", "7")
        .header("anthropic-ratelimit-requests-reset", "2026-01-01T00:01:00Z");
    let server = HttpServer::start([reply]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let response = respond(
        &client,
        &[ChatMessage::user("Hi")],
        ChatClientRunOptions::new(),
    )
    .await;
    assert_eq!(response.metadata.response_id.as_deref(), Some("msg_1"));
    assert_eq!(response.metadata.model.as_deref(), Some("claude-test"));
    assert_eq!(
        response.metadata.extra["rate_limits"],
        json!({
            "anthropic-ratelimit-requests-remaining": "7",
            "anthropic-ratelimit-requests-reset": "2026-01-01T00:01:00Z",
        })
    );
}

#[tokio::test]
async fn a_programmatic_call_goes_back_with_its_caller() {
    let caller = json!({"type": "code_execution_20250825", "tool_id": "srvtoolu_1"});
    let kind = "tool_use";
    let call = json!({"type": kind, "id": "toolu_1", "name": "f", "input": {}, "caller": caller});
    let server = HttpServer::start([streamed("msg_1", std::slice::from_ref(&call), "tool_use")]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let asked = [ChatMessage::user("Hi")];
    let response = respond(&client, &asked, ChatClientRunOptions::new()).await;
    let [asked] = asked;
    let result = ChatMessage::tool(ToolResult::ok("toolu_1", "1"));
    let history = [asked, response.messages[0].clone(), result];
    let body = client.request_body(&history, &ChatClientRunOptions::new());
    let body: Value = serde_json::from_str(&body.unwrap()).unwrap();
    assert_eq!(body["messages"][1]["content"][0], call);
}

#[tokio::test]
async fn requests_of_the_clouds_go_to_their_own_paths() {
    for (form, streaming, path) in [
        (
            EndpointForm::Bedrock,
            true,
            "/model/claude-test/invoke-with-response-stream",
        ),
        (EndpointForm::Bedrock, false, "/model/claude-test/invoke"),
        (
            EndpointForm::Vertex,
            true,
            "/models/claude-test:streamRawPredict",
        ),
        (
            EndpointForm::Vertex,
            false,
            "/models/claude-test:rawPredict",
        ),
        (EndpointForm::Messages, true, "/v1/messages"),
    ] {
        let server = HttpServer::start([streamed("msg_1", &[text("Hi")], "end_turn")]);
        let dialect = Dialect::named("anthropic")
            .unwrap()
            .with_endpoint_form(form);
        let options = options(&server)
            .with_dialect(dialect)
            .with_streaming(streaming);
        let client = AnthropicChatClient::new(options.with_beta("b-1")).unwrap();
        respond(
            &client,
            &[ChatMessage::user("Hi")],
            ChatClientRunOptions::new(),
        )
        .await;
        let request = server.requests().remove(0);
        assert_eq!(request.path, path);
        let header = |name: &str| {
            let found = request
                .headers
                .iter()
                .find(|(of, _)| of.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let is_bedrock = form == EndpointForm::Bedrock;
        assert_eq!(header("anthropic-beta").is_none(), is_bedrock);
        assert_eq!(request.json().get("anthropic_beta").is_some(), is_bedrock);
        let in_header = form == EndpointForm::Messages;
        assert_eq!(header("anthropic-version").is_some(), in_header);
        assert_eq!(request.json().get("model").is_some(), in_header);
    }
}

#[tokio::test]
async fn a_cancel_ends_a_reply_that_hangs() {
    let half = HttpResponse::events()
        .event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}).to_string())
        .hang();
    let server = HttpServer::start([half]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let token = CancellationToken::new();
    let options = ChatClientRunOptions::new().with_cancellation(token.clone());
    let mut updates = client
        .run(&[ChatMessage::user("Hi")], options)
        .await
        .unwrap();
    let error = loop {
        match updates.next().await.expect("it does not end by itself") {
            Ok(AgentResponseUpdate::TextDelta { .. }) => token.cancel(),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(updates.next().await.is_none());
}

#[tokio::test]
async fn a_deadline_holds_over_all_exchanges_of_a_turn() {
    let server = HttpServer::start([
        streamed("msg_1", &[search("srv_1")], "pause_turn"),
        HttpResponse::new(200).hang_before_headers(),
    ]);
    let client = AnthropicChatClient::new(options(&server)).unwrap();
    let options = searching().with_deadline(Duration::from_millis(300));
    let updates = client
        .run(&[ChatMessage::user("Hi")], options)
        .await
        .unwrap();
    let error = collect(updates).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(server.requests().len(), 2);
}
