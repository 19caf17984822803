//! The test target of a provider's cases: one test per file.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use super::case::{WireCase, load};

/// A further test of a suite: its name, and the test.
pub type SuiteTest = (String, fn() -> Result<(), String>);

/// A provider's cases and what checks them.
#[derive(Debug)]
pub struct Suite<'a> {
    /// The folder of its own cases. `RAF_WIRE_CASES=DIR` takes another one.
    pub folder: &'a Path,
    /// How many cases that folder has at least.
    pub at_least: usize,
    /// What the names of its tests begin with: `wire`.
    pub prefix: &'a str,
    /// Checks what the provider would send: cases of the kind `request`.
    pub request: fn(&WireCase) -> Result<(), String>,
    /// Checks what it makes of a reply: cases of the kinds `stream`, `body` and `http_error`.
    pub reply: fn(&WireCase) -> Result<(), String>,
    /// Further tests.
    pub more: Vec<SuiteTest>,
}

/// Runs a suite as the `main` of a test target without harness.
pub fn run(suite: Suite<'_>) -> ExitCode {
    let arguments = Arguments::from_args();
    let other = std::env::var_os("RAF_WIRE_CASES");
    let folder = other.as_ref().map_or(suite.folder, Path::new);
    let cases = load(folder);
    let count = cases.len();
    let least = if other.is_some() { 1 } else { suite.at_least };
    let (request, reply) = (suite.request, suite.reply);
    let check = move |case: &WireCase| match case.kind() {
        "request" => request(case),
        "stream" | "body" | "http_error" => reply(case),
        other => Err(format!("the runner does not know the kind '{other}'")),
    };
    let trial = |case: WireCase| {
        let name = format!("{}_{}", suite.prefix, case.name.replace('-', "_"));
        Trial::test(name, move || check(&case).map_err(Failed::from))
    };
    let mut trials: Vec<Trial> = cases.into_iter().map(trial).collect();
    trials.push(Trial::test("no_case_is_missing", move || {
        if count >= least {
            Ok(())
        } else {
            Err(Failed::from(format!(
                "{count} cases, where there must be {least}"
            )))
        }
    }));
    let more = suite.more.into_iter();
    trials.extend(more.map(|(name, test)| Trial::test(name, move || test().map_err(Failed::from))));
    libtest_mimic::run(&arguments, trials).exit_code()
}
