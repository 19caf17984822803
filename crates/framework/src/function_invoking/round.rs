//! One model request: the request is built, its updates are forwarded as they arrive, and what it
//! came to is handed back. One reply is one assistant message.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use futures::{FutureExt, StreamExt};
use raf_core::{
    AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Content, Error, ErrorKind,
    FinishReason, IChatClient, MessageRole, MessageStatus, ToolCall, ToolCallHead, ToolChoice,
    Usage,
};
use raf_tools::ToolSet;
use tracing::{Instrument, Span};

use super::leg::Leg;
use super::run::Stop;

/// What a model request came to. Its message is closed.
pub(super) enum ReplyEnd {
    /// It ended well.
    Whole {
        reason: FinishReason,
        usage: Option<Usage>,
    },
    /// It failed.
    Failed(Error),
    /// It was stopped.
    Stopped(Stop),
}

/// A reply: its end, and what it said.
pub(super) struct Reply {
    pub(super) end: ReplyEnd,
    /// The parts of its message; empty if it said nothing.
    pub(super) contents: Vec<Content>,
}

impl Reply {
    /// The calls that are whole, in call order.
    pub(super) fn calls(&self) -> Vec<ToolCall> {
        self.contents
            .iter()
            .filter_map(Content::as_tool_call)
            .cloned()
            .collect()
    }
}

/// The options of a request: the tools of the moment, the tool choice of the moment, nothing that
/// the loop has used up.
pub(super) fn request_options(
    options: &ChatClientRunOptions,
    tools: &ToolSet,
    choice: Option<ToolChoice>,
) -> ChatClientRunOptions {
    let mut options = options.clone();
    options.tools = tools.declarations();
    options.tool_choice = choice.filter(|_| !options.tools.is_empty());
    options.tool_approval_responses.clear();
    options.paused_run = None;
    options
}

/// The tool choice of a request (contract F2, F3): none in the last, wrapping-up one; a forced one in
/// the first of a turn only, unless it is kept.
pub(super) fn tool_choice(
    wanted: Option<&ToolChoice>,
    wrap_up: bool,
    first_request: bool,
    keep_forcing: bool,
) -> Option<ToolChoice> {
    match wanted {
        _ if wrap_up => Some(ToolChoice::None),
        Some(choice) if choice.is_forced() && !first_request && !keep_forcing => None,
        other => other.cloned(),
    }
}

/// Whether a request says that nothing may be called. Where it declares no tools its choice is not sent,
/// and the one that was wanted counts: a model may know of tools all the same.
pub(super) fn forbids_calls(request: &ChatClientRunOptions, wanted: Option<&ToolChoice>) -> bool {
    let sent = request.tool_choice.as_ref();
    let choice = sent.or(wanted.filter(|_| request.tools.is_empty()));
    choice == Some(&ToolChoice::None)
}

/// What is sent. Boxed where it is handed on: as it is, it would stand in the state of each future that it
/// passes through, and of all around, for as long as the reply takes.
pub(super) struct Request {
    pub(super) messages: Vec<ChatMessage>,
    pub(super) options: ChatClientRunOptions,
}

impl Request {
    /// Its parts. The box is gone then: in an async function it would live as long as the reply.
    fn into_parts(self: Box<Self>) -> (Vec<ChatMessage>, ChatClientRunOptions) {
        (self.messages, self.options)
    }
}

/// Makes one model request.
pub(super) async fn exchange(
    inner: &Arc<dyn IChatClient>,
    leg: &mut Leg,
    request: Box<Request>,
) -> Reply {
    let round = leg.run.counters.rounds;
    leg.run.counters.rounds += 1;
    leg.first_request = false;
    let before = leg.new_messages().len();
    let span = chat_span(inner, &request.options);
    let mut forward = Forward::default();
    let end = forward.run(inner, leg, request, &span).await;
    let status = match &end {
        ReplyEnd::Whole {
            reason: FinishReason::Length | FinishReason::ContentFilter,
            ..
        }
        | ReplyEnd::Failed(_)
        | ReplyEnd::Stopped(_) => MessageStatus::Incomplete,
        ReplyEnd::Whole { .. } => MessageStatus::Complete,
    };
    leg.close_message(status).await;
    let usage = match &end {
        ReplyEnd::Whole { usage, .. } => usage.clone(),
        _ => forward.usage(),
    };
    record(&span, &end, usage.as_ref());
    leg.count_usage(round, usage);
    let contents = leg.new_messages()[before..]
        .iter()
        .rfind(|message| message.role() == MessageRole::Assistant)
        .map(|message| message.contents().to_vec())
        .unwrap_or_default();
    Reply { end, contents }
}

