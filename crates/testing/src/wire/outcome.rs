//! What a client made of a reply, and whether the updates came in a lawful order.

use std::collections::BTreeMap;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatMessage, Content, Error, ErrorKind, FinishReason, MessageStatus,
    ResponseFold, ToolCall, UpdateStream, Usage,
};

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The text.
    pub text: String,
    /// The reasoning.
    pub reasoning: String,
    /// The refusal.
    pub refusal: String,
    /// By position.
    pub calls: BTreeMap<u32, ToolCall>,
    /// Why it ended, in the word of the cases.
    pub finish_reason: Option<&'static str>,
    /// What it cost, as last reported.
    pub usage: Option<Usage>,
    /// The error that ended it.
    pub error: Option<Error>,
    /// All that was said.
    pub updates: Vec<AgentResponseUpdate>,
}

impl Outcome {
    /// The conversation so far: a question, and what was said.
    ///
    /// # Errors
    /// What was said is no whole reply.
    pub fn conversation(&self) -> Result<Vec<ChatMessage>, String> {
        let mut fold = ResponseFold::new();
        for update in &self.updates {
            fold.push(update);
        }
        let response = fold.finish().map_err(|error| error.to_string())?;
        let mut messages = vec![ChatMessage::user("Hello")];
        messages.extend(response.messages);
        Ok(messages)
    }
}

/// Reads a run to its end.
///
/// # Panics
/// Its updates break the order that the seam promises.
pub async fn gather(mut updates: UpdateStream) -> Outcome {
    let mut outcome = Outcome::default();
    let mut order = Order::default();
    while let Some(update) = updates.next().await {
        assert!(!order.is_over, "an item after the terminal one");
        match update {
            Ok(update) => {
                order.check(&update);
                outcome.take(&update);
                outcome.updates.push(update);
            }
            Err(error) => {
                order.is_over = true;
                outcome.error = Some(error);
            }
        }
    }
    assert!(updates.next().await.is_none(), "an item after the end");
    assert!(order.is_over, "no terminal item");
    assert!(
        outcome.error.is_none() || !order.message_ended,
        "a message ends whole in a stream that fails"
    );
    for (place, position) in (0..).zip(outcome.calls.keys()) {
        assert_eq!(place, *position, "the positions of calls have a gap");
    }
    outcome
}

/// An error's class as cases name it.
pub fn class(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::Authentication => "auth",
        kind => kind.as_str(),
    }
}

#[derive(Default)]
struct Order {
    is_over: bool,
    message_started: bool,
    message_ended: bool,
    calls: BTreeMap<u32, bool>,
}

impl Order {
    fn check(&mut self, update: &AgentResponseUpdate) {
        let in_message = self.message_started && !self.message_ended;
        match update {
            AgentResponseUpdate::MessageStart { .. } => {
                assert!(!self.message_started, "a second message");
                self.message_started = true;
            }
            AgentResponseUpdate::ToolCallStart { position, .. } => {
                assert!(in_message, "a call outside the message");
                let before = self.calls.insert(*position, false);
                assert_eq!(before, None, "call {position} starts twice");
            }
            AgentResponseUpdate::ToolCallArgs { position, .. } => {
                assert_eq!(
                    self.calls.get(position),
                    Some(&false),
                    "arguments out of order"
                );
            }
            AgentResponseUpdate::ToolCallEnd { position, .. } => {
                assert_eq!(
                    self.calls.insert(*position, true),
                    Some(false),
                    "an end out of order"
                );
            }
            AgentResponseUpdate::TextDelta { text }
            | AgentResponseUpdate::ReasoningDelta { text } => {
                assert!(in_message, "a delta outside the message");
                assert!(!text.is_empty(), "an empty delta");
            }
            AgentResponseUpdate::Content { .. } | AgentResponseUpdate::ReasoningData { .. } => {
                assert!(in_message, "a part outside the message");
            }
            AgentResponseUpdate::MessageEnd { status } => {
                assert!(in_message, "an end outside the message");
                assert_eq!(*status, MessageStatus::Complete);
                self.message_ended = true;
            }
            AgentResponseUpdate::Usage { .. } | AgentResponseUpdate::ResponseMetadata { .. } => {}
            AgentResponseUpdate::Finish { .. } => {
                assert!(self.message_ended, "a finish without the message's end");
                self.is_over = true;
            }
            other => panic!("a provider does not say {other:?}"),
        }
    }
}

impl Outcome {
    fn take(&mut self, update: &AgentResponseUpdate) {
        match update {
            AgentResponseUpdate::TextDelta { text } => self.text.push_str(text),
            AgentResponseUpdate::ReasoningDelta { text } => self.reasoning.push_str(text),
            AgentResponseUpdate::Content { content } => {
                if let Content::Refusal(refusal) = &**content {
                    self.refusal.push_str(&refusal.text);
                }
            }
            AgentResponseUpdate::ToolCallEnd { position, call } => {
                self.calls.insert(*position, call.clone());
            }
            AgentResponseUpdate::Usage { usage } => self.usage = Some((**usage).clone()),
            AgentResponseUpdate::Finish { finish } => {
                self.finish_reason = Some(match &finish.reason {
                    FinishReason::Stop => "stop",
                    FinishReason::Length => "length",
                    FinishReason::ToolCalls => "tool_calls",
                    FinishReason::ContentFilter => "content_filter",
                    FinishReason::Other(_) => "other",
                    reason => panic!("a provider does not finish with {reason:?}"),
                });
                let reported = self.usage.clone().unwrap_or_default();
                assert_eq!(finish.usage, reported, "the finish has another usage");
            }
            _ => {}
        }
    }

    /// The error's class as cases name it.
    pub fn error_class(&self) -> Option<&'static str> {
        self.error.as_ref().map(class)
    }
}
