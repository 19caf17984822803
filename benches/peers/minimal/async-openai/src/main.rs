//! async-openai: asks one question and prints the answer as it comes.

use std::error::Error;
use std::io::Write;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessage, CreateChatCompletionRequestArgs,
};
use futures_util::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let config = OpenAIConfig::new().with_api_base(url).with_api_key("none");
    let message = ChatCompletionRequestUserMessage::from("Say something.");
    let request = CreateChatCompletionRequestArgs::default()
        .model(model)
        .messages(vec![message.into()])
        .build()?;
    let client = Client::with_config(config);
    let mut chunks = client.chat().create_stream(request).await?;
    while let Some(chunk) = chunks.next().await {
        let choice = chunk?.choices.into_iter().next();
        let text = choice.and_then(|choice| choice.delta.content);
        print!("{}", text.unwrap_or_default());
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// The base URL and the model.
fn minimal_arguments() -> [String; 2] {
    let mut arguments = std::env::args().skip(1);
    [(); 2].map(|()| arguments.next().expect("BASE_URL MODEL"))
}
