//! Ten thousand runs on shared objects leave memory as it was: counted by the allocator, in a test
//! binary of its own.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use peak_alloc::PeakAlloc;
use raf_core::{
    AgentResponseUpdate, CancellationToken, ChatClientRunOptions, ChatMessage, Finish,
    FinishReason, IChatClient, MessageRole, Result, Session, ToolCall, UpdateStream, Usage,
};
use raf_framework::{
    AgentRequest, AgentRuntime, ContextRequest, IContextProvider, ProvidedContext,
};
use raf_tools::{ITool, tool_fn};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Calls each tool that it is offered, then answers; it remembers nothing.
#[derive(Debug)]
struct Model;

#[async_trait]
impl IChatClient for Model {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let answers = messages
            .last()
            .is_some_and(|message| message.role() == MessageRole::Tool);
        let mut updates = vec![AgentResponseUpdate::assistant_start()];
        let mut reason = FinishReason::Stop;
        if answers || options.tools.is_empty() {
            updates.push(AgentResponseUpdate::text("done"));
        } else {
            reason = FinishReason::ToolCalls;
            for (position, tool) in (0..).zip(&options.tools) {
                let id = format!("c{position}");
                let call = ToolCall::new(id, tool.name(), r#"{"task": "do it"}"#);
                updates.push(AgentResponseUpdate::ToolCallEnd { position, call });
            }
        }
        updates.push(AgentResponseUpdate::message_end());
        let finish = Finish::new(reason).with_usage(Usage::new(10, 2));
        updates.push(AgentResponseUpdate::finish(finish));
        Ok(futures::stream::iter(updates.into_iter().map(Ok)).boxed())
    }
}

#[derive(Debug)]
struct Profile;

#[async_trait]
impl IContextProvider for Profile {
    fn name(&self) -> &'static str {
        "profile"
    }

    async fn provide(&self, _: &ContextRequest<'_>) -> Result<ProvidedContext> {
        Ok(ProvidedContext::new().with_instructions("The user is Ada."))
    }
}

/// All runs share one token, which nobody cancels: it must not remember those that have ended.
async fn play(
    agent: &AgentRuntime,
    token: &CancellationToken,
    runs: std::ops::Range<u32>,
) -> Result<usize> {
    for run in runs {
        let options = ChatClientRunOptions::new().with_cancellation(token.clone());
        let mut request = AgentRequest::new("go").with_options(options);
        if run % 2 == 0 {
            request = request.in_session(Session::in_memory());
        }
        if run % 10 == 9 {
            // Some runs are dropped in the middle.
            let mut dropped = agent.run(request);
            for _ in 0..run % 17 {
                let _ = dropped.next().await;
            }
        } else {
            assert_eq!(agent.ask(request).await?.text(), "done");
        }
        tokio::task::yield_now().await;
    }
    Ok(ALLOCATOR.current_usage())
}

#[tokio::test]
async fn ten_thousand_runs_leave_memory_flat() -> Result<()> {
    let plain = tool_fn("plain", "Does it.", |()| async { "x" });
    let sub = AgentRuntime::builder(Model)
        .name("sub")
        .description("Does it too.")
        .tools([tool_fn("own", "Does it.", |()| async { "y" })])
        .build()?;
    let tools: Vec<Arc<dyn ITool>> = vec![Arc::new(plain), Arc::new(sub.as_tool()?)];
    let agent = AgentRuntime::builder(Model)
        .instructions("Be brief.")
        .context_provider(Profile)
        .tools(tools)
        .build()?;
    let token = CancellationToken::new();
    let after_1_000 = play(&agent, &token, 0..1_000).await?;
    let after_10_000 = play(&agent, &token, 1_000..10_000).await?;
    let growth = after_10_000.saturating_sub(after_1_000);
    assert!(
        growth * 100 <= after_1_000,
        "{after_1_000} bytes were live after 1,000 runs, {after_10_000} after 10,000"
    );
    Ok(())
}
