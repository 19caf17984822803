//! Faults in what is sent and in tools.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient, MessageRole, Result,
    ToolDeclaration, ToolResult, TrustLabel, UpdateStream,
};
use raf_tools::{ITool, ToolArguments, ToolContext, ToolError, ToolLimits, ToolOutput};

use super::{Fault, Plant};

/// Sends something else than the loop said.
#[derive(Debug)]
pub(super) struct FaultyRequest {
    pub(super) inner: Arc<dyn IChatClient>,
    pub(super) plant: Plant,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for FaultyRequest {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let mut messages = messages.to_vec();
        let last_result = messages
            .iter()
            .rposition(|message| message.role() == MessageRole::Tool);
        match (self.plant.fault, last_result) {
            (Fault::ResultNotSent, Some(place)) => {
                self.plant.bears();
                messages.remove(place);
            }
            (Fault::PairsCrossed, Some(place)) if place > 0 => {
                let pair = messages[place - 1..=place]
                    .iter()
                    .map(|message| message.tool_results().next().cloned())
                    .collect::<Option<Vec<_>>>();
                if let Some([first, second]) = pair.as_deref() {
                    self.plant.bears();
                    let behind = |call: &ToolResult, result: &ToolResult| {
                        ChatMessage::tool(result.to_builder().call_id(call.call_id()).build())
                    };
                    messages[place - 1] = behind(first, second);
                    messages[place] = behind(second, first);
                }
            }
            (Fault::PrefixChanged, Some(_)) => {
                self.plant.bears();
                messages[0] = ChatMessage::user("something else");
            }
            _ => {}
        }
        self.inner.run(&messages, options).await
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

/// Enters a body that failed once more: "the loop never re-enters a failed call by itself".
#[derive(Debug)]
pub(super) struct FaultyTool {
    pub(super) inner: Arc<dyn ITool>,
    pub(super) plant: Plant,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ITool for FaultyTool {
    fn declaration(&self) -> &ToolDeclaration {
        self.inner.declaration()
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        let first = self.inner.call(context.clone(), arguments.clone()).await;
        if first.is_ok() {
            return first;
        }
        self.plant.bears();
        self.inner.call(context, arguments).await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn requires_approval(&self) -> bool {
        self.inner.requires_approval()
    }

    fn limits(&self) -> ToolLimits {
        self.inner.limits()
    }

    fn trust(&self) -> TrustLabel {
        self.inner.trust()
    }
}
