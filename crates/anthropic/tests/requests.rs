//! Requests as tables: what becomes of settings, media, tools, places and breakpoints.

#[path = "requests/caching.rs"]
mod caching;
#[path = "requests/media.rs"]
mod media;
#[path = "requests/places.rs"]
mod places;
#[path = "requests/settings.rs"]
mod settings;
#[path = "requests/tools.rs"]
mod tools;

use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt, Conflicts,
    Dialect, PromptCaching, Thinking,
};
use raf_core::{ChatClientRunOptions, ChatMessage, Result, ToolCall, ToolDeclaration, ToolResult};
use serde_json::Value;

fn client(dialect: &str, conflicts: Conflicts) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_model("claude-sonnet-4-5")
        .with_dialect(Dialect::named(dialect).expect("a row"))
        .with_conflicts(conflicts);
    AnthropicChatClient::new(options).expect("options that work")
}

fn try_body(
    dialect: &str,
    conflicts: Conflicts,
    messages: &[ChatMessage],
    options: &ChatClientRunOptions,
) -> Result<Value> {
    let body = client(dialect, conflicts).request_body(messages, options)?;
    Ok(serde_json::from_str(&body).expect("JSON"))
}

fn body(messages: &[ChatMessage], options: &ChatClientRunOptions) -> Value {
    try_body("anthropic", Conflicts::Refuse, messages, options).expect("a good request")
}

fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage::user("Hello")]
}

fn plain() -> ChatClientRunOptions {
    ChatClientRunOptions::new()
}

fn thinking(thinking: Thinking) -> ChatClientRunOptions {
    plain().with_anthropic(AnthropicRunOptions::new().with_thinking(thinking))
}

fn caching(caching: PromptCaching) -> ChatClientRunOptions {
    plain().with_anthropic(AnthropicRunOptions::new().with_caching(caching))
}

fn tool(name: &str) -> ToolDeclaration {
    ToolDeclaration::new(name, "d")
}

/// A call, its result, and a question behind it.
fn called() -> Vec<ChatMessage> {
    vec![
        ChatMessage::user("Hello"),
        ChatMessage::assistant_calls([ToolCall::new("toolu_1", "look", r#"{"b":1,"a":2}"#)]),
        ChatMessage::tool(ToolResult::ok("toolu_1", "seen")),
    ]
}

fn body_text(messages: &[ChatMessage], options: &ChatClientRunOptions) -> String {
    client("anthropic", Conflicts::Refuse)
        .request_body(messages, options)
        .expect("a good request")
}
