//! Tokens counted: per request, per leg and per run.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::identity::{Occurrence, RunId};

/// Tokens of one request or of several added up. A count that no provider gave stays unset.
///
/// JSON form: the set fields by name; counters of a provider's own under `extra`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the reply, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Both together, as the provider counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Input tokens that came from the provider's prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Counters of a provider's own, added up by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, u64>,
}

impl Usage {
    /// Input and output tokens, and their sum as the total.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            total_tokens: Some(input_tokens.saturating_add(output_tokens)),
            ..Self::default()
        }
    }

    /// Adds a counter of a provider's own.
    pub fn with_extra(mut self, name: impl Into<String>, count: u64) -> Self {
        self.extra.insert(name.into(), count);
        self
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        fn add(into: &mut Option<u64>, from: Option<u64>) {
            if let Some(from) = from {
                *into = Some(into.unwrap_or(0).saturating_add(from));
            }
        }
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.total_tokens, other.total_tokens);
        add(&mut self.cached_tokens, other.cached_tokens);
        add(&mut self.reasoning_tokens, other.reasoning_tokens);
        for (name, count) in &other.extra {
            let sum = self.extra.entry(name.clone()).or_insert(0);
            *sum = sum.saturating_add(*count);
        }
    }
}

/// The usage of one model request of a run, own or nested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoundUsage {
    /// The round within its own run, from 0.
    pub round: u32,
    /// What the request used.
    pub usage: Usage,
    /// Set if the request belongs to a run nested in a tool call of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<NestedRun>,
}

impl RoundUsage {
    /// The usage of an own round.
    pub fn own(round: u32, usage: Usage) -> Self {
        Self {
            round,
            usage,
            nested: None,
        }
    }

    /// The usage of a round of a nested run.
    pub fn nested(round: u32, usage: Usage, nested: NestedRun) -> Self {
        Self {
            round,
            usage,
            nested: Some(nested),
        }
    }
}

/// Which run, nested in which call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedRun {
    /// The nested run.
    pub run_id: RunId,
    /// The call of the outer run that it belongs to.
    pub call: Occurrence,
}
