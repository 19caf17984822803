//! The one fold from updates to a response. Loop, sessions, caches and callers all use it.

use crate::approval::{PendingCall, WaitsFor};
use crate::content::{Content, ReasoningContent, ToolCall, ToolResult};
use crate::error::{Error, ErrorKind, Result};
use crate::finish::Finish;
use crate::identity::Occurrence;
use crate::message::{ChatMessage, MessageRole, MessageSource, MessageStatus};
use crate::response::{AgentResponse, LegSnapshot};
use crate::update::{AgentResponseUpdate, ResponseMetadata};
use crate::usage::Usage;

/// Folds the updates of a leg to its messages and its end.
///
/// - Deltas are joined to parts in order of arrival; a call stands where it started.
/// - An incomplete message keeps its text and the calls that ended; one that is empty is dropped.
/// - Results of one round are put in call order, however they finished: one message each.
/// - `AttemptReset` forgets the open message.
/// - A finish with pending calls notes the run in the message that asks for them
///   ([`ChatMessage::paused_run_id`]).
/// - Nested updates, progress and starts are no part of the transcript.
///
/// ```
/// use raf_core::{AgentResponseUpdate, Finish, FinishReason, ResponseFold};
///
/// let mut fold = ResponseFold::new();
/// fold.push(&AgentResponseUpdate::assistant_start());
/// fold.push(&AgentResponseUpdate::text("Hello, "));
/// fold.push(&AgentResponseUpdate::text("world"));
/// fold.push(&AgentResponseUpdate::message_end());
/// fold.push(&AgentResponseUpdate::finish(Finish::new(FinishReason::Stop)));
/// assert_eq!(fold.finish().unwrap().text(), "Hello, world");
/// ```
#[derive(Debug, Default)]
pub struct ResponseFold {
    messages: Vec<ChatMessage>,
    open: Option<OpenMessage>,
    usage: ReportedUsage,
    metadata: ResponseMetadata,
    pending: Vec<PendingCall>,
    /// Boxed: it is large, and there for a moment only.
    finish: Option<Box<Finish>>,
}

#[derive(Debug)]
struct OpenMessage {
    role: MessageRole,
    message_id: Option<Box<str>>,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Whole(Content),
    Text(String),
    Reasoning(ReasoningContent),
    Call {
        position: u32,
        call: Option<ToolCall>,
    },
}

impl ResponseFold {
    /// An empty fold.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next update in.
    pub fn push(&mut self, update: &AgentResponseUpdate) {
        match update {
            AgentResponseUpdate::MessageStart { role, message_id } => {
                self.close(MessageStatus::Complete);
                self.usage.message_starts();
                self.open = Some(OpenMessage::new(*role, message_id.clone()));
            }
            AgentResponseUpdate::TextDelta { text } => self.open().text(text),
            AgentResponseUpdate::ReasoningDelta { text } => self.open().reasoning(text),
            AgentResponseUpdate::ReasoningData { data } => {
                self.open().reasoning_data((**data).clone());
            }
            AgentResponseUpdate::Content { content } => {
                self.open().parts.push(Part::Whole((**content).clone()));
            }
            AgentResponseUpdate::ToolCallStart { position, .. } => {
                self.open().call(*position, None);
            }
            AgentResponseUpdate::ToolCallEnd { position, call } => {
                self.open().call(*position, Some(call));
            }
            AgentResponseUpdate::MessageEnd { status } => self.close(*status),
            AgentResponseUpdate::Message { message } => {
                self.close(MessageStatus::Complete);
                self.messages.push(message.clone());
            }
            AgentResponseUpdate::ToolCalled { occurrence, result } => {
                self.close(MessageStatus::Complete);
                self.insert_result(*occurrence, result);
            }
            AgentResponseUpdate::ToolApprovalRequest { request } => {
                let call = self
                    .call_at(request.occurrence)
                    .unwrap_or_else(|| ToolCall::new(&request.call_id, &request.tool, ""));
                self.pending.push(PendingCall::new(
                    request.occurrence,
                    call,
                    WaitsFor::Approval(request.clone()),
                ));
            }
            AgentResponseUpdate::Usage { usage } => self.usage.report(usage),
            AgentResponseUpdate::ResponseMetadata { metadata } => self.metadata.merge(metadata),
            AgentResponseUpdate::AttemptReset { .. } => {
                self.open = None;
                self.usage.attempt_ends();
            }
            AgentResponseUpdate::Finish { finish } => {
                self.close(MessageStatus::Complete);
                self.mark_paused(finish);
                self.finish = Some(finish.clone());
            }
            AgentResponseUpdate::ToolCallArgs { .. }
            | AgentResponseUpdate::ToolStarted { .. }
            | AgentResponseUpdate::ToolProgress { .. }
            | AgentResponseUpdate::ToolInterrupted { .. }
            | AgentResponseUpdate::ToolApprovalRefused { .. }
            | AgentResponseUpdate::ToolApprovalClosed { .. }
            | AgentResponseUpdate::Nested { .. }
            | AgentResponseUpdate::Error { .. } => {}
        }
    }

