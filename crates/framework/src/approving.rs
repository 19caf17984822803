//! Settles what a run waits for by a handler of the user's, and goes on in the same stream.

mod ask;
mod handler;
mod legs;

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    ChatClientLayer, ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient,
    LayerPlacement, Result, UpdateStream, emit_stream,
};

pub use self::handler::{
    ApprovalAnswer, HandlerError, IApprovalHandler, IntoApprovalAnswer, PendingQuestion,
    QuestionAnswer,
};
use self::legs::Legs;

/// Asks an [`IApprovalHandler`] about each call that waits, gives its answers to the loop below, and
/// goes on: outside there is one stream, as if the run had never paused.
///
/// ```
/// use raf_core::{ApprovalRequest, ChatClientExt};
/// use raf_framework::{ApprovalAnswer, ChatClientBuilderExt};
/// use raf_testing::{Reply, ScriptedChatClient};
/// use raf_tools::tool_fn;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// # let provider = ScriptedChatClient::new([
/// #     Reply::calls([("c1", "delete", "{}")]),
/// #     Reply::text("It is gone."),
/// # ]);
/// let delete = tool_fn("delete", "Deletes it.", |(): ()| async { "deleted" });
/// let client = raf_core::ChatClientBuilder::new(provider)
///     .approving(|request: ApprovalRequest| async move {
///         match request.tool.as_str() {
///             "delete" => Some(ApprovalAnswer::approve()), // ask a person here
///             _ => None,                                   // not for this handler
///         }
///     })
///     .function_invoking([delete.with_approval()])
///     .build()?;
/// assert_eq!(client.get_text("Delete it.").await?, "It is gone.");
/// # Ok(())
/// # }
/// ```
///
/// - **What it settles.** Calls that wait for an approval, and questions of tools
///   ([`ToolError::interrupt`](raf_tools::ToolError::interrupt)). What the handler leaves open (`None`,
///   an error, a panic), and calls of declared-only tools, pass through: the stream ends with the
///   pause, its pending list and [`paused_run`](raf_core::Finish::paused_run), and can be resumed by the
///   caller as ever. Each request is put to the handler once per leg of the caller.
/// - **Stream.** The updates of all legs in order, then one terminal item; a pause that was settled
///   ends nothing outside. `usage` is that of all legs. Announced requests are seen as updates, unless
///   [`with_settled_requests_hidden`](Self::with_settled_requests_hidden).
/// - **The handler waits as long as it likes.** It is polled with the stream: it must not block (a
///   terminal is read on a thread of its own). A cancellation while it waits ends the leg as cancelled,
///   the deadline passes the pause through; either way the requests stay open for a later answer.
/// - **Answers are bound.** Each goes to the request that was shown, with the arguments that were shown.
///   What the loop refuses of them stays open and passes through.
/// - **Limits.** 100 resumes per leg of the caller, and one after another; the limits of the loop hold
///   over all of them, since its counters live in the run's record.
/// - **Place.** Outside the loop, inside sessions.
/// - **Drop.** Dropping the stream drops the leg below or the handler's future; nothing runs on, and what
///   waits stays open.
#[derive(Clone)]
pub struct ApprovingChatClient {
    inner: Arc<dyn IChatClient>,
    handler: Arc<dyn IApprovalHandler>,
    max_resumes: u32,
    questions_at_once: usize,
    hide_settled: bool,
}

impl ApprovingChatClient {
    /// Settles what waits below by this handler.
    pub fn new(inner: Arc<dyn IChatClient>, handler: impl IApprovalHandler + 'static) -> Self {
        Self {
            inner,
            handler: Arc::new(handler),
            max_resumes: 100,
            questions_at_once: 1,
            hide_settled: false,
        }
    }

    /// Sets how often one leg of the caller is resumed at most; what waits then passes through.
    /// Default: 100.
    pub fn with_max_resumes(mut self, resumes: u32) -> Self {
        self.max_resumes = resumes;
        self
    }

    /// Sets how many requests the handler is asked about at the same time, at least 1. Default: 1, one
    /// after another in call order, as a terminal needs it.
    pub fn with_questions_at_once(mut self, questions: usize) -> Self {
        self.questions_at_once = questions.max(1);
        self
    }

    /// Sets whether the consumer does not see `ToolApprovalRequest` and `ToolInterrupted` of what the
    /// handler settles. Then they are held back until the leg below ends. Default: it sees them, as
    /// they come.
    pub fn with_settled_requests_hidden(mut self, hidden: bool) -> Self {
        self.hide_settled = hidden;
        self
    }

    /// The layer for a [`ChatClientBuilder`](raf_core::ChatClientBuilder).
    pub fn layer(handler: impl IApprovalHandler + 'static) -> ChatClientLayer {
        Self::layer_with(handler, |approving| approving)
    }

    /// The layer, set up: `layer_with(handler, |approving| approving.with_max_resumes(5))`.
    pub fn layer_with(
        handler: impl IApprovalHandler + 'static,
        configure: impl FnOnce(Self) -> Self + Send + 'static,
    ) -> ChatClientLayer {
        ChatClientLayer::new("approving", LayerPlacement::OutsideLoop, |inner| {
            configure(Self::new(inner, handler))
        })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for ApprovingChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let first = self.inner.run(messages, options.clone()).await?;
        let client = self.clone();
        let messages = messages.to_vec();
        let stream = emit_stream(async move |out| {
            let legs = Legs::new(client, messages, options, out);
            legs.drive(first).await
        });
        Ok(stream.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

impl fmt::Debug for ApprovingChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovingChatClient")
            .field("inner", &self.inner)
            .field("max_resumes", &self.max_resumes)
            .field("questions_at_once", &self.questions_at_once)
            .field("hide_settled", &self.hide_settled)
            .finish_non_exhaustive()
    }
}
