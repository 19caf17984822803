//! A layer of one's own: it adds up the tokens of every model request that passes through.
//!
//! It is put inside the loop, so that it sees model requests, not legs. The last lines of the file
//! hold it to the laws of a layer: `cargo test -p raf-examples --example write_a_layer`.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientLayer, ChatClientMetadata, ChatClientRunOptions,
    ChatMessage, IChatClient, LayerPlacement, Result, UpdateStream,
};
use raf_framework::ChatClientBuilderExt;
use raf_testing::Reply;
use raf_tools::tool_fn;

/// Tokens added up. A cheap handle: clones count together.
#[derive(Clone, Debug, Default)]
struct TokenCount(Arc<AtomicU64>);

impl TokenCount {
    fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds up the tokens of all requests.
///
/// Place: inside the loop. Dropping the stream drops the inner stream; a request that was dropped or
/// failed is not counted.
#[derive(Clone, Debug)]
struct CountingChatClient {
    inner: Arc<dyn IChatClient>,
    tokens: TokenCount,
}

impl CountingChatClient {
    fn new(inner: Arc<dyn IChatClient>, tokens: TokenCount) -> Self {
        Self { inner, tokens }
    }

    fn layer(tokens: TokenCount) -> ChatClientLayer {
        ChatClientLayer::new("counting", LayerPlacement::InsideLoop, |inner| {
            Self::new(inner, tokens)
        })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for CountingChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let tokens = self.tokens.clone();
        let updates = self.inner.run(messages, options).await?;
        let counted = updates.inspect(move |item| {
            if let Ok(AgentResponseUpdate::Finish { finish }) = item {
                let spent = finish.usage.total_tokens.unwrap_or(0);
                tokens.0.fetch_add(spent, Ordering::Relaxed);
            }
        });
        Ok(counted.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let tokens = TokenCount::default();
    let time = tool_fn("time", "Says what time it is.", |(): ()| async { "noon" });
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking([time])
        .layer(CountingChatClient::layer(tokens.clone()))
        .build()?;
    for question in ["What time is it?", "Thank you."] {
        let answer = client.get_text(question).await?;
        println!("> {question}\n{answer} ({} tokens so far)", tokens.total());
    }
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 3] {
    [
        Reply::calls([("call_1", "time", "{}")]).usage(60, 12),
        Reply::text("It is noon.").usage(85, 5),
        Reply::text("You are welcome.").usage(50, 4),
    ]
}

#[cfg(test)]
raf_testing::decorator_contract!(
    counting: CountingChatClient,
    |inner| CountingChatClient::new(inner, TokenCount::default())
);
