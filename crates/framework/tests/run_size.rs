//! What a run in flight holds: counted by the allocator, in a test binary of its own.

use async_trait::async_trait;
use futures::StreamExt;
use peak_alloc::PeakAlloc;
use raf_core::{
    AgentResponseUpdate, ChatClientBuilder, ChatClientRunOptions, ChatMessage, Finish,
    FinishReason, IChatClient, MessageRole, Result, ToolCall, UpdateStream, Usage,
};
use raf_framework::ChatClientBuilderExt;
use raf_tools::schemars::JsonSchema;
use raf_tools::tool_fn;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Law of the project: what a run in flight may cost over its transport.
const MOST_BYTES: usize = 20 * 1024;
/// Runs that are in flight at once; what is there once for all of them disappears in the mean.
const RUNS: usize = 200;
/// Rounds with calls before the answer, and the calls of each.
const ROUNDS: usize = 2;
const CALLS: u32 = 4;

/// Calls a tool four times in each of two rounds, then answers piece by piece.
#[derive(Debug)]
struct Model;

#[async_trait]
impl IChatClient for Model {
    async fn run(&self, messages: &[ChatMessage], _: ChatClientRunOptions) -> Result<UpdateStream> {
        let is_reply = |message: &&ChatMessage| message.role() == MessageRole::Assistant;
        let round = messages.iter().filter(is_reply).count();
        let mut updates = vec![AgentResponseUpdate::assistant_start()];
        let mut reason = FinishReason::Stop;
        if round < ROUNDS {
            reason = FinishReason::ToolCalls;
            for position in 0..CALLS {
                let id = format!("call_{round}_{position}_0123456789abcdef");
                let call = ToolCall::new(id, "look_up", r#"{"key":"item-17","amount":42}"#);
                updates.push(AgentResponseUpdate::ToolCallEnd { position, call });
            }
        } else {
            updates.extend(["The answer ", "is ", "42."].map(AgentResponseUpdate::text));
        }
        updates.push(AgentResponseUpdate::message_end());
        let finish = Finish::new(reason).with_usage(Usage::new(10, 2));
        updates.push(AgentResponseUpdate::finish(finish));
        Ok(futures::stream::iter(updates.into_iter().map(Ok)).boxed())
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "raf_tools::schemars")]
struct LookUp {
    key: String,
    amount: u32,
}

#[tokio::test]
async fn a_run_in_flight_holds_at_most_20_kib() -> Result<()> {
    let tool = tool_fn(
        "look_up",
        "Looks it up.",
        |LookUp { key, amount }| async move { format!("{key} has the value {amount}") },
    );
    let client = ChatClientBuilder::new(Model)
        .logging()
        .function_invoking([tool])
        .build()?;
    let messages = [
        ChatMessage::system("You look things up, and say what you found."),
        ChatMessage::user("What is the value of the items?"),
    ];
    // One run to its end: what is made once is there then.
    client
        .run(&messages, ChatClientRunOptions::new())
        .await?
        .collect::<Vec<_>>()
        .await;
    let mut in_flight = Vec::with_capacity(RUNS);
    let before = ALLOCATOR.current_usage();
    for _ in 0..RUNS {
        let mut updates = client.run(&messages, ChatClientRunOptions::new()).await?;
        // Up to the first piece of the answer.
        while let Some(update) = updates.next().await {
            if matches!(update?, AgentResponseUpdate::TextDelta { .. }) {
                break;
            }
        }
        in_flight.push(updates);
    }
    let each = ALLOCATOR.current_usage().saturating_sub(before) / RUNS;
    for updates in in_flight {
        let rest: Vec<_> = updates.collect().await;
        let end = rest.into_iter().last().expect("a terminal item")?;
        assert!(matches!(end, AgentResponseUpdate::Finish { .. }));
    }
    assert!(each <= MOST_BYTES, "a run in flight holds {each} bytes");
    Ok(())
}