/// Forwards the updates of one reply, put into the order that the contract promises (B3).
#[derive(Default)]
struct Forward {
    /// Calls of the open message that have begun.
    begun: BTreeSet<u32>,
    /// Calls of the open message that are whole.
    whole: BTreeSet<u32>,
    /// The call whose text comes: it has begun and is not whole.
    current: Option<u32>,
    /// Tokens of attempts that were given up.
    given_up: Usage,
    /// The last report of the present attempt.
    reported: Option<Usage>,
}

impl Forward {
    async fn run(
        &mut self,
        inner: &Arc<dyn IChatClient>,
        leg: &mut Leg,
        request: Box<Request>,
        span: &Span,
    ) -> ReplyEnd {
        let mut stopped = Box::pin(leg.stopped());
        let mut updates = {
            let (messages, options) = request.into_parts();
            let opened = inner.run(&messages, options).instrument(span.clone());
            let opened = tokio::select! {
                biased;
                stop = &mut stopped => return ReplyEnd::Stopped(stop),
                opened = opened => opened,
            };
            match opened {
                Ok(updates) => updates,
                Err(error) => return ReplyEnd::Failed(error),
            }
        };
        // Whom the token wakes by now; a flag wakes nobody, and is looked at at each wait. Compared by
        // the data: the tables have several addresses in some builds.
        let looks_always = leg.options.cancellation.has_flag();
        let mut woken: Option<Waker> = None;
        loop {
            // What says stop is looked at before each update, and waited for only while none comes.
            let next = poll_fn(|context| {
                if let Some(stop) = leg.stop() {
                    return Poll::Ready(Err(stop));
                }
                let next = span.in_scope(|| updates.poll_next_unpin(context));
                if next.is_ready() {
                    return next.map(Ok);
                }
                let is_woken = |waker: &Waker| waker.data() == context.waker().data();
                if !looks_always && woken.as_ref().is_some_and(is_woken) {
                    return Poll::Pending;
                }
                woken = Some(context.waker().clone());
                stopped.poll_unpin(context).map(Err)
            });
            let next = match next.await {
                Ok(next) => next,
                Err(stop) => return ReplyEnd::Stopped(stop),
            };
            match next {
                Some(Ok(AgentResponseUpdate::Finish { finish })) => {
                    if !finish.usage.is_empty() {
                        self.reported = Some(finish.usage);
                    }
                    return ReplyEnd::Whole {
                        reason: finish.reason,
                        usage: self.usage(),
                    };
                }
                Some(Ok(update)) => self.forward(leg, update).await,
                Some(Err(error)) => return ReplyEnd::Failed(error),
                None => {
                    return ReplyEnd::Failed(Error::new(
                        ErrorKind::TruncatedStream,
                        "the model's stream ended without its terminal item",
                    ));
                }
            }
        }
    }

    fn usage(&self) -> Option<Usage> {
        let mut usage = self.given_up.clone();
        if let Some(reported) = &self.reported {
            usage += reported;
        }
        (!usage.is_empty()).then_some(usage)
    }

