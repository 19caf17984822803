//! Tools by macro: a function and its doc comments are all there is to write.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage};
use raf_framework::ChatClientBuilderExt;
use raf_macros::tool;
use raf_testing::Reply;
use raf_tools::{ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

/// Tells the weather of a city.
#[tool(idempotent)]
async fn weather(
    /// The name of a city, in English.
    city: String,
    /// Celsius if left out.
    unit: Option<Unit>,
) -> Result<String, ToolError> {
    if city.trim().is_empty() {
        return Err(ToolError::invalid_parameters("city must hold a name"));
    }
    Ok(match unit {
        Some(Unit::Fahrenheit) => format!("64 °F in {city}"),
        Some(Unit::Celsius) | None => format!("18 °C in {city}"),
    })
}

/// Books a seat on the next train.
#[tool]
async fn book_train(
    context: ToolContext,
    /// Where it goes.
    to: String,
) -> String {
    context.progress("asking the railway");
    // The same whenever this very call is run again: the railway books one seat for it.
    format!("booked to {to} as {}", context.idempotency_key())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = [weather(), book_train()];
    for tool in &tools {
        let declaration = raf_tools::ITool::declaration(tool);
        println!("{}: {}", declaration.name(), declaration.description());
    }
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking(tools)
        .build()?;
    let question = [ChatMessage::user(
        "If Oslo is warmer than 15 °C, book me a train there.",
    )];
    let options = ChatClientRunOptions::new();
    let response = client.get_response(&question, options).await?;
    for result in response.messages.iter().flat_map(ChatMessage::tool_results) {
        println!("  {}: {}", result.name(), result.text());
    }
    println!("{}", response.text());
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 3] {
    [
        Reply::calls([("call_1", "weather", r#"{"city": "Oslo"}"#)]),
        Reply::calls([("call_2", "book_train", r#"{"to": "Oslo"}"#)]),
        Reply::text("It is 18 °C in Oslo, and a seat is booked."),
    ]
}
