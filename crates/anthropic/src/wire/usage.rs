//! Tokens as replies report them: piece by piece, cumulative, with gaps.

use std::collections::BTreeMap;

use raf_core::Usage;
use raf_wire::Json;

/// The counts of one reply so far. Per member the last positive number counts; null and a later zero
/// say nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<&'static str, u64>, BTreeMap<String, u64>);

/// A member of the wire, and the name that it has here.
const MEMBERS: &[(&str, &str)] = &[
    ("input_tokens", INPUT),
    ("output_tokens", OUTPUT),
    ("cache_read_input_tokens", CACHE_READ),
    ("cache_creation_input_tokens", CACHE_WRITE),
    // Bedrock's `amazon-bedrock-invocationMetrics`.
    ("inputTokenCount", INPUT),
    ("outputTokenCount", OUTPUT),
    ("cacheReadInputTokenCount", CACHE_READ),
    ("cacheWriteInputTokenCount", CACHE_WRITE),
];

const INPUT: &str = "input";
const OUTPUT: &str = "output";
const CACHE_READ: &str = "cache_read";
const CACHE_WRITE: &str = "cache_creation_input_tokens";
const THINKING: &str = "thinking";

impl Counts {
    /// Takes a usage object in; anything else says nothing.
    pub(crate) fn report(&mut self, usage: &Json) {
        for (member, name) in MEMBERS {
            lay(&mut self.0, *name, usage.get(member));
        }
        let thinking = usage
            .get("output_tokens_details")
            .and_then(|details| details.get("thinking_tokens"));
        lay(&mut self.0, THINKING, thinking);
        for group in ["server_tool_use", "cache_creation"] {
            let Some(Json::Object(members)) = usage.get(group) else {
                continue;
            };
            for (name, count) in members {
                lay(&mut self.1, name.clone(), Some(count));
            }
        }
    }

    /// What was counted; nothing if no count came.
    ///
    /// The input is the whole of it: what was read from the cache and what was written to it included.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let get = |name| self.0.get(name).copied();
        let sum = |counts: &[Option<u64>]| {
            let known = counts.iter().flatten();
            let sum = known.fold(0_u64, |sum, count| sum.saturating_add(*count));
            counts.iter().any(Option::is_some).then_some(sum)
        };
        if self.0.is_empty() && self.1.is_empty() {
            return None;
        }
        let mut usage = Usage::default();
        usage.input_tokens = sum(&[get(INPUT), get(CACHE_READ), get(CACHE_WRITE)]);
        usage.output_tokens = get(OUTPUT);
        usage.total_tokens = sum(&[usage.input_tokens, usage.output_tokens]);
        usage.cached_tokens = get(CACHE_READ);
        usage.reasoning_tokens = get(THINKING);
        usage.extra = self.1.clone();
        if let Some(written) = get(CACHE_WRITE) {
            usage.extra.insert(CACHE_WRITE.to_owned(), written);
        }
        Some(usage)
    }
}

fn lay<K: Ord>(counts: &mut BTreeMap<K, u64>, name: K, count: Option<&Json>) {
    match count.and_then(Json::as_count) {
        None => {}
        Some(0) => {
            counts.entry(name).or_insert(0);
        }
        Some(count) => {
            counts.insert(name, count);
        }
    }
}
