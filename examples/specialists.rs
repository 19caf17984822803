//! An agent with two specialist agents as its tools: their work streams through, with the call that it
//! belongs to; what it costs is in the sum.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::io::{self, Write};

use futures::StreamExt;
use raf_core::{AgentResponseUpdate, Result};
use raf_framework::AgentRuntime;
use raf_testing::Reply;
use raf_tools::tool_fn;
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct City {
    /// The name of a city.
    city: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let weather = tool_fn(
        "weather",
        "Tomorrow's weather in a city.",
        |city: City| async move { format!("{}: sun, 24 °C", city.city) },
    );
    let meteorologist = AgentRuntime::builder(raf_examples::provider(meteorologist())?)
        .name("meteorologist")
        .description("Knows the weather of tomorrow.")
        .instructions("You know the weather. Look it up, and answer in one sentence.")
        .tools([weather])
        .build()?;
    let guide = AgentRuntime::builder(raf_examples::provider(guide())?)
        .name("guide")
        .description("Knows what there is to see in a city.")
        .instructions("You are a city guide. Name one place, in one sentence.")
        .build()?;

    let planner = AgentRuntime::builder(raf_examples::provider(planner())?)
        .instructions("Plan a day. Ask the specialists, both at once, then decide.")
        .tools([meteorologist.as_tool()?, guide.as_tool()?])
        .build()?;

    let question = "What shall I do tomorrow in Bern?";
    println!("\n> {question}\n");
    let mut run = planner.run(question);
    while let Some(update) = run.next().await {
        show(&update?).map_err(|error| raf_core::Error::misuse(error.to_string()))?;
    }
    Ok(())
}

fn show(update: &AgentResponseUpdate) -> io::Result<()> {
    match update {
        AgentResponseUpdate::TextDelta { text } => print!("{text}"),
        AgentResponseUpdate::MessageEnd { .. } => println!(),
        AgentResponseUpdate::ToolStarted { call, .. } => println!("  > {} is asked", call.name),
        AgentResponseUpdate::Nested { nested, .. } => {
            // The id of a nested run is the address of its call: its last part is the tool.
            let who = nested
                .run_id
                .as_str()
                .rsplit('/')
                .next()
                .unwrap_or_default();
            match &nested.update {
                AgentResponseUpdate::ToolCalled { result, .. } => {
                    println!("    {who} looks: {}", result.text());
                }
                AgentResponseUpdate::TextDelta { text } => println!("    {who}: {text}"),
                _ => {}
            }
        }
        AgentResponseUpdate::Finish { finish } => {
            let nested = finish.rounds.iter().filter(|round| round.nested.is_some());
            println!(
                "{} model requests, {} of them by the specialists.",
                finish.rounds.len(),
                nested.count()
            );
        }
        _ => {}
    }
    io::stdout().flush()
}

/// What the scripted endpoints say where there is no model.
fn planner() -> [Reply; 2] {
    [
        raf_examples::say("I will ask those who know.")
            .call(
                "call_1",
                "meteorologist",
                r#"{"task": "The weather in Bern tomorrow?"}"#,
            )
            .call(
                "call_2",
                "guide",
                r#"{"task": "What is there to see in Bern outdoors?"}"#,
            ),
        raf_examples::say("It will be sunny: take a walk in the rose garden."),
    ]
}

fn meteorologist() -> [Reply; 2] {
    [
        Reply::calls([("call_1", "weather", r#"{"city": "Bern"}"#)]),
        Reply::text("It will be sunny, with 24 degrees."),
    ]
}

fn guide() -> [Reply; 1] {
    [Reply::text(
        "The rose garden looks over the whole old town.",
    )]
}
