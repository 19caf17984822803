//! How streams are read, and what a caller gave.

use std::time::Duration;

use futures::StreamExt;
use raf_core::{
    AgentResponse, Cancellation, ChatClientRunOptions, ChatMessage, IChatClient, ResponseFold,
    Result, UpdateStream,
};

use crate::canonical;
use crate::watch::Item;

/// The items until none comes any more, and whether the stream ended. Needs a paused clock.
pub(super) async fn until_stuck(stream: &mut UpdateStream) -> (Vec<Item>, bool) {
    let mut items = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_secs(3600), stream.next()).await {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return (items, true),
            Err(_) => return (items, false),
        }
    }
}

/// Collects a stream item by item; after its end nothing may come any more.
pub(super) async fn by_items(
    client: &dyn IChatClient,
    messages: &[ChatMessage],
    options: ChatClientRunOptions,
    faults: &mut Vec<String>,
) -> Result<AgentResponse> {
    let mut stream = client.run(messages, options).await?;
    let mut fold = ResponseFold::new();
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(update) => fold.push(&update),
            Err(error) => failure = Some(error),
        }
    }
    if stream.next().await.is_some() {
        faults.push("an item came after the stream's end".to_owned());
    }
    match failure {
        Some(error) => Err(fold.fail(error)),
        None => fold.finish(),
    }
}

/// What a caller gives, as text.
pub(super) fn input_now(
    messages: &[ChatMessage],
    options: &ChatClientRunOptions,
) -> (Vec<String>, String) {
    (canonical::messages(messages), described(options))
}

/// Options in words, without the cancellation, which is meant to change; the paused run as its JSON,
/// since calls remember that they were parsed.
fn described(options: &ChatClientRunOptions) -> String {
    let mut options = options.clone().with_cancellation(Cancellation::new());
    let paused = serde_json::to_string(&options.paused_run.take()).unwrap_or_default();
    format!("{options:?} {paused}")
}
