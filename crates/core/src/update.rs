//! What a stream says, item by item.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalRequest, ClosedReason, RefusalReason};
use crate::content::{Content, ProviderData, ToolCall, ToolResult};
use crate::finish::Finish;
use crate::identity::{Occurrence, RunId};
use crate::message::{ChatMessage, MessageRole, MessageStatus};
use crate::usage::Usage;

/// One item of the stream of a leg.
///
/// Order (contract B3): per message `MessageStart` < deltas < `MessageEnd`; per call
/// `ToolCallStart` < `ToolCallArgs`* < `ToolCallEnd` < `ToolStarted` < `ToolProgress`* <
/// `ToolCalled`; one terminal item, last: `Finish`, or the stream's `Err`.
///
/// JSON form: `{"type": "text_delta", "text": …}`; big payloads sit in a field of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentResponseUpdate {
    /// A message begins.
    MessageStart {
        /// Who speaks.
        role: MessageRole,
        /// The provider's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<Box<str>>,
    },
    /// Text to append to the open message.
    TextDelta {
        /// The text.
        text: String,
    },
    /// Reasoning to append to the open message.
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// Opaque data of the reasoning just streamed. It ends that reasoning part.
    ReasoningData {
        /// The data.
        data: Box<ProviderData>,
    },
    /// A whole part of the open message that is not streamed: refusal, media, unknown content.
    Content {
        /// The part.
        content: Box<Content>,
    },
    /// A call begins. Id and name may still change; [`AgentResponseUpdate::ToolCallEnd`] decides.
    ToolCallStart {
        /// Which call of the message, from 0.
        position: u32,
        /// Its label and tool, as far as they are known.
        call: Box<ToolCallHead>,
    },
    /// Argument text to append to a call.
    ToolCallArgs {
        /// Which call of the message.
        position: u32,
        /// The piece, raw.
        delta: String,
    },
    /// A call is whole.
    ToolCallEnd {
        /// Which call of the message.
        position: u32,
        /// The call: this form counts, whatever the pieces said.
        call: ToolCall,
    },
    /// The open message ends.
    MessageEnd {
        /// Whether it is whole. Calls without their end are dropped from an incomplete one.
        status: MessageStatus,
    },
    /// A whole message is appended: an inbox message, or one that raf adds.
    Message {
        /// The message.
        message: ChatMessage,
    },
    /// A tool's body is about to be entered.
    ToolStarted {
        /// Which call.
        occurrence: Occurrence,
        /// Its label and tool.
        call: Box<ToolCallHead>,
    },
    /// A running tool says something. Live only: no part of the transcript. Pieces may be joined.
    ToolProgress {
        /// Which call.
        occurrence: Occurrence,
        /// What it says.
        content: Box<Content>,
    },
    /// A call has its outcome. In order of completion; the fold puts results in call order.
    ///
    /// In a leg that goes on with a run that waited, those before the first `MessageStart` belong to
    /// the batch that waited; where a new message of the user took its place, what follows is a new
    /// run whose rounds are counted anew.
    ToolCalled {
        /// Which call.
        occurrence: Occurrence,
        /// The result as it stands in the transcript.
        result: ToolResult,
    },
    /// A call waits for a person. Announced once.
    ToolApprovalRequest {
        /// The request.
        request: Box<ApprovalRequest>,
    },
    /// A call waits for data that its tool asked for. Announced once.
    ToolInterrupted {
        /// Which call.
        occurrence: Occurrence,
        /// What it asks.
        interrupt: Box<InterruptNotice>,
    },
    /// An answer was refused; its request is as it was.
    ToolApprovalRefused {
        /// Which request the answer named.
        request_id: Box<str>,
        /// Why.
        reason: RefusalReason,
    },
    /// A request was closed without an answer.
    ToolApprovalClosed {
        /// Which request.
        request_id: Box<str>,
        /// Why.
        reason: ClosedReason,
    },
    /// Tokens of the reply so far. Cumulative within one reply: the last report counts.
    Usage {
        /// The report.
        usage: Box<Usage>,
    },
    /// Ids and words of the provider about the reply.
    ResponseMetadata {
        /// What is known; several are laid over one another.
        metadata: Box<ResponseMetadata>,
    },
    /// The reply failed and is tried again: forget what it has said so far.
    AttemptReset {
        /// Why, for people.
        reason: Box<str>,
    },
    /// An update of a run nested in a call.
    Nested {
        /// Which call.
        occurrence: Occurrence,
        /// The nested run and its update.
        nested: Box<NestedUpdate>,
    },
    /// Something failed that does not end the leg, a nested run for instance.
    Error {
        /// What, as it may be shown.
        error: Box<ErrorNotice>,
    },
    /// The leg ends well: the terminal item.
    Finish {
        /// Reason, usage, and what waits.
        finish: Box<Finish>,
    },
}

