//! By hand: asks one question and prints the answer as it comes.

use std::error::Error;
use std::io::Write;

use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [url, model] = minimal_arguments();
    let messages = json!([{"role": "user", "content": "Say something."}]);
    let request = reqwest::Client::new()
        .post(format!("{url}/chat/completions"))
        .bearer_auth("none")
        .json(&json!({"model": model, "stream": true, "messages": messages}));
    let response = request.send().await?.error_for_status()?;
    let mut events = response.bytes_stream().eventsource();
    while let Some(event) = events.next().await {
        let event = event?;
        if event.data == "[DONE]" {
            break;
        }
        let chunk: Value = serde_json::from_str(&event.data)?;
        let text = chunk["choices"][0]["delta"]["content"].as_str();
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
