//! The client: validates, writes the request, and hands the exchange to the stream.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient, RenderKey, Result,
    UpdateStream, emit_stream,
};
use raf_wire::{Address, Connection, ToolsCache};

use super::background::{Run, drive};
use super::dialect::ResponsesDialect;
use super::request::{Built, Writer, build};
use super::run_options::ResponsesRunOptions;
use crate::OpenAiOptions;
use crate::endpoint::RESPONSES;

/// A chat client for OpenAI's Responses API and every server that copies it.
///
/// Cheap to clone; clones share connections and what was rendered. A run does nothing until its stream
/// is polled, and stops when the stream is dropped: a background response then goes on at the server, and
/// [`cancel_response`](OpenAiResponsesChatClient::cancel_response) stops it. Cancellation and deadline of
/// the run are heeded while it waits; a background run that is cancelled tells the server, two seconds
/// long at most, before it ends.
///
/// Without further options nothing is kept by the server: each request has the whole conversation, with
/// encrypted reasoning where there is some. See
/// [`ResponsesRunOptionsExt`](crate::ResponsesRunOptionsExt) for conversations that the server holds.
///
/// Errors by kind: see [`ErrorKind`](raf_core::ErrorKind). Each says what, where and what to do, with
/// status, code, request id and wait where the server gives them; none holds a key or what the
/// messages say.
#[derive(Clone)]
pub struct OpenAiResponsesChatClient(Arc<Inner>);

pub(super) struct Inner {
    options: OpenAiOptions,
    connection: Connection,
    dialect: ResponsesDialect,
    tools: ToolsCache,
    render_key: RenderKey,
}

impl OpenAiResponsesChatClient {
    /// A client of these options. Makes no connection. The dialect is that of
    /// [`OpenAiOptions::with_responses_dialect`], else the one named as the options' dialect, else that
    /// of the base URL.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration): a base URL, key or header
    /// that cannot be used.
    pub fn new(options: OpenAiOptions) -> Result<Self> {
        let dialect = match (&options.responses_dialect, &options.dialect) {
            (Some(dialect), _) => dialect.clone(),
            (None, Some(dialect)) => ResponsesDialect::of(dialect.name()),
            (None, None) => ResponsesDialect::detect(&options.endpoint.base_url),
        };
        let connection = Connection::new(
            &RESPONSES,
            options.endpoint.clone(),
            dialect.rules.key_header,
            Vec::new(),
        )?;
        Ok(Self(Arc::new(Inner {
            options,
            connection,
            dialect,
            tools: ToolsCache::default(),
            render_key: RenderKey::unique(),
        })))
    }

    /// A client of the options that the environment has: see
    /// [`OpenAiOptions::from_env`](crate::OpenAiOptions::from_env).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) as there and in
    /// [`new`](OpenAiResponsesChatClient::new).
    pub fn from_env() -> Result<Self> {
        Self::new(OpenAiOptions::from_env()?)
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }

    /// What is asked, and by which options.
    pub(crate) fn parts(&self) -> (&Connection, &OpenAiOptions) {
        (&self.0.connection, &self.0.options)
    }

    /// The dialect in which requests are written.
    pub fn dialect(&self) -> &ResponsesDialect {
        &self.0.dialect
    }

    /// The body of the request that a run would send, as JSON text: to see what a dialect makes of a
    /// conversation. Sends nothing.
    ///
    /// # Errors
    /// As [`IChatClient::run`].
    pub fn request_body(
        &self,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
    ) -> Result<String> {
        let model = self.0.connection.model(options)?;
        let built = self.0.build(messages, options, model, false)?;
        Ok(String::from_utf8_lossy(&built.body).into_owned())
    }
}

impl Inner {
    /// The way to the endpoint.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn build(
        &self,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
        model: &str,
        whole: bool,
    ) -> Result<Built> {
        let rules = &self.dialect.rules;
        let is_default = self.options.endpoint.model.as_deref().map(str::trim) == Some(model);
        let writer = Writer {
            rules,
            model,
            streaming: self.options.endpoint.streaming || rules.always_streams,
            cache: &self.tools,
            render_key: is_default.then_some(self.render_key),
        };
        build(messages, options, &writer, whole)
    }

    /// `<base URL>/responses`, or below it.
    pub(super) fn url(&self, below: &str) -> Address {
        let base = self.connection.base();
        match &self.options.azure_api_version {
            Some(version) => base
                .join(&format!("openai/responses{below}"))
                .with_query("api-version", version),
            None if below.is_empty() => self.connection.address("responses"),
            None => base.join(&format!("responses{below}")),
        }
    }

    /// Where a response is read on that goes on at the server.
    pub(super) fn resume_url(&self, id: &str, starting_after: Option<u64>) -> Address {
        let url = self.url(&format!("/{id}"));
        if !self.streams() {
            return url;
        }
        let url = url.with_query("stream", "true");
        match starting_after {
            Some(number) => url.with_query("starting_after", &number.to_string()),
            None => url,
        }
    }

    pub(super) fn streams(&self) -> bool {
        self.options.endpoint.streaming || self.dialect.rules.always_streams
    }
}

#[async_trait]
impl IChatClient for OpenAiResponsesChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let inner = &self.0;
        let model = inner.connection.begin(messages, &options)?;
        let built = inner.build(messages, &options, model, false)?;
        let url = inner.url("");
        let said = built.said.clone();
        let reporter = inner.connection.reporter(&url, model, said);
        let setup = inner.connection.setup(reporter, &options);
        let own = ResponsesRunOptions::of(&options);
        let is_whole_here = own.previous.is_none();
        let continuation = own.continuation;
        // The token is for the first request: one whose reply is there already is used up.
        let continuation = continuation.filter(|token| {
            let is_there = |message: &ChatMessage| message.message_id() == Some(&token.response_id);
            !messages.iter().any(is_there)
        });
        // Only one that names a response can need the whole conversation after all. Behind a response that
        // the caller named the messages are not the whole: sent alone, they would be answered without what
        // came before.
        let needs_whole = built.previous.is_some() && is_whole_here;
        let whole = needs_whole.then(|| messages.to_vec());
        let run = Run {
            client: Arc::clone(inner),
            model: model.to_owned(),
            options,
            url,
            built,
            whole,
            continuation,
        };
        Ok(emit_stream(move |out| drive(setup, run, out)).boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.0.connection.metadata(self.0.dialect.name())
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        (id == TypeId::of::<Self>()).then_some(self as &(dyn Any + Send + Sync))
    }
}

impl fmt::Debug for OpenAiResponsesChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiResponsesChatClient")
            .field("dialect", &self.0.dialect.name())
            .field("options", &self.0.options)
            .finish()
    }
}