impl AgentResponseUpdate {
    /// Text to append.
    pub fn text(text: impl Into<String>) -> Self {
        Self::TextDelta { text: text.into() }
    }

    /// An assistant message begins.
    pub fn assistant_start() -> Self {
        Self::MessageStart {
            role: MessageRole::Assistant,
            message_id: None,
        }
    }

    /// The open message ends whole.
    pub fn message_end() -> Self {
        Self::MessageEnd {
            status: MessageStatus::Complete,
        }
    }

    /// The terminal item.
    pub fn finish(finish: Finish) -> Self {
        Self::Finish {
            finish: Box::new(finish),
        }
    }

    /// A report of tokens.
    pub fn usage(usage: Usage) -> Self {
        Self::Usage {
            usage: Box::new(usage),
        }
    }

    /// The kind as text, for logs and metrics: the `type` of the JSON form.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::TextDelta { .. } => "text_delta",
            Self::ReasoningDelta { .. } => "reasoning_delta",
            Self::ReasoningData { .. } => "reasoning_data",
            Self::Content { .. } => "content",
            Self::ToolCallStart { .. } => "tool_call_start",
            Self::ToolCallArgs { .. } => "tool_call_args",
            Self::ToolCallEnd { .. } => "tool_call_end",
            Self::MessageEnd { .. } => "message_end",
            Self::Message { .. } => "message",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolProgress { .. } => "tool_progress",
            Self::ToolCalled { .. } => "tool_called",
            Self::ToolApprovalRequest { .. } => "tool_approval_request",
            Self::ToolInterrupted { .. } => "tool_interrupted",
            Self::ToolApprovalRefused { .. } => "tool_approval_refused",
            Self::ToolApprovalClosed { .. } => "tool_approval_closed",
            Self::Usage { .. } => "usage",
            Self::ResponseMetadata { .. } => "response_metadata",
            Self::AttemptReset { .. } => "attempt_reset",
            Self::Nested { .. } => "nested",
            Self::Error { .. } => "error",
            Self::Finish { .. } => "finish",
        }
    }
}

/// A call's label and tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallHead {
    /// The label that the model gave.
    pub id: String,
    /// The tool's name.
    pub name: String,
}

impl ToolCallHead {
    /// A head of these.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
        }
    }
}

/// What an interrupted tool asks of the outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptNotice {
    /// The id by which an answer names it.
    pub request_id: String,
    /// Where in the run it happened: `run/round/position/tool/…`.
    pub address: String,
    /// What the tool says.
    pub information: Value,
}

/// Ids and words of the provider about one reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResponseMetadata {
    /// The provider's id of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The finish reason in the provider's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_finish_reason: Option<String>,
    /// Anything else that the provider says of the reply as a whole.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra: serde_json::Map<String, Value>,
}

impl ResponseMetadata {
    /// Lays another report over this one.
    pub fn merge(&mut self, other: &Self) {
        fn over(into: &mut Option<String>, from: Option<&String>) {
            if let Some(from) = from {
                *into = Some(from.clone());
            }
        }
        over(&mut self.response_id, other.response_id.as_ref());
        over(&mut self.model, other.model.as_ref());
        over(
            &mut self.raw_finish_reason,
            other.raw_finish_reason.as_ref(),
        );
        for (key, value) in &other.extra {
            self.extra.insert(key.clone(), value.clone());
        }
    }
}

/// A nested run's update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NestedUpdate {
    /// The nested run.
    pub run_id: RunId,
    /// What it says.
    pub update: AgentResponseUpdate,
}

/// A failure as it may be shown: kind and message, no source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorNotice {
    /// [`ErrorKind`](crate::ErrorKind) as text.
    pub kind: String,
    /// What, where, what to do.
    pub message: String,
}

impl From<&crate::Error> for ErrorNotice {
    fn from(error: &crate::Error) -> Self {
        Self {
            kind: error.kind().as_str().to_owned(),
            message: error.message().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AgentResponseUpdate;

    #[test]
    fn an_update_is_small() {
        assert!(size_of::<AgentResponseUpdate>() <= 32);
        assert!(size_of::<crate::Result<AgentResponseUpdate>>() <= 32);
    }

    #[test]
    fn the_kind_is_the_type_of_the_json_form() {
        let updates = [
            AgentResponseUpdate::assistant_start(),
            AgentResponseUpdate::text("a"),
            AgentResponseUpdate::message_end(),
            AgentResponseUpdate::usage(crate::Usage::new(1, 1)),
            AgentResponseUpdate::finish(crate::Finish::new(crate::FinishReason::Stop)),
        ];
        for update in updates {
            let json = serde_json::to_value(&update).unwrap();
            assert_eq!(json["type"], update.kind());
        }
    }
}
