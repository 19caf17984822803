//! Providers behind one type, chosen while the program runs.
//!
//! `cargo run --example swap_providers` asks each; `… -- in-process`, `… -- openai`, `… -- responses` or
//! `… -- anthropic` asks one.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::error::Error;
use std::sync::Arc;

use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage, IChatClient};
use raf_examples::Provider;
use raf_framework::ChatClientBuilderExt;
use raf_testing::{Reply, ScriptedChatClient};
use raf_tools::{FunctionTool, tool_fn};

/// The only place that knows which providers there are.
fn provider(name: &str) -> Result<Arc<dyn IChatClient>, Box<dyn Error>> {
    Ok(match name {
        "in-process" => Arc::new(ScriptedChatClient::new(script())),
        other => other.parse::<Provider>()?.client(script())?,
    })
}

/// The agent does not know what answers at the bottom of its stack.
async fn ask(provider: Arc<dyn IChatClient>, question: &str) -> raf_core::Result<String> {
    let agent = provider
        .into_builder()
        .function_invoking([dice()])
        .build()?;
    let conversation = [ChatMessage::user(question)];
    let response = agent
        .get_response(&conversation, ChatClientRunOptions::new())
        .await?;
    Ok(response.text())
}

fn dice() -> FunctionTool {
    tool_fn("roll", "Rolls a die.", |(): ()| async { 4 })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = vec!["in-process".to_owned()];
        names.extend(Provider::ALL.iter().map(Provider::to_string));
    }
    for name in names {
        let provider = provider(&name)?;
        let metadata = provider.metadata();
        let answer = ask(provider, "Roll a die for me.").await?;
        println!(
            "{name} ({}, {}): {answer}",
            metadata.provider.unwrap_or_default(),
            metadata.model.unwrap_or_default(),
        );
    }
    Ok(())
}

/// What the model says where there is none.
fn script() -> [Reply; 2] {
    [
        Reply::calls([("call_1", "roll", "{}")]),
        Reply::text("You rolled a 4."),
    ]
}
