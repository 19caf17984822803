//! A model without a network: it writes the request that a provider would send, and answers by rote.

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Finish, FinishReason, IChatClient,
    Result, ToolCall, UpdateStream, Usage,
};
use raf_openai::OpenAiChatClient;

/// Asks for calls in each round but the last, then answers. It keeps nothing between requests.
#[derive(Debug)]
pub struct Replay {
    /// Writes the body of each request.
    pub writer: OpenAiChatClient,
    /// How many requests a run makes.
    pub rounds: u32,
    /// How many calls each reply but the last asks for.
    pub calls: u32,
    /// How many deltas the last reply has.
    pub deltas: u32,
    /// How many messages there are before the run.
    pub before: usize,
}

#[async_trait]
impl IChatClient for Replay {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let body = self.writer.request_body(messages, &options)?;
        assert!(body.ends_with('}'), "a whole body");
        let added = messages.len() - self.before;
        let round = added / (self.calls as usize + 1);
        let is_last = round + 1 >= self.rounds as usize;
        let deltas = if is_last { self.deltas } else { 0 };
        let calls = if is_last { 0 } else { self.calls };
        let reason = if is_last {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        let call = move |position: u32| {
            let id = format!("call_{round}_{position}");
            let arguments = format!(r#"{{"key":"key {round} {position}","limit":{position}}}"#);
            AgentResponseUpdate::ToolCallEnd {
                position,
                call: ToolCall::new(id, "lookup_0", arguments),
            }
        };
        let end = Finish::new(reason).with_usage(Usage::new(10, 2));
        let updates = std::iter::once_with(AgentResponseUpdate::assistant_start)
            .chain((0..deltas).map(|_| AgentResponseUpdate::text("some words ")))
            .chain((0..calls).map(call))
            .chain([
                AgentResponseUpdate::message_end(),
                AgentResponseUpdate::finish(end),
            ]);
        Ok(futures::stream::iter(updates.map(Ok)).boxed())
    }
}
