//! genai: asks one question and prints the answer as it comes.

use std::error::Error;
use std::io::Write;

use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatRequest, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{url}/")),
        auth: AuthData::from_single("none"),
        model: ModelIden::new(AdapterKind::OpenAI, model),
    };
    let request = ChatRequest::from_user("Say something.");
    let client = Client::builder().build()?;
    let mut events = client.exec_chat_stream(target, request, None).await?.stream;
    while let Some(event) = events.next().await {
        if let ChatStreamEvent::Chunk(chunk) = event? {
            print!("{}", chunk.content);
            std::io::stdout().flush()?;
        }
    }
    Ok(())
}

/// The base URL and the model.
fn minimal_arguments() -> [String; 2] {
    let mut arguments = std::env::args().skip(1);
    [(); 2].map(|()| arguments.next().expect("BASE_URL MODEL"))
}
