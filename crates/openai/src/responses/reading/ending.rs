//! How a response ended, in its own words and in ours.

use raf_core::{AgentResponseUpdate, FinishReason, ResponseMetadata};
/// How a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Completed,
    /// Cut by the limit on its output.
    Length,
    ContentFilter,
    /// Ended by something else, in its word.
    Other(String),
    /// It goes on at the server: `queued` or `in_progress`.
    Unfinished(String),
}

impl Ending {
    /// What a response says of its end: `word` is that of its event, `status` its own, and `reason` why it
    /// is incomplete, if it says so. `None` for one that failed.
    pub(super) fn of(word: &str, status: &str, reason: Option<&str>) -> Option<Self> {
        let word = match (word, status) {
            // The response inside knows better than the name of its event.
            ("completed" | "done" | "", "") if reason.is_some() => "incomplete",
            ("completed" | "done" | "", status) => status,
            (word, _) => word,
        };
        Some(match word {
            "failed" => return None,
            "" | "completed" | "done" => Self::Completed,
            "incomplete" => match reason.unwrap_or("") {
                "" | "max_output_tokens" | "max_tokens" | "length" => Self::Length,
                "content_filter" => Self::ContentFilter,
                reason => Self::Other(reason.to_owned()),
            },
            "queued" | "in_progress" => Self::Unfinished(word.to_owned()),
            word => Self::Other(word.to_owned()),
        })
    }

    /// Whether items may lack something.
    pub(super) fn is_cut(&self) -> bool {
        *self != Self::Completed
    }

    pub(super) fn reason(&self, has_calls: bool) -> FinishReason {
        match self {
            Self::Completed if has_calls => FinishReason::ToolCalls,
            Self::Completed => FinishReason::Stop,
            Self::Length => FinishReason::Length,
            Self::ContentFilter => FinishReason::ContentFilter,
            Self::Other(word) | Self::Unfinished(word) => FinishReason::Other(word.clone()),
        }
    }

    /// The update that tells the server's own word.
    pub(super) fn metadata(&self) -> AgentResponseUpdate {
        let word = match self {
            Self::Completed => "completed",
            Self::Length => "max_output_tokens",
            Self::ContentFilter => "content_filter",
            Self::Other(word) | Self::Unfinished(word) => word,
        };
        let mut metadata = ResponseMetadata::default();
        metadata.raw_finish_reason = Some(word.to_owned());
        let metadata = Box::new(metadata);
        AgentResponseUpdate::ResponseMetadata { metadata }
    }
}
