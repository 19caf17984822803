//! The steps that a reply is made of.

use raf_core::{
    AgentResponseUpdate, Content, Error, ProviderData, ResponseMetadata, ToolCall, ToolCallHead,
    Usage,
};

use crate::latch::Latch;

/// One step of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Text(String),
    Reasoning(String),
    ReasoningData(ProviderData),
    Content(Content),
    CallStart { position: u32, head: ToolCallHead },
    CallArguments { position: u32, delta: String },
    CallEnd { position: u32, call: ToolCall },
    Usage(Usage),
    Metadata(ResponseMetadata),
    Update(AgentResponseUpdate),
    Reset(String),
    Gate(Latch),
    Error(Error),
    Hang,
    HangUntilCancelled,
    Cut { clean: bool },
}

impl Step {
    /// Whether it is said inside the message.
    pub(crate) fn is_in_message(&self) -> bool {
        matches!(
            self,
            Self::Text(_)
                | Self::Reasoning(_)
                | Self::ReasoningData(_)
                | Self::Content(_)
                | Self::CallStart { .. }
                | Self::CallArguments { .. }
                | Self::CallEnd { .. }
        )
    }

    /// Whether nothing after it is played.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Error(_) | Self::Hang | Self::HangUntilCancelled | Self::Cut { .. }
        )
    }

    /// The update that says it, for steps that are just said.
    pub(crate) fn to_update(&self) -> Option<AgentResponseUpdate> {
        Some(match self.clone() {
            Self::Text(text) => AgentResponseUpdate::TextDelta { text },
            Self::Reasoning(text) => AgentResponseUpdate::ReasoningDelta { text },
            Self::ReasoningData(data) => AgentResponseUpdate::ReasoningData {
                data: Box::new(data),
            },
            Self::Content(content) => AgentResponseUpdate::Content {
                content: Box::new(content),
            },
            Self::CallStart { position, head } => AgentResponseUpdate::ToolCallStart {
                position,
                call: Box::new(head),
            },
            Self::CallArguments { position, delta } => {
                AgentResponseUpdate::ToolCallArgs { position, delta }
            }
            Self::CallEnd { position, call } => AgentResponseUpdate::ToolCallEnd { position, call },
            Self::Usage(usage) => AgentResponseUpdate::usage(usage),
            Self::Metadata(metadata) => AgentResponseUpdate::ResponseMetadata {
                metadata: Box::new(metadata),
            },
            Self::Update(update) => update,
            Self::Reset(reason) => AgentResponseUpdate::AttemptReset {
                reason: reason.into(),
            },
            Self::Gate(_)
            | Self::Error(_)
            | Self::Hang
            | Self::HangUntilCancelled
            | Self::Cut { .. } => {
                return None;
            }
        })
    }
}

/// The same steps with texts and argument texts in pieces of at most this many characters.
pub(crate) fn split(steps: &[Step], characters: usize) -> Vec<Step> {
    let mut split = Vec::new();
    for step in steps {
        match step {
            Step::Text(text) => split.extend(pieces(text, characters).map(Step::Text)),
            Step::Reasoning(text) => split.extend(pieces(text, characters).map(Step::Reasoning)),
            Step::CallArguments { position, delta } => {
                let position = *position;
                let deltas = pieces(delta, characters);
                split.extend(deltas.map(|delta| Step::CallArguments { position, delta }));
            }
            other => split.push(other.clone()),
        }
    }
    split
}

fn pieces(text: &str, characters: usize) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = letters
        .chunks(characters)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
