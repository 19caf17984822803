//! The agent runtime: configuration, sessions, context providers, typed answers.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

#[path = "agent/config.rs"]
mod config;
#[path = "agent/context.rs"]
mod context;
#[path = "agent/nested.rs"]
mod nested;
#[path = "agent/polls.rs"]
mod polls;
#[path = "agent/sessions.rs"]
mod sessions;

use raf_core::ChatClientRunOptions;
use raf_framework::ContextChatClient;
use raf_testing::decorator_contract;

decorator_contract!(
    context_with_instructions: ContextChatClient,
    |inner| ContextChatClient::new(inner).with_instructions("Be brief.")
);

decorator_contract!(
    context_with_providers: ContextChatClient,
    |inner| ContextChatClient::new(inner).with_provider(std::sync::Arc::new(context::Memory::default()))
);

fn cancelled() -> ChatClientRunOptions {
    let options = ChatClientRunOptions::new();
    options.cancellation.cancel();
    options
}
