//! raf with the loop: asks one question, runs the one tool that it offers, and prints the answer as it
//! comes.

use std::error::Error;
use std::io::Write;

use futures_util::StreamExt;
use raf_core::{ChatClientBuilder, ChatClientExt, ChatClientRunOptions, ChatMessage};
use raf_framework::ChatClientBuilderExt;
use raf_openai::{OpenAiChatClient, OpenAiOptions};
use raf_tools::{ToolRegistry, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
}

async fn weather(place: Place) -> String {
    format!("sunny in {}", place.city)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let options = OpenAiOptions::new()
        .with_api_key("none")
        .with_base_url(url)
        .with_model(model);
    let tools = ToolRegistry::builder()
        .with_tool(tool_fn("weather", "The weather of a city.", weather))
        .build()?;
    let client = ChatClientBuilder::new(OpenAiChatClient::new(options)?)
        .function_invoking(tools)
        .build()?;
    let messages = [ChatMessage::user("How is the weather in Rome?")];
    let options = ChatClientRunOptions::new();
    let mut text = client.stream_text(&messages, options).await?;
    while let Some(piece) = text.next().await {
        print!("{}", piece?);
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The base URL and the model.
fn minimal_arguments() -> [String; 2] {
    let mut arguments = std::env::args().skip(1);
    [(); 2].map(|()| arguments.next().expect("BASE_URL MODEL"))
}
