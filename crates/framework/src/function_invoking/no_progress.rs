//! Notices a model that repeats itself: the same calls with the same results (contract F4). Pure.

use raf_core::{ToolCall, canonical_object};
use raf_tools::{BatchCall, ResultDigest};
use serde::{Deserialize, Serialize};

/// What is appended to the last result of the round before the one that ends the run.
pub(super) const WARNING: &str = "\n[You have made the same calls with the same results before. \
    Do something else, or answer with what you have.]";

/// The calls of a round: tool and argument text each, as the model wrote it.
pub(super) type RoundCalls = Vec<(String, String)>;

/// The rounds in a row that were identical.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NoProgress {
    calls: RoundCalls,
    results: Vec<ResultDigest>,
    count: u32,
}

/// What follows from a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    GoOn,
    Warn,
    End,
}

/// The calls of a round as they are kept.
pub(super) fn round_calls(calls: &[BatchCall]) -> RoundCalls {
    let kept = |call: &BatchCall| {
        let arguments = call.call.arguments().to_owned();
        (call.tool_name().to_owned(), arguments)
    };
    calls.iter().map(kept).collect()
}

/// Whether two argument texts say the same. Equal texts do; others are read only then.
fn is_same_text(one: &str, other: &str) -> bool {
    let canonical = |text: &str| {
        let call = ToolCall::new("", "", text);
        call.parse_arguments().map_or_else(
            |_| text.to_owned(),
            |arguments| canonical_object(&arguments),
        )
    };
    one == other || canonical(one) == canonical(other)
}

impl NoProgress {
    /// Whether a round of these calls may turn out to be the one that is warned about, so that its
    /// last result must be held until all are known.
    pub(super) fn may_warn(&self, calls: &[BatchCall], limit: u32) -> bool {
        let is_same = |((tool, known), call): (&(String, String), &BatchCall)| {
            tool == call.tool_name() && is_same_text(known, call.call.arguments())
        };
        limit >= 3
            && self.count + 2 == limit
            && self.calls.len() == calls.len()
            && self.calls.iter().zip(calls).all(is_same)
    }

    /// Counts a round that had an `ok` result and no polling tool. Results are in call order.
    pub(super) fn count(
        &mut self,
        calls: RoundCalls,
        results: Vec<ResultDigest>,
        limit: u32,
    ) -> Repetition {
        if limit == 0 {
            return Repetition::GoOn;
        }
        let is_same = |(one, other): (&(String, String), &(String, String))| {
            one.0 == other.0 && is_same_text(&one.1, &other.1)
        };
        if self.results == results
            && self.calls.len() == calls.len()
            && self.calls.iter().zip(&calls).all(is_same)
        {
            self.count += 1;
        } else {
            *self = Self {
                calls,
                results,
                count: 1,
            };
        }
        if self.count >= limit {
            Repetition::End
        } else if limit >= 3 && self.count + 1 == limit {
            Repetition::Warn
        } else {
            Repetition::GoOn
        }
    }
}

#[cfg(test)]
mod tests;
