//! agent-framework: asks one question and prints the answer as it comes.

use std::io::Write;

use agent_framework::prelude::*;
use futures_util::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let [url, model] = minimal_arguments();
    let client = OpenAIChatCompletionClient::new("none", model).with_base_url(url);
    let agent = Agent::builder(client).build();
    let messages = vec![Message::user("Say something.")];
    let mut updates = agent.run_stream_once(messages).await?;
    while let Some(update) = updates.next().await {
        for text in update?.contents.iter().filter_map(Content::as_text) {
            print!("{text}");
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The base URL and the model.
fn minimal_arguments() -> [String; 2] {
    let mut arguments = std::env::args().skip(1);
    [(); 2].map(|()| arguments.next().expect("BASE_URL MODEL"))
}
