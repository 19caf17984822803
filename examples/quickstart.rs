//! An agent that streams text, calls two tools in parallel, asks before it spends money, and answers.
//!
//! - `cargo run --example quickstart` needs no key: a scripted endpoint answers, over real HTTP.
//! - With `OPENAI_API_KEY` and `OPENAI_MODEL` it talks to OpenAI; with `OPENAI_BASE_URL` to any
//!   compatible endpoint, for example `http://localhost:11434/v1`.
//! - `RAF_PROVIDER=responses` speaks Responses instead of Chat Completions; `RAF_PROVIDER=anthropic` speaks
//!   Messages, with `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL` and `ANTHROPIC_MODEL`. Both need no key either.
//! - What costs money is put before the person at the terminal; without one, the program says yes.
//! - With `RUST_LOG=raf_framework=debug` it shows what the layers log.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program talks to a person at a terminal"
)]

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ApprovalRequest, ChatClientBuilder, ChatClientRunOptions, ChatMessage,
    IChatClient,
};
use raf_framework::{ApprovalAnswer, ChatClientBuilderExt};
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{ToolRegistry, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

async fn weather(place: Place) -> String {
    tokio::time::sleep(Duration::from_millis(600)).await;
    format!("18 °C and sunny in {}", place.city)
}

#[derive(Deserialize, JsonSchema)]
struct Journey {
    /// The city to start from.
    from: String,
    /// The city to go to.
    to: String,
}

async fn next_train(journey: Journey) -> String {
    tokio::time::sleep(Duration::from_millis(300)).await;
    format!("{} to {}: 10:02, platform 7", journey.from, journey.to)
}

#[derive(Deserialize, JsonSchema)]
struct Ticket {
    /// From where to where.
    journey: Journey,
    /// The time of the train.
    at: String,
}

/// Gated, see below: its body is entered only after a yes to that very call.
async fn buy_ticket(ticket: Ticket) -> String {
    let Journey { from, to } = ticket.journey;
    format!("bought: {from} to {to}, {}", ticket.at)
}

/// Puts a call before the person at the terminal.
async fn ask_person(request: ApprovalRequest) -> std::io::Result<ApprovalAnswer> {
    let question = format!(
        "  may {} run with {}? [y/n]",
        request.tool, request.arguments
    );
    Ok(match raf_examples::ask(&question, "y").await?.as_str() {
        "y" | "yes" => ApprovalAnswer::approve(),
        _ => ApprovalAnswer::deny("the user does not want that"),
    })
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    // In a program of your own: `raf_openai::OpenAiChatClient::from_env()?`, or another provider's.
    let provider = raf_examples::provider(script())?;
    // What a run fails with is shown at its end; the log says it again only if it is asked for.
    let quiet = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into());
    tracing_subscriber::fmt()
        .with_env_filter(quiet.from_env_lossy())
        .with_writer(std::io::stderr)
        .init();

    let tools = ToolRegistry::builder()
        .with_tool(tool_fn("weather", "Says what the weather is now.", weather))
        .with_tool(tool_fn("next_train", "Finds the next train.", next_train))
        .with_tool(tool_fn("buy_ticket", "Buys a train ticket.", buy_ticket).with_approval())
        .build()?;
    let client = ChatClientBuilder::new(provider)
        .logging()
        .approving(ask_person)
        .function_invoking(tools)
        .build()?;

    let question = "What is the weather in Bern, and when is the next train there from Zurich? \
                    If it is sunny, buy me a ticket.";
    println!("\n> {question}\n");
    let conversation = [ChatMessage::user(question)];
    let mut updates = client
        .run(&conversation, ChatClientRunOptions::new())
        .await?;
    while let Some(update) = updates.next().await {
        show(&update?)?;
    }
    Ok(())
}

/// Shows an update at the moment at which it comes.
fn show(update: &AgentResponseUpdate) -> std::io::Result<()> {
    match update {
        AgentResponseUpdate::TextDelta { text } => print!("{text}"),
        AgentResponseUpdate::MessageEnd { .. } => println!(),
        AgentResponseUpdate::ToolStarted { call, .. } => println!("  {} runs …", call.name),
        AgentResponseUpdate::ToolCallEnd { call, .. } => {
            print!("\n  calls {} with {}", call.name(), call.arguments());
        }
        AgentResponseUpdate::ToolCalled { result, .. } => {
            println!("  {} returned: {}", result.name(), result.text());
        }
        AgentResponseUpdate::Finish { finish } => println!(
            "\nEnded with {:?} after {} model requests: {} tokens in, {} out.",
            finish.reason,
            finish.rounds.len(),
            finish.usage.input_tokens.unwrap_or(0),
            finish.usage.output_tokens.unwrap_or(0),
        ),
        _ => {}
    }
    std::io::stdout().flush()
}

/// What the scripted endpoint says where there is no model: it calls two tools in one reply, then the
/// gated one, then answers with what they returned.
fn script() -> [Reply; 3] {
    let look_up = raf_examples::say("Let me look up both.")
        .call("call_1", "weather", r#"{"city": "Bern"}"#)
        .call(
            "call_2",
            "next_train",
            r#"{"from": "Zurich", "to": "Bern"}"#,
        )
        .usage(168, 41);
    let buy = raf_examples::say("It is sunny.")
        .call(
            "call_3",
            "buy_ticket",
            r#"{"journey": {"from": "Zurich", "to": "Bern"}, "at": "10:02"}"#,
        )
        .usage(243, 37);
    let answer = |request: &ScriptedRequest| {
        let results = request.messages.iter().flat_map(ChatMessage::tool_results);
        let results: Vec<String> = results.map(raf_core::ToolResult::text).collect();
        raf_examples::say(&format!(
            "Here is what I found. The weather: {}. The train: {}. The ticket: {}.",
            results[0], results[1], results[2]
        ))
        .usage(301, 44)
    };
    [look_up, buy, Reply::from_fn(answer)]
}
