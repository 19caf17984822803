//! What a context provider is asked, what it brings, and what it is told in the end.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    AgentResponse, ChatClientRunOptions, ChatMessage, Error, Extensions, MessageSource, Result,
};
use raf_tools::IToolSource;

/// Brings instructions, messages and tools into each run of an agent: memory, a profile, retrieved
/// documents.
///
/// Providers are asked one after another, in the order in which they were added, at the beginning of
/// each leg, also of one that resumes a run: the tools of calls that wait must be there. In the same
/// order they are told how the leg ended, before its terminal item is seen. A leg whose stream is
/// dropped is told to nobody: no task outlives it. A panic counts as a failure.
#[async_trait]
pub trait IContextProvider: Debug + Send + Sync {
    /// Names it in errors and logs.
    fn name(&self) -> &str;

    /// What it brings to a leg.
    ///
    /// # Errors
    /// What keeps it from answering; [`on_failure`](Self::on_failure) says what follows.
    async fn provide(&self, request: &ContextRequest<'_>) -> Result<ProvidedContext>;

    /// Told how the leg ended, if it was asked and had answered. Default: nothing.
    ///
    /// # Errors
    /// What keeps it from its work; [`on_failure`](Self::on_failure) says what follows.
    async fn finished(&self, outcome: &ContextOutcome<'_>) -> Result<()> {
        let _ = outcome;
        Ok(())
    }

    /// What its failure means. Default: the run fails with it.
    fn on_failure(&self) -> ProviderFailure {
        ProviderFailure::FailRun
    }
}

/// What the failure of a context provider means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderFailure {
    /// The run fails with it.
    #[default]
    FailRun,
    /// The run goes on without it; the stream says so with an `Error` update.
    Skip,
}

/// The leg that a provider is asked about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ContextRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [ChatMessage],
    /// The session, if the run belongs to one.
    pub session_id: Option<&'a str>,
    /// Whether the leg brings answers to a run that waits, instead of a new message.
    pub resumes: bool,
    /// Per-run things that the caller gave with the options.
    pub extensions: &'a Extensions,
}

impl<'a> ContextRequest<'a> {
    pub(super) fn new(messages: &'a [ChatMessage], options: &'a ChatClientRunOptions) -> Self {
        Self {
            messages,
            session_id: options.session_id.as_deref(),
            resumes: !options.tool_approval_responses.is_empty(),
            extensions: &options.extensions,
        }
    }
}

/// How a leg ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ContextOutcome<'a> {
    /// The conversation before the leg.
    pub messages: &'a [ChatMessage],
    /// The session, if the run belongs to one.
    pub session_id: Option<&'a str>,
    /// The response, a pause and a limit among them; or what the leg failed with.
    pub result: std::result::Result<&'a AgentResponse, &'a Error>,
}

/// What a provider brings to a leg.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ProvidedContext {
    /// Added to the agent's instructions.
    pub instructions: Option<String>,
    /// In front of the conversation, in each request of the leg.
    pub messages: Vec<ChatMessage>,
    /// Appended to the conversation, and kept with it.
    pub stored_messages: Vec<ChatMessage>,
    /// Tools, behind those of the agent and of the run where names clash.
    pub tools: Vec<Arc<dyn IToolSource>>,
}

impl ProvidedContext {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds to the agent's instructions.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a message in front of the conversation. It is in each request of the leg, tagged
    /// [`MessageSource::ContextProvider`], and in no transcript.
    pub fn with_message(mut self, message: impl Into<ChatMessage>) -> Self {
        self.messages.push(tagged(&message.into()));
        self
    }

    /// Appends a message to the conversation when a new turn begins: it is emitted, and kept with the
    /// transcript, tagged [`MessageSource::ContextProvider`].
    pub fn with_stored_message(mut self, message: impl Into<ChatMessage>) -> Self {
        self.stored_messages.push(tagged(&message.into()));
        self
    }

    /// Adds tools.
    pub fn with_tools(mut self, tools: impl IToolSource + 'static) -> Self {
        self.tools.push(Arc::new(tools));
        self
    }
}

fn tagged(message: &ChatMessage) -> ChatMessage {
    let source = MessageSource::ContextProvider;
    message.to_builder().source(source).build()
}
