//! Gives each leg its instructions and what context providers bring.

use std::any::{Any, TypeId};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use raf_core::{
    AgentResponse, AgentResponseUpdate, Cancellation, ChatClientLayer, ChatClientMetadata,
    ChatClientRunOptions, ChatMessage, Content, Emitter, Error, ErrorKind, ErrorNotice,
    IChatClient, LayerPlacement, LegSnapshot, MessageRole, MessageSource, ResponseFold, Result,
    UpdateStream, emit_stream,
};
use tokio::time::Instant;

use super::context::{
    ContextOutcome, ContextRequest, IContextProvider, ProvidedContext, ProviderFailure,
};
use crate::function_invoking::RequestContext;

/// Puts instructions, and what [`IContextProvider`]s bring, into the requests of each leg.
///
/// - **Order in a request.** One system message: the agent's instructions, then those of the providers
///   in their order, a blank line between; then the providers' messages; then the conversation. It is
///   the same in each request of a leg.
/// - **Transcript.** None of it is in the response or in a session, but what a provider wants stored.
/// - **Names of tools.** Those of the agent come first, then those of the run, then the providers' in
///   their order; a gated twin keeps its gate.
/// - **Place.** Outside the loop, which puts it into the requests.
/// - **Drop.** Dropping the stream drops the leg; providers are told nothing then.
#[derive(Clone)]
pub struct ContextChatClient {
    inner: Arc<dyn IChatClient>,
    instructions: Option<String>,
    providers: Vec<Arc<dyn IContextProvider>>,
}

impl ContextChatClient {
    /// Around a stack with a loop, without instructions and providers yet.
    pub fn new(inner: Arc<dyn IChatClient>) -> Self {
        Self {
            inner,
            instructions: None,
            providers: Vec::new(),
        }
    }

