//! A tool loop by hand against a scripted endpoint that speaks Messages: what was thought, asked for and
//! found goes back as it came, streamed and whole.

use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt, Dialect,
    Thinking,
};
use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, Content, ErrorKind, FinishReason,
    ProviderData, ToolCall, ToolDeclaration, ToolResult, UnknownContent,
};
use raf_testing::{EndpointWire, Reply, ScriptedEndpoint};
use serde_json::{Value, json};

fn client(endpoint: &ScriptedEndpoint, streaming: bool) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_base_url(endpoint.url())
        .with_model("claude-sonnet-4-5")
        .with_dialect(Dialect::named("anthropic").expect("a row"))
        .with_streaming(streaming);
    AnthropicChatClient::new(options).expect("options that work")
}

fn thinking() -> ChatClientRunOptions {
    let own = AnthropicRunOptions::new().with_thinking(Thinking::Budget(1024));
    ChatClientRunOptions::new()
        .with_tools([ToolDeclaration::new("look", "Looks.")])
        .with_anthropic(own)
}

fn opaque(data: Value) -> ProviderData {
    ProviderData::new("anthropic", data)
}

#[tokio::test]
async fn thoughts_go_back_with_their_calls_in_order() {
    for streaming in [true, false] {
        let search = json!({"type": "server_tool_use", "id": "s1", "name": "g", "input": {"q": 1}});
        let first = Reply::new()
            .reasoning("First ")
            .reasoning("this.")
            .reasoning_data(opaque(json!({"signature": "sig_A"})))
            .reasoning_data(opaque(json!({"data": "ENC"})))
            .then_text("Let me look.")
            .content(Content::Unknown(UnknownContent::new(search.clone())))
            .reasoning("Then that.")
            .reasoning_data(opaque(json!({"signature": "sig_B"})))
            .call("toolu_1", "look", r#"{"b":1,"a":2}"#)
            .call("toolu_2", "look", "{}")
            .usage(10, 5);
        let replies = [first, Reply::text("Done.").usage(20, 2)];
        let endpoint = ScriptedEndpoint::speaking(EndpointWire::Messages, replies);
        let client = client(&endpoint, streaming);
        let mut messages = vec![ChatMessage::system("Be kind."), ChatMessage::user("Go")];
        let response = client.get_response(&messages, thinking()).await.unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
        messages.extend(response.messages);
        messages.push(ChatMessage::tool(ToolResult::ok("toolu_1", "one")));
        messages.push(ChatMessage::tool(ToolResult::ok("toolu_2", "two")));
        messages.push(ChatMessage::user("Quick!"));
        let response = client.get_response(&messages, thinking()).await.unwrap();
        assert_eq!(response.text(), "Done.");
        endpoint.assert_done();
        let sent = endpoint.http_requests()[1].json();
        assert_eq!(sent["thinking"]["type"], "enabled");
        let kind = "tool_use";
        let turn = json!([
            {"type": "thinking", "thinking": "First this.", "signature": "sig_A"},
            {"type": "redacted_thinking", "data": "ENC"},
            {"type": "text", "text": "Let me look."},
            search,
            {"type": "thinking", "thinking": "Then that.", "signature": "sig_B"},
            {"type": kind, "id": "toolu_1", "name": "look", "input": {"a": 2, "b": 1}},
            {"type": kind, "id": "toolu_2", "name": "look", "input": {}},
        ]);
        assert_eq!(
            sent["messages"][1]["content"], turn,
            "streamed: {streaming}"
        );
        let results = json!([
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "two"},
            {"type": "text", "text": "Quick!"},
        ]);
        assert_eq!(sent["messages"][2]["content"], results);
        // The endpoint parts again what the wire has joined.
        assert_eq!(
            endpoint.requests()[1].lines()[3..],
            ["R(toolu_1, ok: 'one')", "R(toolu_2, ok: 'two')", "U:Quick!"]
        );
    }
}

#[tokio::test]
async fn a_conversation_of_another_provider_goes_on_here() {
    let endpoint = ScriptedEndpoint::speaking(EndpointWire::Messages, [Reply::text("Yes.")]);
    let client = client(&endpoint, true);
    let thought = raf_core::ReasoningContent::new("secret thoughts")
        .with_provider_data(ProviderData::new("openai", json!({"encrypted": "E"})));
    let found = json!({"type": "web_search_call", "id": "ws_1", "raf_provider": "openai"});
    let asked = ChatMessage::builder(raf_core::MessageRole::Assistant)
        .content(thought)
        .contents([Content::Unknown(UnknownContent::new(found))])
        .content("I look.")
        .content(ToolCall::new("fc_1|call:1", "look", "{}"))
        .build();
    let messages = [
        ChatMessage::user("Go"),
        asked,
        ChatMessage::tool(ToolResult::ok("fc_1|call:1", "seen")),
    ];
    let response = client.get_response(&messages, thinking()).await.unwrap();
    assert_eq!(response.text(), "Yes.");
    let sent = endpoint.http_requests()[0].json();
    assert_eq!(sent["thinking"]["type"], "disabled");
    let turn = &sent["messages"][1]["content"];
    assert_eq!(turn[0], json!({"type": "text", "text": "I look."}));
    assert_eq!(turn.as_array().unwrap().len(), 2);
    assert_eq!(
        turn[1]["id"],
        sent["messages"][2]["content"][0]["tool_use_id"]
    );
    let text = sent.to_string();
    assert!(!text.contains("secret") && !text.contains("raf_provider") && !text.contains("ws_1"));
}

#[tokio::test]
async fn failures_of_the_endpoint_are_told_by_their_types() {
    for kind in [
        ErrorKind::Authentication,
        ErrorKind::Permission,
        ErrorKind::NotFound,
        ErrorKind::RateLimit,
        ErrorKind::Quota,
        ErrorKind::ContextLength,
        ErrorKind::ContentFilter,
        ErrorKind::InvalidRequest,
        ErrorKind::PayloadTooLarge,
        ErrorKind::Server,
        ErrorKind::Overloaded,
        ErrorKind::Timeout,
    ] {
        let failure = || raf_core::Error::new(kind, "what went wrong");
        let replies = [
            Reply::error_at_start(failure()),
            Reply::text("so far").error(failure()),
        ];
        let endpoint = ScriptedEndpoint::speaking(EndpointWire::Messages, replies);
        let client = client(&endpoint, true);
        for _ in 0..2 {
            let asked = [ChatMessage::user("Go")];
            let response = client
                .get_response(&asked, ChatClientRunOptions::new())
                .await;
            assert_eq!(response.unwrap_err().kind(), kind);
        }
    }
}
