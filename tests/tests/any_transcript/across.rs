//! A conversation that moves from provider to provider and back, each in a loop of its own, over HTTP.

use std::sync::Arc;

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, FinishReason, IChatClient, ProviderData,
    normalise,
};
use raf_framework::FunctionInvokingChatClient;
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect};
use raf_testing::{EndpointWire, Reply, ScriptedEndpoint, invariants};
use raf_tools::{ToolRegistry, tool_fn};
use serde_json::json;

/// The provider that speaks this protocol, with the tool loop around it.
fn agent(wire: EndpointWire, url: &str) -> Arc<dyn IChatClient> {
    let openai = || {
        OpenAiOptions::new()
            .with_base_url(url)
            .with_responses_dialect(ResponsesDialect::openai())
            .with_model("m")
    };
    let model: Arc<dyn IChatClient> = match wire {
        EndpointWire::Responses => {
            Arc::new(OpenAiResponsesChatClient::new(openai()).expect("good options"))
        }
        EndpointWire::Messages => {
            let options = AnthropicOptions::new().with_base_url(url).with_model("m");
            Arc::new(AnthropicChatClient::new(options).expect("good options"))
        }
        _ => Arc::new(OpenAiChatClient::new(openai()).expect("good options")),
    };
    let tool = tool_fn("look", "Looks.", |(): ()| async { "seen" });
    let tools = ToolRegistry::builder()
        .with_tool(tool)
        .build()
        .expect("one tool");
    Arc::new(FunctionInvokingChatClient::new(model, tools))
}

/// A thought with opaque data, words, and a call; then the answer. Every provider uses the same id.
fn replies(turn: usize) -> [Reply; 2] {
    let data = ProviderData::new("x", json!({"signature": format!("secret-{turn}")}));
    let call = Reply::new()
        .reasoning(format!("thought-{turn}"))
        .reasoning_data(data)
        .then_text(format!("looking-{turn}"))
        .call("call_0", "look", "{}");
    [call, Reply::text(format!("answer-{turn}"))]
}

async fn moves(order: &[EndpointWire]) {
    let mut conversation = vec![ChatMessage::system("Be brief.")];
    let mut expected = vec!["S:Be brief.".to_owned()];
    for (turn, &wire) in order.iter().enumerate() {
        let endpoint = ScriptedEndpoint::speaking(wire, replies(turn));
        conversation.push(ChatMessage::user(format!("question-{turn}")));
        expected.push(format!("U:question-{turn}"));
        let response = agent(wire, &endpoint.url())
            .get_response(&conversation, ChatClientRunOptions::new())
            .await
            .unwrap_or_else(|error| panic!("turn {turn} over {wire:?}: {error}"));
        assert_eq!(
            response.finish_reason,
            FinishReason::Stop,
            "turn {turn} over {wire:?}"
        );
        assert_eq!(response.text(), format!("answer-{turn}"));
        endpoint.assert_done();

        // All of the conversation is there, whoever made it, and nothing of what only another knows.
        let requests = endpoint.requests();
        assert_eq!(invariants::check_requests(&requests), Vec::<String>::new());
        assert_eq!(
            words(&requests[0].lines()),
            words(&expected),
            "turn {turn} over {wire:?}"
        );
        let http = endpoint.http_requests();
        for (foreign, _) in order[..turn]
            .iter()
            .enumerate()
            .filter(|(_, other)| **other != wire)
        {
            let body = http[0].json().to_string();
            for what in [
                format!("secret-{foreign}"),
                format!("thought-{foreign}"),
                "raf_".to_owned(),
            ] {
                assert!(
                    !body.contains(&what),
                    "'{what}' in turn {turn} over {wire:?}: {body}"
                );
            }
        }
        // What it thought itself goes back in its own loop where the protocol has a place for it.
        if wire != EndpointWire::ChatCompletions {
            let body = http[1].json().to_string();
            assert!(
                body.contains(&format!("secret-{turn}")),
                "turn {turn} over {wire:?}: {body}"
            );
        }
        conversation.extend(response.messages);
        expected.push(format!("A:looking-{turn} [call]"));
        expected.push("R(call, ok: 'seen')".to_owned());
        expected.push(format!("A:answer-{turn}"));
    }
    // And what is kept of it is a valid history to whoever comes next.
    assert_eq!(normalise(&conversation).len(), conversation.len());
}

/// Lines without the labels of calls, which each protocol may write in its own way.
fn words(lines: &[String]) -> Vec<String> {
    let plain = |line: &String| match line.split_once(" [") {
        Some((said, _)) if line.starts_with("A:") => format!("{said} [call]"),
        _ if line.starts_with("R(") => {
            let rest = line.split_once(',').map_or("", |(_, rest)| rest);
            format!("R(call,{rest}")
        }
        _ => line.clone(),
    };
    lines.iter().map(plain).collect()
}

#[tokio::test]
async fn a_conversation_moves_through_all_three_and_back() {
    use EndpointWire::{ChatCompletions, Messages, Responses};
    for order in [
        [ChatCompletions, Messages, Responses, ChatCompletions],
        [Messages, Responses, ChatCompletions, Messages],
        [Responses, ChatCompletions, Messages, Responses],
        [Responses, Messages, Responses, Messages],
    ] {
        moves(&order).await;
    }
}
