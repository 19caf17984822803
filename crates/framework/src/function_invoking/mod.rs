//! The streaming tool loop: asks the model, runs the tools that it calls, goes round until it answers.
//!
//! Reading order: `drive` is the loop, `steps` its parts, `resume` its beginning, `round` one model request, `plan` what
//! its calls come to, `policy` who decides before people do, `execute` one batch, `leg` the state and
//! the way out, `records` the store, `counters` and `no_progress` the limits; `steer`, `hooks`, `inbox` and
//! `request_context` what comes in from outside while a run goes on.

mod counters;
mod drive;
mod durable;
mod execute;
mod hooks;
mod inbox;
mod leg;
mod no_progress;
mod options;
mod outer_run;
mod pause;
mod plan;
mod policy;
mod records;
mod request_context;
mod resume;
mod round;
mod run;
mod steer;
mod steps;
mod tools;
mod warning;

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientLayer, ChatClientMetadata, ChatClientRunOptions, ChatMessage,
    Emitter, Error, IChatClient, LayerPlacement, LoopMarker, Result, UpdateStream, emit_stream,
};
use raf_tools::{ToolExecutor, ToolRegistry};
use tracing::Instrument;

pub(crate) use self::durable::is_unkept;
pub use self::hooks::{HookBatch, HookDecision, HookReply, HookRequest, HookResults, IRunHook};
pub use self::inbox::{MessageInbox, MessageInboxOptionsExt};
use self::leg::Leg;
pub(crate) use self::options::AskedBy;
pub use self::options::{
    ForeignCallPolicy, FunctionInvokingOptions, NewMessagePolicy, RunStoreOptionsExt,
};
pub(crate) use self::outer_run::{Allowance, DurableRun, NestedIn, OuterRun};
pub use self::policy::{ClosurePolicy, IApprovalPolicy, PolicyCall, PolicyDecision, policy_fn};
pub(crate) use self::request_context::RequestContext;

/// Runs the tools that the model calls, and asks it again until it answers.
///
/// - **Stream.** Text is forwarded as it arrives. Tools start when the reply has ended well, run in
///   parallel as tasks of the run, and are reported as they finish; results go to the model in call
///   order. There is no second loop: `get_response` is the fold of this stream.
/// - **Valid history.** Whatever ends a leg, every call has one result before the terminal item.
/// - **Defaults.** See the table of [`FunctionInvokingOptions`].
/// - **Place.** It is the loop: layers added before it see whole legs, layers added after it see each
///   model request. At most one in a stack.
/// - **Drop.** Dropping the stream drops the model request and aborts the bodies; nothing runs on.
/// - **Pause.** Only gated calls wait: their siblings run. The leg ends with the pending list; answers
///   go into the options of the next leg, which gets the whole conversation again. What runs is the
///   recorded call, once, after an explicit yes to that very request.
///
/// It needs a tokio runtime; polled without one the stream ends in a typed error.
#[derive(Clone, Debug)]
pub struct FunctionInvokingChatClient {
    inner: Arc<dyn IChatClient>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    executor: ToolExecutor,
    options: FunctionInvokingOptions,
    in_hand: Arc<durable::InHand>,
}

impl FunctionInvokingChatClient {
    /// A loop around a client, with these tools and default options.
    pub fn new(inner: Arc<dyn IChatClient>, tools: ToolRegistry) -> Self {
        Self::with_options(inner, tools, FunctionInvokingOptions::default())
    }

    /// A loop with options of its own.
    pub fn with_options(
        inner: Arc<dyn IChatClient>,
        tools: ToolRegistry,
        options: FunctionInvokingOptions,
    ) -> Self {
        let executor = ToolExecutor::with_options(tools, options.execution.clone());
        Self {
            inner,
            shared: Arc::new(Shared {
                executor,
                options,
                in_hand: Arc::default(),
            }),
        }
    }

    /// The loop as a layer for a [`ChatClientBuilder`](raf_core::ChatClientBuilder).
    pub fn layer(tools: ToolRegistry, options: FunctionInvokingOptions) -> ChatClientLayer {
        ChatClientLayer::new("function_invoking", LayerPlacement::Loop, |inner| {
            Self::with_options(inner, tools, options)
        })
    }

    /// Limits and policies.
    pub fn options(&self) -> &FunctionInvokingOptions {
        &self.shared.options
    }

    fn inner(&self) -> &Arc<dyn IChatClient> {
        &self.inner
    }

    fn executor(&self) -> &ToolExecutor {
        &self.shared.executor
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for FunctionInvokingChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        if messages.is_empty() && options.run_id().is_none() {
            return Err(Error::misuse(
                "the conversation is empty: give at least one message",
            ));
        }
        let client = self.clone();
        let messages = messages.to_vec();
        // Boxed: what is moved into the leg stands in the state of the stream a second time.
        let options = Box::new(options);
        let stream = emit_stream(async move |out: Emitter<AgentResponseUpdate>| {
            raf_tools::check_runtime()?;
            let store = options
                .run_store()
                .unwrap_or_else(|| Arc::clone(&client.options().run_store));
            let mut leg = Leg::new(messages, options, store, out);
            leg.in_hand = Arc::clone(&client.shared.in_hand);
            // OpenTelemetry GenAI semantic conventions, "Invoke agent span".
            let span = tracing::info_span!(
                "invoke_agent",
                gen_ai.operation.name = "invoke_agent",
                raf.run.id = leg.run.id.as_str(),
                raf.run.parent_id = leg.parent_run_id().map(tracing::field::display),
            );
            drive::drive(&client, &mut leg).instrument(span).await
        });
        Ok(stream.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        if id == TypeId::of::<LoopMarker>() {
            return Some(&LoopMarker);
        }
        self.inner.service(id)
    }
}
