//! A tool that is written in one kind, or offers several.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use raf_core::{Content, ToolDeclaration, TrustLabel};
use serde_json::Value;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{ITool, ToolArguments, ToolLimits};

type Body = Arc<
    dyn Fn(ToolContext, ToolArguments) -> BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

/// A tool from functions, one per kind that it offers. At least one: a tool that implements nothing
/// cannot be written.
///
/// Where several are offered, enhanced wins over plain, and streamable over invokable; the others are
/// never run.
///
/// ```
/// use raf_core::ToolDeclaration;
/// use raf_tools::KindTool;
///
/// let count = KindTool::streamable(ToolDeclaration::new("count", "Counts to three"), |_, _| async {
///     Ok(futures::stream::iter(["1 ", "2 ", "3"].map(|piece| Ok(piece.to_owned()))))
/// })
/// .build();
/// ```
#[derive(Clone)]
pub struct KindTool {
    declaration: ToolDeclaration,
    requires_approval: bool,
    limits: ToolLimits,
    trust: TrustLabel,
    kind: Kind,
    body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Invokable,
    Streamable,
    EnhancedInvokable,
    EnhancedStreamable,
}

impl fmt::Debug for KindTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KindTool")
            .field("name", &self.declaration.name())
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl KindTool {
    /// A tool that returns one JSON value; a string is text.
    pub fn invokable<F, Fut>(declaration: ToolDeclaration, body: F) -> KindToolBuilder
    where
        F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        KindToolBuilder::new(declaration, Kind::Invokable, wrap(body, ToolOutput::Json))
    }

    /// A tool that streams text.
    pub fn streamable<F, Fut, S>(declaration: ToolDeclaration, body: F) -> KindToolBuilder
    where
        F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ToolError>> + Send + 'static,
        S: Stream<Item = Result<String, ToolError>> + Send + 'static,
    {
        let body = wrap(body, |pieces: S| {
            ToolOutput::stream(pieces.map(|piece| piece.map(Content::text)))
        });
        KindToolBuilder::new(declaration, Kind::Streamable, body)
    }

    /// A tool that returns typed parts.
    pub fn enhanced_invokable<F, Fut>(declaration: ToolDeclaration, body: F) -> KindToolBuilder
    where
        F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Content>, ToolError>> + Send + 'static,
    {
        let body = wrap(body, ToolOutput::Parts);
        KindToolBuilder::new(declaration, Kind::EnhancedInvokable, body)
    }

    /// A tool that streams typed parts.
    pub fn enhanced_streamable<F, Fut, S>(declaration: ToolDeclaration, body: F) -> KindToolBuilder
    where
        F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, ToolError>> + Send + 'static,
        S: Stream<Item = Result<Content, ToolError>> + Send + 'static,
    {
        let body = wrap(body, |pieces: S| ToolOutput::stream(pieces));
        KindToolBuilder::new(declaration, Kind::EnhancedStreamable, body)
    }
}

fn wrap<F, Fut, T>(body: F, output: impl Fn(T) -> ToolOutput + Copy + Send + Sync + 'static) -> Body
where
    F: Fn(ToolContext, ToolArguments) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: Send + 'static,
{
    Arc::new(move |context, arguments| {
        let running = body(context, arguments);
        Box::pin(async move { running.await.map(output) })
    })
}

/// Builds a [`KindTool`].
#[derive(Debug)]
pub struct KindToolBuilder(KindTool);

impl KindToolBuilder {
    fn new(declaration: ToolDeclaration, kind: Kind, body: Body) -> Self {
        Self(KindTool {
            declaration,
            requires_approval: false,
            limits: ToolLimits::default(),
            trust: TrustLabel::default(),
            kind,
            body,
        })
    }

    /// Offers another kind as well, of a tool made like this one; the declaration of the first stands.
    pub fn or(mut self, other: Self) -> Self {
        if other.0.kind > self.0.kind {
            self.0.kind = other.0.kind;
            self.0.body = other.0.body;
        }
        self
    }

    /// Makes each call wait for a person's yes.
    pub fn with_approval(mut self) -> Self {
        self.0.requires_approval = true;
        self
    }

    /// Sets deadline, concurrency and the rest.
    pub fn with_limits(mut self, limits: ToolLimits) -> Self {
        self.0.limits = limits;
        self
    }

    /// Says whose text the results are.
    pub fn with_trust(mut self, trust: TrustLabel) -> Self {
        self.0.trust = trust;
        self
    }

    /// The tool.
    pub fn build(self) -> KindTool {
        self.0
    }
}

#[async_trait]
impl ITool for KindTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    async fn call(
        &self,
        context: ToolContext,
        arguments: ToolArguments,
    ) -> Result<ToolOutput, ToolError> {
        (self.body)(context, arguments).await
    }

    fn requires_approval(&self) -> bool {
        self.requires_approval
    }

    fn limits(&self) -> ToolLimits {
        self.limits.clone()
    }

    fn trust(&self) -> TrustLabel {
        self.trust
    }
}
