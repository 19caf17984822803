//! rig: asks one question and prints the answer as it comes.

use std::error::Error;
use std::io::Write;

use futures_util::StreamExt;
use rig::completion::CompletionRequest;
use rig::providers::openai::{OpenAIConfig, Route};
use rig::streaming::{Item, StreamEvent};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let client = OpenAIConfig::new("none")
        .with_base_url(url)
        .with_route(Route::Chat)
        .client();
    let request = CompletionRequest::new("Say something.");
    let mut stream = client.chat(model).stream(request)?;
    while let Some(item) = stream.next().await {
        if let Item::Event(StreamEvent::Text { text, .. }) = item? {
            print!("{text}");
            std::io::stdout().flush()?;
        }
    }
    stream.finish().await?;
    Ok(())
}

/// The base URL and the model.
fn minimal_arguments() -> [String; 2] {
    let mut arguments = std::env::args().skip(1);
    [(); 2].map(|()| arguments.next().expect("BASE_URL MODEL"))
}
