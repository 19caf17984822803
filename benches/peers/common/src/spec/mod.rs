//! What the server answers, and therefore what a client must end up with: sizes
//! and prompts here, the scenarios and their content in the files below, and how
//! each API writes that content in `wire`.

mod answer;
mod history;
mod scenario;
mod wire;

pub use answer::{Answer, Call, call_id, lookup_arguments, lookup_number};
pub use history::{Turn, history};
pub use scenario::Scenario;
pub use wire::Wire;

/// Content deltas of the `text*` scenarios.
pub const TEXT_CHUNKS: usize = 20_000;
/// Content deltas of `text-paced`, and the time from one to the next.
pub const PACED_CHUNKS: usize = 1_000;
pub const PACE_MS: u64 = 1;
/// Content deltas of the last round of a loop.
pub const FINAL_CHUNKS: usize = 50;
/// Tool calls in the one response of `tools`.
pub const BIG_CALLS: usize = 8;
/// Argument fragments of each of these calls.
pub const BIG_FRAGMENTS: usize = 200;
/// Tool calls in each but the last round of a loop.
pub const CALLS_PER_ROUND: usize = 4;
/// Fragments of the arguments of each of these calls.
pub const CALL_FRAGMENTS: usize = 8;
/// Parallel runs of `concurrent`.
pub const CONCURRENT_RUNS: usize = 1_000;
/// What the server waits before each answer of `concurrent`.
pub const THINK_MS: u64 = 20;
/// Messages that `long` starts from, and their length.
pub const HISTORY_MESSAGES: usize = 2_000;
pub const HISTORY_CHARS: usize = 500;

/// The tools that every client offers in a loop. All take [`crate::tools::LookupArgs`].
pub const TOOL_NAMES: [&str; CALLS_PER_ROUND] = [
    "lookup_weather",
    "lookup_time",
    "lookup_news",
    "lookup_price",
];
pub const TOOL_DESCRIPTION: &str =
    "Looks up one record of the named city and returns it as a short line of text.";
/// The tool that the `tools` scenario calls; nothing executes it.
pub const BIG_TOOL: &str = "write_file";

pub const SYSTEM_PROMPT: &str =
    "You are a helpful assistant. Use the tools when they help, then answer briefly.";
pub const USER_PROMPT: &str = "Compare the cities on my list and tell me which one to visit first.";
pub const API_KEY: &str = "sk-bench";