    /// Sets the instructions. Default: none.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a provider behind those added before.
    pub fn with_provider(mut self, provider: Arc<dyn IContextProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// The layer for a [`ChatClientBuilder`](raf_core::ChatClientBuilder), set up:
    /// `layer(|context| context.with_instructions("Be brief."))`.
    pub fn layer(configure: impl FnOnce(Self) -> Self + Send + 'static) -> ChatClientLayer {
        ChatClientLayer::new("context", LayerPlacement::OutsideLoop, |inner| {
            configure(Self::new(inner))
        })
    }

    /// Asks the providers, plays the leg, tells them how it ended.
    async fn drive(
        self,
        messages: Vec<ChatMessage>,
        mut options: ChatClientRunOptions,
        mut out: Emitter<AgentResponseUpdate>,
    ) -> Result<()> {
        let began = Instant::now();
        let mut leg = Leg {
            asked: Vec::new(),
            cancellation: options.cancellation.clone(),
            session_id: options.session_id.clone(),
            messages,
        };
        let context = match self.ask(&mut leg, &options, &mut out).await {
            Ok(context) => context,
            Err(error) => return Err(leg.failed(error, &mut out).await),
        };
        options.extensions.insert(context);
        options.deadline = options
            .deadline
            .map(|deadline| deadline.saturating_sub(began.elapsed()));
        let mut updates = match self.inner.run(&leg.messages, options).await {
            Ok(updates) => updates,
            Err(error) => return Err(leg.failed(error, &mut out).await),
        };
        let mut fold = ResponseFold::new();
        while let Some(update) = updates.next().await {
            match update {
                Ok(update @ AgentResponseUpdate::Finish { .. }) => {
                    drop(updates);
                    fold.push(&update);
                    let response = fold.finish()?;
                    if let Err(error) = leg.tell(Ok(&response), &mut out).await {
                        return Err(failed_after(error, response));
                    }
                    out.emit(update).await;
                    return Ok(());
                }
                Ok(update) => {
                    fold.push(&update);
                    out.emit(update).await;
                }
                Err(error) => return Err(leg.failed(fold.fail(error), &mut out).await),
            }
        }
        let error = fold.finish().err().unwrap_or_else(no_terminal_item);
        Err(leg.failed(error, &mut out).await)
    }

    /// What stands in the requests of a leg.
    async fn ask(
        &self,
        leg: &mut Leg,
        options: &ChatClientRunOptions,
        out: &mut Emitter<AgentResponseUpdate>,
    ) -> Result<RequestContext> {
        let mut context = RequestContext::default();
        let mut instructions: Vec<String> = self.instructions.iter().cloned().collect();
        for provider in &self.providers {
            let provided = {
                let request = ContextRequest::new(&leg.messages, options);
                guarded(
                    provider.name(),
                    &leg.cancellation,
                    provider.provide(&request),
                )
                .await
            };
            match provided {
                Ok(provided) => {
                    leg.asked.push(Arc::clone(provider));
                    add(provided, &mut context, &mut instructions);
                }
                Err(error) => skip_or_fail(&**provider, error, out).await?,
            }
        }
        lead_with(&mut context, instructions);
        Ok(context)
    }
}

/// Puts the instructions first, as one message.
fn lead_with(context: &mut RequestContext, mut instructions: Vec<String>) {
    instructions.retain(|text| !text.trim().is_empty());
    if instructions.is_empty() {
        return;
    }
    let message = ChatMessage::builder(MessageRole::System)
        .content(Content::text(instructions.join("\n\n")))
        .source(MessageSource::ContextProvider)
        .build();
    context.front.insert(0, message);
}

fn add(provided: ProvidedContext, context: &mut RequestContext, instructions: &mut Vec<String>) {
    instructions.extend(provided.instructions);
    context.front.extend(provided.messages);
    context.stored.extend(provided.stored_messages);
    context.tools.extend(provided.tools);
}

/// A leg, as far as its providers are told of it.
struct Leg {
    asked: Vec<Arc<dyn IContextProvider>>,
    cancellation: Cancellation,
    session_id: Option<String>,
    messages: Vec<ChatMessage>,
}

impl Leg {
    /// Tells every provider that was asked how the leg ended, each whatever became of those before it.
    async fn tell(
        &self,
        result: std::result::Result<&AgentResponse, &Error>,
        out: &mut Emitter<AgentResponseUpdate>,
    ) -> Result<()> {
        let outcome = ContextOutcome {
            messages: &self.messages,
            session_id: self.session_id.as_deref(),
            result,
        };
        let mut first = None;
        // The leg is over: what stopped it does not keep its end from being told.
        let never = Cancellation::new();
        for provider in &self.asked {
            let told = guarded(provider.name(), &never, provider.finished(&outcome));
            if let Err(error) = told.await
                && let Err(error) = skip_or_fail(&**provider, error, out).await
            {
                first.get_or_insert(error);
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// The error that a leg ends with, told to the providers; theirs is only reported beside it.
    async fn failed(&self, error: Error, out: &mut Emitter<AgentResponseUpdate>) -> Error {
        if let Err(second) = self.tell(Err(&error), out).await {
            let error = Box::new(ErrorNotice::from(&second));
            out.emit(AgentResponseUpdate::Error { error }).await;
        }
        error
    }
}

/// A provider's own declaration: the run fails, or goes on and says so.
async fn skip_or_fail(
    provider: &dyn IContextProvider,
    error: Error,
    out: &mut Emitter<AgentResponseUpdate>,
) -> Result<()> {
    if provider.on_failure() == ProviderFailure::FailRun || error.kind() == ErrorKind::Cancelled {
        return Err(error);
    }
    tracing::warn!(provider = provider.name(), %error, "a context provider failed and was skipped");
    let error = Box::new(ErrorNotice::from(&error));
    out.emit(AgentResponseUpdate::Error { error }).await;
    Ok(())
}

/// Waits for a provider: a panic is its failure, a cancellation ends the wait.
async fn guarded<T>(
    name: &str,
    cancellation: &Cancellation,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        () = raf_tools::cancelled(cancellation) => Err(Error::new(
            ErrorKind::Cancelled,
            "the run was cancelled while a context provider was asked",
        )),
        done = AssertUnwindSafe(work).catch_unwind() => match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(error.with_context("context_provider", name)),
            Err(_) => Err(Error::configuration(format!(
                "the context provider '{name}' panicked: mend it, or take it out"
            ))),
        },
    }
}

/// A provider fails the run behind an answer: the answer is in the error.
fn failed_after(error: Error, response: AgentResponse) -> Error {
    let mut leg = LegSnapshot::default();
    leg.messages = response.messages;
    leg.run_id = response.run_id;
    leg.usage = response.usage;
    leg.run_usage = response.run_usage;
    leg.rounds = response.rounds;
    leg.pending = response.pending;
    leg.abandoned = response.abandoned;
    error.with_leg(leg)
}

fn no_terminal_item() -> Error {
    Error::new(
        ErrorKind::TruncatedStream,
        "the stream ended without its terminal item",
    )
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for ContextChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        if self.providers.is_empty() {
            let mut context = RequestContext::default();
            lead_with(&mut context, self.instructions.iter().cloned().collect());
            let mut options = options;
            if !context.front.is_empty() {
                options.extensions.insert(context);
            }
            return self.inner.run(messages, options).await;
        }
        let client = self.clone();
        let messages = messages.to_vec();
        let stream = emit_stream(async move |out| client.drive(messages, options, out).await);
        Ok(stream.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

impl fmt::Debug for ContextChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<&str> = self.providers.iter().map(|it| it.name()).collect();
        f.debug_struct("ContextChatClient")
            .field("inner", &self.inner)
            .field("instructions", &self.instructions.is_some())
            .field("providers", &providers)
            .finish()
    }
}
