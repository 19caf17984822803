//! The scenarios: how many requests each makes, what answers them, and what a
//! client must end up with.

use super::answer::{Answer, Call, big_arguments, big_content, lookup_arguments, lookup_number};
use super::{
    BIG_CALLS, BIG_FRAGMENTS, BIG_TOOL, CALL_FRAGMENTS, CALLS_PER_ROUND, FINAL_CHUNKS,
    HISTORY_MESSAGES, PACED_CHUNKS, TEXT_CHUNKS, TOOL_NAMES, answer, wire,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// S1: one long text stream through the lowest streaming API of a library.
    Text,
    /// S1 with events packed into 16 KiB HTTP chunks instead of one chunk each.
    TextBulk,
    /// S1, shorter, with a pause after each event, so that each wakes the client.
    TextPaced,
    /// S1 through the agent layer of a library (its hand-written loop if it has none).
    TextAgent,
    /// S2: one response with large parallel tool calls.
    Tools,
    /// S3: an agent loop of ten rounds.
    Loop,
    /// S4: a thousand parallel loops of three rounds with think time.
    Concurrent,
    /// S5: S3 after a long conversation.
    Long,
}

impl Scenario {
    pub const ALL: [Scenario; 8] = [
        Self::Text,
        Self::TextBulk,
        Self::TextPaced,
        Self::TextAgent,
        Self::Tools,
        Self::Loop,
        Self::Concurrent,
        Self::Long,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::TextBulk => "text-bulk",
            Self::TextPaced => "text-paced",
            Self::TextAgent => "text-agent",
            Self::Tools => "tools",
            Self::Loop => "loop",
            Self::Concurrent => "concurrent",
            Self::Long => "long",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// The value of the request's `model` field, by which the server picks.
    pub fn model(self) -> String {
        format!("bench-{}", self.name())
    }

    /// Requests in one run.
    pub fn rounds(self) -> usize {
        match self {
            Self::Text | Self::TextBulk | Self::TextPaced | Self::TextAgent | Self::Tools => 1,
            Self::Loop | Self::Long => 10,
            Self::Concurrent => 3,
        }
    }

    pub fn is_loop(self) -> bool {
        matches!(
            self,
            Self::TextAgent | Self::Loop | Self::Concurrent | Self::Long
        )
    }

    /// Whether the model calls tools that a loop executes.
    pub fn has_tools(self) -> bool {
        matches!(self, Self::Loop | Self::Concurrent | Self::Long)
    }

    /// Messages before the user prompt.
    pub fn history_messages(self) -> usize {
        if self == Self::Long {
            HISTORY_MESSAGES
        } else {
            0
        }
    }

    /// Runs per measurement, so that each measurement takes long enough.
    pub fn default_iterations(self) -> usize {
        match self {
            Self::Text | Self::TextBulk | Self::TextAgent => 3,
            Self::Tools | Self::Loop => 30,
            Self::Long => 3,
            Self::Concurrent | Self::TextPaced => 1,
        }
    }

    /// Text deltas and argument fragments in one run.
    pub fn chunks(self) -> usize {
        match self {
            Self::Text | Self::TextBulk | Self::TextAgent => TEXT_CHUNKS,
            Self::TextPaced => PACED_CHUNKS,
            Self::Tools => BIG_CALLS * BIG_FRAGMENTS,
            Self::Loop | Self::Concurrent | Self::Long => {
                (self.rounds() - 1) * CALLS_PER_ROUND * CALL_FRAGMENTS + FINAL_CHUNKS
            }
        }
    }

    /// What the model says in the given round.
    pub fn answer(self, round: usize) -> Answer {
        let last = round + 1 >= self.rounds();
        match self {
            Self::Text | Self::TextBulk | Self::TextPaced | Self::TextAgent => Answer::Text {
                tokens: self.chunks(),
            },
            Self::Tools => Answer::Calls {
                calls: (0..BIG_CALLS)
                    .map(|i| Call::new(i, BIG_TOOL, big_arguments(i)))
                    .collect(),
                fragments: BIG_FRAGMENTS,
            },
            _ if last => Answer::Text {
                tokens: FINAL_CHUNKS,
            },
            _ => Answer::Calls {
                calls: (0..CALLS_PER_ROUND)
                    .map(|i| Call::new(i, TOOL_NAMES[i], lookup_arguments(round, i)))
                    .collect(),
                fragments: CALL_FRAGMENTS,
            },
        }
    }

    /// What one run of a client must report.
    pub fn expected(self) -> crate::Outcome {
        let calls = (self.rounds() - 1) * CALLS_PER_ROUND;
        crate::Outcome {
            events: wire::chat::event_count(self),
            rounds: self.rounds(),
            text_len: match self {
                Self::Text | Self::TextBulk | Self::TextPaced | Self::TextAgent => {
                    answer::text_len(self.chunks())
                }
                Self::Tools => 0,
                _ => answer::text_len(FINAL_CHUNKS),
            },
            tool_calls: if self == Self::Tools {
                BIG_CALLS
            } else {
                calls
            },
            argument_sum: match self {
                Self::Tools => (0..BIG_CALLS).map(|i| big_content(i).len() as u64).sum(),
                _ => (0..self.rounds() - 1)
                    .flat_map(|r| (0..CALLS_PER_ROUND).map(move |i| lookup_number(r, i)))
                    .sum(),
            },
        }
    }
}
