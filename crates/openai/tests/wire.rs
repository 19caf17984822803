//! The wire cases: how OpenAI-compatible endpoints really behave, one test per case.
//!
//! `RAF_WIRE_CASES=DIR` runs the cases of another folder instead. Adding a case is adding a file.

#[path = "wire/checks.rs"]
mod checks;
#[path = "wire/comparator.rs"]
mod comparator;
#[path = "wire/dialects.rs"]
mod dialects;
#[path = "wire/replies.rs"]
mod replies;
#[path = "wire/requests.rs"]
mod requests;

use std::path::Path;
use std::process::ExitCode;

use raf_testing::wire::{Suite, run};

fn main() -> ExitCode {
    run(Suite {
        folder: &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/cases"),
        at_least: 305,
        prefix: "wire",
        request: |case| requests::check(case).and_then(|()| replies::check_rejection(case)),
        reply: replies::check,
        more: comparator::tests(),
    })
}