    /// The messages so far that are closed.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Whether a message is open.
    pub fn is_message_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether nothing was said yet in the open message, or none is open.
    pub fn is_open_message_empty(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.parts.is_empty())
    }

    /// What the provider said of its replies.
    pub fn metadata(&self) -> &ResponseMetadata {
        &self.metadata
    }

    /// The sum of the tokens reported so far; cumulative reports of one reply count once.
    pub fn reported_usage(&self) -> Usage {
        self.usage.total()
    }

    /// The response of a stream that ended well.
    ///
    /// # Errors
    /// [`ErrorKind::TruncatedStream`] if the stream ended without its terminal item.
    pub fn finish(mut self) -> Result<AgentResponse> {
        let Some(mut finish) = self.finish.take() else {
            return Err(self.fail(Error::new(
                ErrorKind::TruncatedStream,
                "the stream ended without its terminal item",
            )));
        };
        let reported = self.usage.total();
        if finish.usage.is_empty() {
            finish.usage = reported;
        }
        if finish.run_usage.is_empty() {
            finish.run_usage = finish.usage.clone();
        }
        Ok(AgentResponse::new(self.messages, *finish, self.metadata))
    }

    /// The error of a stream that failed, with what the leg had done, unless it says so already.
    pub fn fail(mut self, error: Error) -> Error {
        if error.leg().is_some() {
            return error;
        }
        self.close(MessageStatus::Incomplete);
        let usage = self.usage.total();
        error.with_leg(LegSnapshot {
            messages: self.messages,
            run_usage: usage.clone(),
            usage,
            pending: self.pending,
            ..LegSnapshot::default()
        })
    }

    fn open(&mut self) -> &mut OpenMessage {
        if self.open.is_none() {
            self.usage.message_starts();
        }
        self.open
            .get_or_insert_with(|| OpenMessage::new(MessageRole::Assistant, None))
    }

    fn close(&mut self, status: MessageStatus) {
        let Some(open) = self.open.take() else { return };
        self.usage.message_ends();
        self.messages.extend(open.into_message(status));
    }

    fn insert_result(&mut self, occurrence: Occurrence, result: &ToolResult) {
        let comes_after = |message: &ChatMessage| {
            message.role() == MessageRole::Tool
                && message
                    .tool_results()
                    .next()
                    .and_then(ToolResult::occurrence)
                    .is_some_and(|other| {
                        other.round == occurrence.round && other.position > occurrence.position
                    })
        };
        let later = self
            .messages
            .iter()
            .rev()
            .take_while(|message| comes_after(message))
            .count();
        let place = self.messages.len() - later;
        self.messages
            .insert(place, ChatMessage::tool(result.clone()));
    }

    /// Notes the run in the message whose calls wait, so that the next leg finds its record.
    fn mark_paused(&mut self, finish: &Finish) {
        let (Some(run_id), Some(waiting)) = (&finish.run_id, finish.pending.first()) else {
            return;
        };
        let asking = self
            .messages
            .iter_mut()
            .rfind(|message| message.tool_calls().next().is_some());
        if let Some(message) = asking {
            *message = message
                .to_builder()
                .paused_run_id(run_id)
                .paused_round(waiting.occurrence.round)
                .build();
        }
    }

    fn call_at(&self, occurrence: Occurrence) -> Option<ToolCall> {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role() == MessageRole::Assistant)?
            .tool_calls()
            .nth(occurrence.position as usize)
            .cloned()
    }
}