    async fn forward(&mut self, leg: &mut Leg, update: AgentResponseUpdate) {
        match &update {
            // One reply is one message: what begins again goes on, and the end is the reply's.
            AgentResponseUpdate::MessageStart { .. } if leg.is_message_open() => return,
            AgentResponseUpdate::MessageEnd { .. } => return,
            AgentResponseUpdate::TextDelta { text }
            | AgentResponseUpdate::ReasoningDelta { text }
                if text.is_empty() =>
            {
                return;
            }
            AgentResponseUpdate::TextDelta { .. }
            | AgentResponseUpdate::ReasoningDelta { .. }
            | AgentResponseUpdate::ReasoningData { .. }
            | AgentResponseUpdate::Content { .. } => open(leg).await,
            AgentResponseUpdate::ToolCallStart { position, .. } => {
                open(leg).await;
                if !self.begun.insert(*position) {
                    return;
                }
            }
            AgentResponseUpdate::ToolCallArgs { position, .. }
                if self.current == Some(*position) => {}
            AgentResponseUpdate::ToolCallArgs { position, .. } => {
                self.begin(leg, *position, ToolCallHead::default).await;
                if self.whole.contains(position) {
                    return;
                }
                self.current = Some(*position);
            }
            AgentResponseUpdate::ToolCallEnd { position, call } => {
                let head = || ToolCallHead::new(call.id(), call.name());
                self.begin(leg, *position, head).await;
                self.current = None;
                if !self.whole.insert(*position) {
                    return;
                }
            }
            AgentResponseUpdate::Usage { usage } => self.reported = Some((**usage).clone()),
            AgentResponseUpdate::AttemptReset { .. } => {
                self.begun.clear();
                self.whole.clear();
                self.current = None;
                if let Some(usage) = self.reported.take() {
                    self.given_up += &usage;
                }
            }
            _ => {}
        }
        leg.emit(update).await;
    }

    /// Begins a call whose beginning the provider left out.
    async fn begin(&mut self, leg: &mut Leg, position: u32, head: impl FnOnce() -> ToolCallHead) {
        open(leg).await;
        if self.begun.insert(position) {
            let call = Box::new(head());
            leg.emit(AgentResponseUpdate::ToolCallStart { position, call })
                .await;
        }
    }
}

/// Begins the message, if the provider left that out.
async fn open(leg: &mut Leg) {
    if !leg.is_message_open() {
        leg.emit(AgentResponseUpdate::assistant_start()).await;
    }
}

/// The span of one model request: OpenTelemetry GenAI semantic conventions, "Inference".
fn chat_span(inner: &Arc<dyn IChatClient>, options: &ChatClientRunOptions) -> Span {
    let span = tracing::info_span!(
        "chat",
        otel.name = tracing::field::Empty,
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = tracing::field::Empty,
        gen_ai.request.model = tracing::field::Empty,
        gen_ai.response.finish_reasons = tracing::field::Empty,
        gen_ai.usage.input_tokens = tracing::field::Empty,
        gen_ai.usage.output_tokens = tracing::field::Empty,
        error.type = tracing::field::Empty,
    );
    if !span.is_disabled() {
        let metadata = inner.metadata();
        if let Some(model) = options.model.as_ref().or(metadata.model.as_ref()) {
            span.record("otel.name", format!("chat {model}"));
            span.record("gen_ai.request.model", model);
        }
        if let Some(provider) = &metadata.provider {
            span.record("gen_ai.provider.name", provider);
        }
    }
    span
}

fn record(span: &Span, end: &ReplyEnd, usage: Option<&Usage>) {
    if span.is_disabled() {
        return;
    }
    if let Some(tokens) = usage.and_then(|usage| usage.input_tokens) {
        span.record("gen_ai.usage.input_tokens", tokens);
    }
    if let Some(tokens) = usage.and_then(|usage| usage.output_tokens) {
        span.record("gen_ai.usage.output_tokens", tokens);
    }
    match end {
        ReplyEnd::Whole { reason, .. } => {
            let reasons = format!("[{:?}]", reason.as_str());
            span.record("gen_ai.response.finish_reasons", reasons);
        }
        ReplyEnd::Failed(error) => {
            span.record("error.type", error.kind().as_str());
        }
        ReplyEnd::Stopped(stop) => {
            span.record("error.type", format!("{stop:?}"));
        }
    }
}

#[cfg(test)]
mod tests;
