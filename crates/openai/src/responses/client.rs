//! The client: validates, writes the request, and hands the exchange to the stream.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, Error, IChatClient, RenderKey, Result,
    UpdateStream, emit_stream,
};
use raf_wire::{Address, DialogueSetup, Reporter, ToolsCache, Transport};

use super::background::{Run, drive};
use super::dialect::ResponsesDialect;
use super::request::{Built, Writer, build};
use super::run_options::ResponsesRunOptions;
use crate::OpenAiOptions;
use crate::endpoint::RESPONSES;

/// A chat client for OpenAI's Responses API and every server that copies it.
///
/// Cheap to clone; clones share connections and what was rendered. A run does nothing until its stream
/// is polled, and stops when the stream is dropped: a background response then goes on at the server.
/// Cancellation and deadline of the run are heeded while it waits.
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
    base: Address,
    dialect: ResponsesDialect,
    transport: Transport,
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
        let base = Address::parse(&options.base_url, &RESPONSES)?;
        let dialect = match (&options.responses_dialect, &options.dialect) {
            (Some(dialect), _) => dialect.clone(),
            (None, Some(dialect)) => ResponsesDialect::of(dialect.name()),
            (None, None) => ResponsesDialect::detect(&options.base_url),
        };
        let key = options.api_key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        let transport = Transport::new(
            &RESPONSES,
            options.http_client.clone(),
            options.timeouts.connect,
            key.map(|key| (key, dialect.rules.key_header)),
            &options.headers,
        )?;
        Ok(Self(Arc::new(Inner {
            options,
            base,
            dialect,
            transport,
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
        let model = self.0.model(options)?;
        let built = self.0.build(messages, options, model, false)?;
        Ok(String::from_utf8_lossy(&built.body).into_owned())
    }
}

impl Inner {
    pub(super) fn build(
        &self,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
        model: &str,
        whole: bool,
    ) -> Result<Built> {
        let rules = &self.dialect.rules;
        let is_default = self.options.model.as_deref().map(str::trim) == Some(model);
        let writer = Writer {
            rules,
            model,
            streaming: self.options.streaming || rules.always_streams,
            cache: &self.tools,
            render_key: is_default.then_some(self.render_key),
        };
        build(messages, options, &writer, whole)
    }

    fn model<'a>(&'a self, options: &'a ChatClientRunOptions) -> Result<&'a str> {
        let model = options.model.as_deref().or(self.options.model.as_deref());
        model
            .map(str::trim)
            .filter(|model| !model.is_empty())
            .ok_or_else(|| {
                Error::configuration(format!(
                    "no model is named for {}: set OPENAI_MODEL, OpenAiOptions::with_model, or \
                     ChatClientRunOptions::with_model",
                    self.base.display()
                ))
            })
    }

    /// `<base URL>/responses`, or below it.
    fn url(&self, below: &str) -> Address {
        match &self.options.azure_api_version {
            Some(version) => self
                .base
                .join(&format!("openai/responses{below}"))
                .with_query("api-version", version),
            None => self.base.join(&format!("responses{below}")),
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
        self.options.streaming || self.dialect.rules.always_streams
    }

    fn reporter(&self, url: &Address, model: &str, said: Bytes) -> Reporter {
        let options = &self.options;
        let headers = options.headers.iter().map(|(_, value)| value.clone());
        let secrets = options.api_key.iter().cloned().chain(headers).collect();
        Reporter::new(&RESPONSES, url.display(), model, secrets, said)
    }
}

#[async_trait]
impl IChatClient for OpenAiResponsesChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        options.refuse_resume_data()?;
        let inner = &self.0;
        let model = inner.model(&options)?;
        if messages.is_empty() {
            return Err(Error::misuse(
                "the conversation is empty: give at least one message",
            ));
        }
        let built = inner.build(messages, &options, model, false)?;
        let url = inner.url("");
        let own = &inner.options;
        let setup = DialogueSetup {
            transport: inner.transport.clone(),
            reporter: inner.reporter(&url, model, built.said.clone()),
            limits: own.limits,
            timeouts: own.timeouts,
            cancellation: options.cancellation.clone(),
            deadline: options.deadline,
        };
        let continuation = ResponsesRunOptions::of(&options).continuation;
        // The token is for the first request: one whose reply is there already is used up.
        let continuation = continuation.filter(|token| {
            let is_there = |message: &ChatMessage| message.message_id() == Some(&token.response_id);
            !messages.iter().any(is_there)
        });
        // Only one that names a response can need the whole conversation after all.
        let whole = built.previous.is_some().then(|| messages.to_vec());
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
        let metadata =
            ChatClientMetadata::new(self.0.dialect.name()).with_endpoint(self.0.base.display());
        match &self.0.options.model {
            Some(model) => metadata.with_model(model),
            None => metadata,
        }
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
