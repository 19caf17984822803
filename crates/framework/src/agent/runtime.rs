//! The agent: a stack of layers, and conversations that go through it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use raf_core::{
    AgentResponse, AgentResponseUpdate, Emitter, Error, ErrorKind, IChatClient, Result,
    UpdateStream, collect, emit_stream,
};
use raf_tools::schemars::JsonSchema;
use raf_tools::{TypedOutput, TypedResponse};
use serde::de::DeserializeOwned;

use super::config::{AgentConfig, AgentConfigBuilder};
use super::conversation::Conversation;
use super::request::AgentRequest;

/// An agent: instructions, a model, tools, limits, context. Immutable and cheap to clone; everything
/// that belongs to a run is in the run, so that any number of runs may go on at once.
///
/// ```
/// use raf_core::Session;
/// use raf_framework::{AgentRequest, AgentRuntime};
/// use raf_testing::{Reply, ScriptedChatClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// # let provider = ScriptedChatClient::new([Reply::text("Hello, Ada."), Reply::text("Ada.")]);
/// let agent = AgentRuntime::builder(provider)
///     .instructions("You are a friendly assistant.")
///     .max_rounds(5)
///     .build()?;
///
/// let session = Session::in_memory();
/// let greeting = AgentRequest::new("I am Ada.").in_session(session.clone());
/// let mut run = agent.run(greeting);
/// while let Some(piece) = run.next_text().await? {
///     print!("{piece}");
/// }
/// let response = agent.ask(AgentRequest::new("Who am I?").in_session(session)).await?;
/// assert_eq!(response.text(), "Ada.");
/// # Ok(())
/// # }
/// ```
///
/// - **Session.** What the run adds is written message by message, before the consumer sees it. One run
///   at a time writes to a session; another is refused or waits, as the configuration says. After any
///   end of a run, also a dropped stream, the next request goes on with it.
/// - **Pause.** A run that waits is kept with its session: answers go in by
///   [`AgentRequest::answers`], in another process too. A new message supersedes what waits.
/// - **Drop.** Dropping the stream stops everything; nothing runs on.
#[derive(Clone, Debug)]
pub struct AgentRuntime(Arc<AgentConfig>);

impl AgentRuntime {
    /// An agent as configured.
    pub fn new(config: AgentConfig) -> Self {
        Self(Arc::new(config))
    }

    /// Starts the configuration of an agent on a client: a provider, or a stack of layers on one.
    pub fn builder(client: impl IChatClient + 'static) -> AgentConfigBuilder {
        AgentConfigBuilder::new(Arc::new(client))
    }

    /// The configuration.
    pub fn config(&self) -> &AgentConfig {
        &self.0
    }

    /// The agent as a client: its whole stack, without sessions. Messages are the conversation.
    pub fn client(&self) -> &Arc<dyn IChatClient> {
        self.0.client()
    }

    /// Runs a request: a stream of updates. Nothing is done before it is polled; what is wrong with
    /// the request comes as its last item.
    pub fn run(&self, request: impl Into<AgentRequest>) -> AgentRun {
        let request = request.into();
        let agent = self.clone();
        let stream = emit_stream(async move |out| agent.drive(request, out).await);
        AgentRun(stream.boxed())
    }

    /// The whole response to a request.
    ///
    /// # Errors
    /// What ended the run, with [`Error::leg`] set: transcript, usage and open calls until then.
    pub async fn ask(&self, request: impl Into<AgentRequest>) -> Result<AgentResponse> {
        collect(self.run(request)).await
    }

    /// The answer to a request as a value of a type. The model is given its JSON Schema, and an answer
    /// that does not fit is handed back to it, at most twice. Tools are called as ever.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); [`ErrorKind::Protocol`] if no answer fits; [`ErrorKind::Misuse`] with
    /// code `no_answer` if the run ended without one, in a pause for instance. [`Error::leg`] holds what
    /// was said until then.
    pub async fn ask_typed<T>(&self, request: impl Into<AgentRequest>) -> Result<TypedResponse<T>>
    where
        T: DeserializeOwned + JsonSchema + Send,
    {
        let AgentRequest {
            messages,
            session,
            options,
        } = request.into();
        let output = TypedOutput::<T>::new()?;
        let mut options = self.0.run_options(&options);
        options.response_format = Some(output.response_format());
        let mut conversation = self.open(session).await?;
        let mut attempt = output.attempt();
        let mut new = messages;
        loop {
            let mut updates = match conversation.begin(new, options.clone()).await {
                Ok(updates) => updates,
                Err(error) => return Err(attempt.failed(error)),
            };
            let response = loop {
                match updates.next().await {
                    Some(Ok(update)) => {
                        if let Err(error) = conversation.keep(&update).await {
                            return Err(attempt.failed(error));
                        }
                        if matches!(update, AgentResponseUpdate::Finish { .. }) {
                            break conversation.response()?;
                        }
                    }
                    Some(Err(error)) => {
                        let error = conversation.failed(error).await;
                        return Err(attempt.failed(error));
                    }
                    None => {
                        let error = conversation.failed(no_terminal_item()).await;
                        return Err(attempt.failed(error));
                    }
                }
            };
            match attempt.look_at(response)? {
                Ok(typed) => return Ok(typed),
                Err(feedback) => new = vec![feedback],
            }
            options.tool_approval_responses.clear();
            options.paused_run = None;
        }
    }

    async fn open(&self, session: Option<Arc<dyn raf_core::ISession>>) -> Result<Conversation> {
        let client = Arc::clone(self.0.client());
        Conversation::open(client, session, self.0.busy_policy(), self.0.history()).await
    }

    async fn drive(
        self,
        request: AgentRequest,
        mut out: Emitter<AgentResponseUpdate>,
    ) -> Result<()> {
        let AgentRequest {
            messages,
            session,
            options,
        } = request;
        let options = self.0.run_options(&options);
        let mut conversation = self.open(session).await?;
        let mut updates = conversation.begin(messages, options).await?;
        while let Some(update) = updates.next().await {
            match update {
                Ok(update) => {
                    conversation.keep(&update).await?;
                    if matches!(update, AgentResponseUpdate::Finish { .. }) {
                        // The session is free when its end is seen.
                        drop(conversation);
                        out.emit(update).await;
                        return Ok(());
                    }
                    out.emit(update).await;
                }
                Err(error) => return Err(conversation.failed(error).await),
            }
        }
        Err(conversation.failed(no_terminal_item()).await)
    }
}

fn no_terminal_item() -> Error {
    Error::new(
        ErrorKind::TruncatedStream,
        "the stream ended without its terminal item",
    )
}

/// A run in flight: a stream of updates. Dropping it stops the run.
pub struct AgentRun(UpdateStream);

impl AgentRun {
    /// The next piece of text of the answer; `None` at the end. All other updates are skipped.
    ///
    /// # Errors
    /// What ended the run.
    pub async fn next_text(&mut self) -> Result<Option<String>> {
        while let Some(update) = self.0.next().await {
            if let AgentResponseUpdate::TextDelta { text } = update? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// The whole response, from what has not been read yet.
    ///
    /// # Errors
    /// What ended the run.
    pub async fn response(self) -> Result<AgentResponse> {
        collect(self).await
    }
}

impl Stream for AgentRun {
    type Item = Result<AgentResponseUpdate>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRun").finish_non_exhaustive()
    }
}
