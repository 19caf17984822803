//! raf: the provider alone for one response, the stack of logging, function invocation and provider
//! for the loop; public API, default options. Which provider, say the binaries.

use std::sync::Arc;

use bench_common::spec::{self, Scenario, Turn, Wire};
use bench_common::tools::{self, LookupArgs, WriteArgs};
use bench_common::{Library, Outcome, Result};
use futures_util::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientBuilder, ChatClientRunOptions, ChatMessage, IChatClient,
    ToolDeclaration,
};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_tools::{ToolOutput, ToolRegistry, dynamic_tool};

/// A provider as a user makes it.
pub trait Provider: Send + Sync + 'static {
    /// The column's name.
    const NAME: &'static str;
    const WIRE: Wire;
    type Client: IChatClient + Clone + 'static;

    /// A client of this endpoint and model, all else by default.
    fn connect(base_url: &str, model: String) -> Result<Self::Client>;
}

/// The library with one provider.
pub struct Raf<P: Provider> {
    provider: P::Client,
    stack: Arc<dyn IChatClient>,
}

impl<P: Provider> Library for Raf<P> {
    const NAME: &'static str = P::NAME;
    const WIRE: Wire = P::WIRE;
    type History = Vec<ChatMessage>;

    fn new(base_url: &str, scenario: Scenario) -> Result<Self> {
        let provider = P::connect(base_url, scenario.model())?;
        let mut registry = ToolRegistry::builder();
        for name in spec::TOOL_NAMES {
            let declaration = ToolDeclaration::new(name, spec::TOOL_DESCRIPTION)
                .with_parameters(&tools::lookup_schema());
            registry = registry.with_tool(dynamic_tool(declaration, |_, arguments| async move {
                let args: LookupArgs = serde_json::from_value(arguments)?;
                Ok::<_, serde_json::Error>(ToolOutput::text(tools::lookup(&args)))
            }));
        }
        let options =
            FunctionInvokingOptions::new().with_max_rounds(u32::try_from(scenario.rounds())? + 1);
        let stack = ChatClientBuilder::new(provider.clone())
            .logging()
            .layer(FunctionInvokingChatClient::layer(
                registry.build()?,
                options,
            ))
            .build()?;
        Ok(Self { provider, stack })
    }

    fn history(&self, turns: &[Turn]) -> Self::History {
        let message = |turn: &Turn| match turn.from_user {
            true => ChatMessage::user(&turn.text),
            false => ChatMessage::assistant(&turn.text),
        };
        turns.iter().map(message).collect()
    }

    async fn stream_once(&self) -> Result<Outcome> {
        let messages = [
            ChatMessage::system(spec::SYSTEM_PROMPT),
            ChatMessage::user(spec::USER_PROMPT),
        ];
        let mut updates = self
            .provider
            .run(&messages, ChatClientRunOptions::new())
            .await?;
        let mut outcome = Outcome {
            rounds: 1,
            ..Outcome::default()
        };
        while let Some(update) = updates.next().await {
            match update? {
                AgentResponseUpdate::TextDelta { text } => outcome.text_len += text.len(),
                AgentResponseUpdate::ToolCallEnd { call, .. } => {
                    outcome.count_call(&serde_json::from_str::<WriteArgs>(call.arguments())?);
                }
                _ => {}
            }
        }
        Ok(outcome)
    }

    async fn agent_loop(&self, history: &Self::History) -> Result<Outcome> {
        let mut messages = Vec::with_capacity(history.len() + 2);
        messages.push(ChatMessage::system(spec::SYSTEM_PROMPT));
        messages.extend_from_slice(history);
        messages.push(ChatMessage::user(spec::USER_PROMPT));
        let mut updates = self
            .stack
            .run(&messages, ChatClientRunOptions::new())
            .await?;
        let mut outcome = Outcome::default();
        while let Some(update) = updates.next().await {
            match update? {
                AgentResponseUpdate::MessageStart { .. } => {
                    outcome.rounds += 1;
                    outcome.text_len = 0;
                }
                AgentResponseUpdate::TextDelta { text } => outcome.text_len += text.len(),
                _ => {}
            }
        }
        Ok(outcome)
    }
}