impl OpenMessage {
    fn new(role: MessageRole, message_id: Option<Box<str>>) -> Self {
        Self {
            role,
            message_id,
            parts: Vec::new(),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(Part::Text(whole)) = self.parts.last_mut() {
            whole.push_str(text);
        } else {
            self.parts.push(Part::Text(text.to_owned()));
        }
    }

    fn reasoning(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Reasoning(whole)) if whole.provider_data.is_none() => {
                whole.text.push_str(text);
            }
            _ => self
                .parts
                .push(Part::Reasoning(ReasoningContent::new(text))),
        }
    }

    fn reasoning_data(&mut self, data: crate::ProviderData) {
        match self.parts.last_mut() {
            Some(Part::Reasoning(whole)) if whole.provider_data.is_none() => {
                whole.provider_data = Some(data);
            }
            _ => self.parts.push(Part::Reasoning(
                ReasoningContent::default().with_provider_data(data),
            )),
        }
    }

    fn call(&mut self, position: u32, call: Option<&ToolCall>) {
        let started = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Call { position: of, call } if *of == position => Some(call),
            _ => None,
        });
        match (started, call) {
            (Some(slot), Some(call)) => *slot = Some(call.clone()),
            (Some(_), None) => {}
            (None, call) => self.parts.push(Part::Call {
                position,
                call: call.cloned(),
            }),
        }
    }

    /// The message, or nothing if it says nothing.
    fn into_message(self, status: MessageStatus) -> Option<ChatMessage> {
        let contents: Vec<Content> = self
            .parts
            .into_iter()
            .filter_map(|part| match part {
                Part::Whole(content) => Some(content),
                Part::Text(text) => Some(Content::text(text)),
                Part::Reasoning(reasoning) => Some(Content::Reasoning(reasoning)),
                Part::Call { call, .. } => call.map(Content::ToolCall),
            })
            .filter(|content| !content.is_empty())
            .collect();
        if contents.is_empty() {
            return None;
        }
        let mut message = ChatMessage::builder(self.role)
            .contents(contents)
            .status(status);
        if self.role == MessageRole::Assistant {
            message = message.source(MessageSource::Model);
        }
        if let Some(id) = self.message_id {
            message = message.message_id(id);
        }
        Some(message.build())
    }
}

/// Tokens as reported by streams: the last report of a reply counts, replies add up.
#[derive(Debug, Default)]
struct ReportedUsage {
    earlier: Usage,
    current: Option<Usage>,
    reply_ended: bool,
}

impl ReportedUsage {
    fn report(&mut self, usage: &Usage) {
        self.current = Some(usage.clone());
    }

    fn message_starts(&mut self) {
        if std::mem::take(&mut self.reply_ended) {
            self.attempt_ends();
        }
    }

    fn message_ends(&mut self) {
        self.reply_ended = true;
    }

    fn attempt_ends(&mut self) {
        if let Some(usage) = self.current.take() {
            self.earlier += &usage;
        }
    }

    fn total(&self) -> Usage {
        let mut total = self.earlier.clone();
        if let Some(usage) = &self.current {
            total += usage;
        }
        total
    }
}

#[cfg(test)]
mod tests;
