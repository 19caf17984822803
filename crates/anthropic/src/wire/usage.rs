//! Tokens as replies report them: piece by piece, cumulative, with gaps.

use std::collections::BTreeMap;

use raf_core::Usage;
use raf_wire::{Json, JsonScanner};

/// What is counted of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Input,
    Output,
    CacheRead,
    CacheWrite,
    Thinking,
}

/// How many kinds there are.
const KINDS: usize = 5;

/// A member of the wire, and what it counts.
const MEMBERS: &[(&str, Count)] = &[
    ("input_tokens", Count::Input),
    ("output_tokens", Count::Output),
    ("cache_read_input_tokens", Count::CacheRead),
    ("cache_creation_input_tokens", Count::CacheWrite),
    // Bedrock's `amazon-bedrock-invocationMetrics`.
    ("inputTokenCount", Count::Input),
    ("outputTokenCount", Count::Output),
    ("cacheReadInputTokenCount", Count::CacheRead),
    ("cacheWriteInputTokenCount", Count::CacheWrite),
];

/// Objects whose members are all counts, each kept under its own name.
const GROUPS: [&str; 2] = ["server_tool_use", "cache_creation"];

/// The name among the extras of what was written to the cache.
const CACHE_WRITE: &str = "cache_creation_input_tokens";

/// What one usage object counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report<'a> {
    counts: [Option<u64>; KINDS],
    extra: Vec<(&'a str, u64)>,
}

impl<'a> Report<'a> {
    /// Reads a usage object, whatever its form; anything else says nothing.
    pub(crate) fn of(usage: &'a Json) -> Self {
        let mut report = Self::default();
        for (member, count) in MEMBERS {
            report.lay(*count, usage.get(member).and_then(Json::as_count));
        }
        let details = usage.get("output_tokens_details");
        let thinking = details.and_then(|details| details.get("thinking_tokens"));
        report.lay(Count::Thinking, thinking.and_then(Json::as_count));
        for group in GROUPS {
            let Some(Json::Object(members)) = usage.get(group) else {
                continue;
            };
            let counts = members.iter();
            let counts = counts.filter_map(|(name, count)| Some((&**name, count.as_count()?)));
            report.extra.extend(counts);
        }
        report
    }

    /// Reads a usage object in place, if it is in its plain form: whole numbers, each member once.
    pub(crate) fn scan(scanner: &mut JsonScanner<'a>) -> Option<Self> {
        let mut report = Self::default();
        let mut has_come = [false; KINDS];
        let mut has_group = [false; GROUPS.len()];
        let mut has_details = false;
        scanner.object(|scanner, name| {
            let count = match name {
                "input_tokens" => Count::Input,
                "output_tokens" => Count::Output,
                "cache_read_input_tokens" => Count::CacheRead,
                "cache_creation_input_tokens" => Count::CacheWrite,
                "output_tokens_details" => {
                    first(&mut has_details)?;
                    return report.scan_details(scanner, &mut has_come);
                }
                // The other names of the same counts.
                "inputTokenCount"
                | "outputTokenCount"
                | "cacheReadInputTokenCount"
                | "cacheWriteInputTokenCount" => return None,
                _ => {
                    let Some(group) = GROUPS.iter().position(|of| *of == name) else {
                        return scanner.skip();
                    };
                    first(&mut has_group[group])?;
                    return report.scan_group(scanner);
                }
            };
            report.scan_count(scanner, count, &mut has_come)
        })?;
        Some(report)
    }

    fn scan_group(&mut self, scanner: &mut JsonScanner<'a>) -> Option<()> {
        if scanner.null() {
            return Some(());
        }
        scanner.object(|scanner, name| {
            if !scanner.null() {
                self.extra.push((name, scanner.count()?));
            }
            Some(())
        })
    }

    fn scan_details(
        &mut self,
        scanner: &mut JsonScanner<'a>,
        has_come: &mut [bool; KINDS],
    ) -> Option<()> {
        if scanner.null() {
            return Some(());
        }
        scanner.object(|scanner, name| match name {
            "thinking_tokens" => self.scan_count(scanner, Count::Thinking, has_come),
            _ => scanner.skip(),
        })
    }

    fn scan_count(
        &mut self,
        scanner: &mut JsonScanner<'a>,
        count: Count,
        has_come: &mut [bool; KINDS],
    ) -> Option<()> {
        first(&mut has_come[count as usize])?;
        if !scanner.null() {
            self.counts[count as usize] = Some(scanner.count()?);
        }
        Some(())
    }

    fn lay(&mut self, count: Count, number: Option<u64>) {
        lay(&mut self.counts[count as usize], number);
    }
}

/// Marks that a member has come, unless it had: which of two counts, the loose reading knows.
fn first(has_come: &mut bool) -> Option<()> {
    (!std::mem::replace(has_come, true)).then_some(())
}

/// The counts of one reply so far. Per member the last positive number counts; null and a later zero
/// say nothing. Of a group, members that stay at zero are left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    counts: [Option<u64>; KINDS],
    extra: BTreeMap<String, u64>,
}

impl Counts {
    /// Takes a report in.
    pub(crate) fn report(&mut self, report: &Report<'_>) {
        for (known, number) in self.counts.iter_mut().zip(report.counts) {
            lay(known, number);
        }
        for (name, number) in report.extra.iter().filter(|(_, number)| *number > 0) {
            match self.extra.get_mut(*name) {
                Some(known) => *known = *number,
                None => {
                    self.extra.insert((*name).to_owned(), *number);
                }
            }
        }
    }

    /// What was counted; nothing if no count came.
    ///
    /// The input is the whole of it: what was read from the cache and what was written to it included.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let get = |count: Count| self.counts[count as usize];
        let sum = |counts: &[Option<u64>]| {
            let known = counts.iter().flatten();
            let sum = known.fold(0_u64, |sum, count| sum.saturating_add(*count));
            counts.iter().any(Option::is_some).then_some(sum)
        };
        if self.counts.iter().all(Option::is_none) && self.extra.is_empty() {
            return None;
        }
        let mut usage = Usage::default();
        let written = get(Count::CacheWrite);
        usage.input_tokens = sum(&[get(Count::Input), get(Count::CacheRead), written]);
        usage.output_tokens = get(Count::Output);
        usage.total_tokens = sum(&[usage.input_tokens, usage.output_tokens]);
        usage.cached_tokens = get(Count::CacheRead);
        usage.reasoning_tokens = get(Count::Thinking);
        usage.extra.clone_from(&self.extra);
        if let Some(written) = written {
            usage.extra.insert(CACHE_WRITE.to_owned(), written);
        }
        Some(usage)
    }
}

/// A positive number counts; zero only where there is none yet.
fn lay(known: &mut Option<u64>, number: Option<u64>) {
    match number {
        None => {}
        Some(0) => {
            known.get_or_insert(0);
        }
        Some(_) => *known = number,
    }
}
