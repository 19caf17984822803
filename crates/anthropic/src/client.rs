//! The client: validates, writes the request, and hands the turn to the stream.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream,
    emit_stream,
};
use raf_wire::{Address, Connection, ToolsCache};

use crate::dialect::{Dialect, EndpointForm};
use crate::endpoint::MESSAGES;
use crate::options::{API_VERSION, AnthropicOptions};
use crate::request::{Built, Request, build};
use crate::response::Reply;
use crate::run_options::AnthropicRunOptions;
use crate::turn::{Again, Turn, drive};

/// A chat client for Anthropic's Messages API and every server that speaks like it.
///
/// Cheap to clone; clones share connections and what was rendered. A run does nothing until its
/// stream is polled, and stops when the stream is dropped. Cancellation and deadline of the run are
/// heeded while it waits. A turn that the server pauses (`pause_turn`) goes on in the same stream.
///
/// Errors by kind: see [`ErrorKind`](raf_core::ErrorKind). Each says what, where and what to do, with
/// status, code, request id and wait where the server gives them; none holds a key or what the
/// messages say.
#[derive(Clone)]
pub struct AnthropicChatClient(Shared);

/// What all clones of a client share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

struct Inner {
    options: AnthropicOptions,
    connection: Connection,
    dialect: Dialect,
    tools: ToolsCache,
}

impl AnthropicChatClient {
    /// A client of these options. Makes no connection.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration): a base URL, key or header
    /// that cannot be used.
    pub fn new(options: AnthropicOptions) -> Result<Self> {
        let detected = || Dialect::detect(&options.endpoint.base_url);
        let dialect = options.dialect.clone().unwrap_or_else(detected);
        let connection = Connection::new(
            &MESSAGES,
            options.endpoint.clone(),
            dialect.rules.key_header,
            headers(&options, &dialect),
        )?;
        Ok(Self(Shared(Arc::new(Inner {
            options,
            connection,
            dialect,
            tools: ToolsCache::default(),
        }))))
    }

    /// A client of the options that the environment has: see
    /// [`AnthropicOptions::from_env`](crate::AnthropicOptions::from_env).
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) as there and in
    /// [`new`](AnthropicChatClient::new).
    pub fn from_env() -> Result<Self> {
        Self::new(AnthropicOptions::from_env()?)
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.0.0.connection
    }

    /// The dialect in which requests are written.
    pub fn dialect(&self) -> &Dialect {
        &self.0.0.dialect
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
        let shared = &self.0;
        let own = shared.own(options);
        let model = shared.0.connection.model(options)?;
        let built = shared.build(messages, options, &own, model, false)?;
        Ok(String::from_utf8_lossy(&built.body).into_owned())
    }
}

/// The headers of each request beside the key's and the caller's own.
fn headers(options: &AnthropicOptions, dialect: &Dialect) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let is_given = |name: &str| {
        let given = options.endpoint.headers.iter();
        given
            .map(|(given, _)| given)
            .any(|given| given.eq_ignore_ascii_case(name))
    };
    if dialect.rules.form == EndpointForm::Messages && !is_given("anthropic-version") {
        headers.push(("anthropic-version".to_owned(), API_VERSION.to_owned()));
    }
    if !options.betas.is_empty() {
        if !dialect.rules.betas {
            tracing::warn!(
                dialect = dialect.name(),
                "this server knows no beta flags: they are left out"
            );
        } else if dialect.rules.form != EndpointForm::Bedrock {
            headers.push(("anthropic-beta".to_owned(), options.betas.join(",")));
        }
    }
    headers
}

impl Shared {
    /// What only this provider knows of a run, over the client's defaults.
    fn own(&self, options: &ChatClientRunOptions) -> Cow<'_, AnthropicRunOptions> {
        let defaults = &self.0.options.defaults;
        match options.extensions.get::<AnthropicRunOptions>() {
            Some(own) => Cow::Owned(own.over(defaults)),
            None => Cow::Borrowed(defaults),
        }
    }

    /// Writes the request of a turn that is gone on with: the last message is what was paused.
    pub(crate) fn build_again(&self, again: &Again) -> Result<Built> {
        let Again {
            messages,
            options,
            own,
            model,
        } = again;
        self.build(messages, options, own, model, true)
    }

    fn build(
        &self,
        messages: &[ChatMessage],
        options: &ChatClientRunOptions,
        own: &AnthropicRunOptions,
        model: &str,
        is_continued: bool,
    ) -> Result<Built> {
        let client = &self.0.options;
        let request = Request {
            messages,
            options,
            own,
            model,
            dialect: &self.0.dialect,
            max_tokens: client.max_tokens,
            betas: &client.betas,
            streaming: client.endpoint.streaming,
            conflicts: client.conflicts,
            is_continued,
        };
        build(&request, &self.0.tools)
    }

    fn url(&self, model: &str) -> Address {
        let streams = self.0.options.endpoint.streaming;
        let connection = &self.0.connection;
        match self.0.dialect.rules.form {
            EndpointForm::Messages => connection.address("v1/messages"),
            EndpointForm::Bedrock => {
                let action = if streams {
                    "invoke-with-response-stream"
                } else {
                    "invoke"
                };
                connection.address(&format!("model/{model}/{action}"))
            }
            EndpointForm::Vertex => {
                let action = if streams {
                    "streamRawPredict"
                } else {
                    "rawPredict"
                };
                connection.address(&format!("models/{model}:{action}"))
            }
        }
    }
}

#[async_trait]
impl IChatClient for AnthropicChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let shared = &self.0;
        let connection = &shared.0.connection;
        let model = connection.begin(messages, &options)?;
        let own = shared.own(&options);
        let mut built = shared.build(messages, &options, &own, model, false)?;
        let client = &shared.0.options;
        let url = shared.url(model);
        let said = std::mem::take(&mut built.said);
        let reporter = connection.reporter(&url, model, said);
        let continuations = if built.may_pause {
            client.continuations
        } else {
            0
        };
        let reply = Reply::new(
            shared.0.dialect.name(),
            model,
            reporter.clone(),
            &client.endpoint.limits,
            continuations,
        );
        let setup = connection.setup(reporter, &options);
        let again = || Again {
            messages: messages.to_vec(),
            own: own.into_owned(),
            model: model.to_owned(),
            options: options.clone(),
        };
        let turn = Turn {
            shared: shared.clone(),
            setup,
            url,
            built,
            reply,
            again: (continuations > 0).then(again),
        };
        Ok(emit_stream(move |out| drive(turn, out)).boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        let inner = &self.0.0;
        inner.connection.metadata(inner.dialect.name())
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        (id == TypeId::of::<Self>()).then_some(self as &(dyn Any + Send + Sync))
    }
}

impl fmt::Debug for AnthropicChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicChatClient")
            .field("dialect", &self.0.0.dialect.name())
            .field("options", &self.0.0.options)
            .finish()
    }
}
