//! Stacks that the builder makes, and stacks that it refuses.

use std::sync::Arc;

use raf_core::{
    ChatClientBuilder, ChatClientExt, ChatClientLayer, ChatClientRunOptions, ChatMessage,
    DelegatingChatClient, ErrorKind, IChatClient, LayerPlacement, Result,
};
use raf_testing::{Reply, ScriptedChatClient};
use raf_tools::{FunctionTool, ToolRegistry, tool_fn};

use super::ChatClientBuilderExt;
use crate::{FunctionInvokingOptions, LoggingChatClient};

fn provider() -> ScriptedChatClient {
    ScriptedChatClient::new([
        Reply::calls([("c1", "now", "{}")]),
        Reply::text("It is noon."),
    ])
}

fn builder() -> ChatClientBuilder {
    ChatClientBuilder::new(provider())
}

fn tool(name: &str) -> FunctionTool {
    tool_fn(name, "", |(): ()| async { "noon" })
}

fn placed(placement: LayerPlacement) -> ChatClientLayer {
    ChatClientLayer::new("placed", placement, DelegatingChatClient::new)
}

#[test]
fn the_first_layer_added_is_the_outermost() {
    let stack = builder()
        .logging()
        .configuring(ChatClientRunOptions::new())
        .function_invoking(ToolRegistry::new())
        .logging_with(|logging| logging.with_contents(true))
        .build()
        .unwrap();
    let shown = format!("{stack:?}");
    let layers = [
        "Logging",
        "Configuring",
        "FunctionInvoking",
        "Logging",
        "Scripted",
    ];
    let mut rest = shown.as_str();
    for layer in layers {
        let name = format!("{layer}ChatClient");
        let at = rest
            .find(&name)
            .unwrap_or_else(|| panic!("{name} is not in {rest}"));
        rest = &rest[at + name.len()..];
    }
    assert_eq!(stack.metadata().provider.as_deref(), Some("scripted"));
}

#[tokio::test]
async fn options_and_tools_reach_the_model() {
    let provider = provider();
    let client = ChatClientBuilder::new(provider.clone())
        .configuring_with(
            ChatClientRunOptions::new()
                .with_model("default")
                .with_seed(1),
            ChatClientRunOptions::new().with_model("forced"),
        )
        .function_invoking_with(
            [tool("now")],
            FunctionInvokingOptions::new().with_max_rounds(2),
        )
        .build()
        .unwrap();
    assert_eq!(client.metadata().model.as_deref(), Some("forced"));
    let options = ChatClientRunOptions::new().with_model("wanted");
    let question = [ChatMessage::user("What time is it?")];
    let response = client.get_response(&question, options).await.unwrap();
    assert_eq!(response.text(), "It is noon.");
    for request in provider.requests() {
        assert_eq!(request.options.model.as_deref(), Some("forced"));
        assert_eq!(request.options.seed, Some(1));
        assert_eq!(request.tool_names(), ["now"]);
    }
}

#[test]
fn an_order_that_cannot_work_says_what_to_do() {
    let check = |built: Result<Arc<dyn IChatClient>>, advice: &str| {
        let error = built.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains(advice), "{error}");
    };
    let none = ToolRegistry::new;
    let inside = || placed(LayerPlacement::InsideLoop);
    let outside = || placed(LayerPlacement::OutsideLoop);
    check(
        builder().layer(inside()).function_invoking(none()).build(),
        "add it after the loop",
    );
    check(
        builder().function_invoking(none()).layer(outside()).build(),
        "add it before the loop",
    );
    check(
        builder()
            .function_invoking(none())
            .function_invoking(none())
            .build(),
        "loop",
    );

    let looped = builder().function_invoking(none()).build().unwrap();
    let logged = LoggingChatClient::new(looped);
    check(
        ChatClientBuilder::new(logged)
            .function_invoking(none())
            .build(),
        "loop",
    );
}

#[test]
fn tools_that_cannot_work_are_refused_by_build() {
    let check = |builder: ChatClientBuilder, words: [&str; 2]| {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        for word in words {
            assert!(error.message().contains(word), "{error}");
        }
    };
    check(
        builder().function_invoking([tool("now"), tool("now")]),
        ["now", "name"],
    );
    check(
        builder().function_invoking(vec![tool("not a name")]),
        ["not a name", "1 to 64"],
    );
    let unfinished = ToolRegistry::builder()
        .with_tool(tool(""))
        .with_tool(tool("now"));
    check(builder().function_invoking(unfinished), ["name", "1 to 64"]);
    assert!(builder().function_invoking(tool("now")).build().is_ok());
}
