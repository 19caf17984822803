//! The client: validates, writes the request, and hands the exchange to the stream.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream,
    emit_stream,
};
use raf_wire::{Address, Connection, ToolsCache, drive};

use crate::endpoint::CHAT_COMPLETIONS;
use crate::request::{Built, build};
use crate::response::Reply;
use crate::{Dialect, OpenAiOptions};

/// A chat client for OpenAI's Chat Completions and every server that speaks like it.
///
/// Cheap to clone; clones share connections and what was rendered. A run does nothing until its
/// stream is polled, and stops when the stream is dropped. Cancellation and deadline of the run are
/// heeded while it waits.
///
/// Errors by kind: see [`ErrorKind`](raf_core::ErrorKind). Each says what, where and what to do, with
/// status, code, request id and wait where the server gives them; none holds a key or what the
/// messages say.
#[derive(Clone)]
pub struct OpenAiChatClient(Arc<Inner>);

struct Inner {
    options: OpenAiOptions,
    connection: Connection,
    dialect: Dialect,
    tools: ToolsCache,
}

impl OpenAiChatClient {
    /// A client of these options. Makes no connection.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration): a base URL, key or header
    /// that cannot be used.
    pub fn new(options: OpenAiOptions) -> Result<Self> {
        let detected = || Dialect::detect(&options.endpoint.base_url);
        let dialect = options.dialect.clone().unwrap_or_else(detected);
        let connection = Connection::new(
            &CHAT_COMPLETIONS,
            options.endpoint.clone(),
            dialect.rules.key_header,
            Vec::new(),
        )?;
        Ok(Self(Arc::new(Inner {
            options,
            connection,
            dialect,
            tools: ToolsCache::default(),
        })))
    }

    /// A client of the options that the environment has: see
    /// [`OpenAiOptions::from_env`](crate::OpenAiOptions::from_env).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) as there and in
    /// [`new`](OpenAiChatClient::new).
    pub fn from_env() -> Result<Self> {
        Self::new(OpenAiOptions::from_env()?)
    }

    /// The dialect in which requests are written.
    pub fn dialect(&self) -> &Dialect {
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
        let built = self.0.build(messages, options, model)?;
        let text = String::from_utf8(built.body.into());
        Ok(text.unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned()))
    }

    /// What is asked, and by which options.
    pub(crate) fn parts(&self) -> (&Connection, &OpenAiOptions) {
        (&self.0.connection, &self.0.options)
    }
}

impl Inner {
    fn build(
        &self,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
        model: &str,
    ) -> Result<Built> {
        let streaming = self.options.endpoint.streaming;
        build(
            messages,
            options,
            model,
            &self.dialect,
            streaming,
            &self.tools,
        )
    }

    fn chat_url(&self, model: &str) -> Address {
        let base = self.connection.base();
        match &self.options.azure_api_version {
            Some(version) => base
                .join(&format!("openai/deployments/{model}/chat/completions"))
                .with_query("api-version", version),
            None => self.connection.address("chat/completions"),
        }
    }
}

#[async_trait]
impl IChatClient for OpenAiChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let connection = &self.0.connection;
        let model = connection.begin(messages, &options)?;
        let Built {
            body,
            said,
            restore,
        } = self.0.build(messages, &options, model)?;
        let url = self.0.chat_url(model);
        let own = &self.0.options;
        let think_tags = own.think_tags.unwrap_or(self.0.dialect.rules.think_tags);
        let reporter = connection.reporter(&url, model, said);
        let provider = self.0.dialect.name();
        let reply = Reply::new(provider, reporter.clone(), &own.endpoint.limits, think_tags);
        let setup = connection.setup(reporter, &options);
        Ok(emit_stream(move |out| drive(setup, url, body, reply, restore, out)).boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.0.connection.metadata(self.0.dialect.name())
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        (id == TypeId::of::<Self>()).then_some(self as &(dyn Any + Send + Sync))
    }
}

impl fmt::Debug for OpenAiChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiChatClient")
            .field("dialect", &self.0.dialect.name())
            .field("options", &self.0.options)
            .finish()
    }
}
