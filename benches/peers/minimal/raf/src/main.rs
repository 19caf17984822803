//! raf, the provider alone: asks one question and prints the answer as it comes.

use std::error::Error;
use std::io::Write;

use futures_util::StreamExt;
use raf_core::{ChatClientExt, ChatClientRunOptions, ChatMessage};
use raf_openai::{OpenAiChatClient, OpenAiOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let options = OpenAiOptions::new()
        .with_api_key("none")
        .with_base_url(url)
        .with_model(model);
    let client = OpenAiChatClient::new(options)?;
    let messages = [ChatMessage::user("Say something.")];
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
