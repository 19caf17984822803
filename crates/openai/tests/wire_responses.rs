//! The wire cases of the Responses API: how endpoints really behave, one test per case.
//!
//! `RAF_WIRE_CASES=DIR` runs the cases of another folder instead. Adding a case is adding a file.

#[path = "wire_responses/checks.rs"]
mod checks;
#[path = "wire_responses/dialects.rs"]
mod dialects;
#[path = "wire_responses/history.rs"]
mod history;
#[path = "wire_responses/replies.rs"]
mod replies;
#[path = "wire_responses/requests.rs"]
mod requests;

use std::path::Path;
use std::process::ExitCode;

use raf_testing::wire::{Suite, run};

fn main() -> ExitCode {
    run(Suite {
        folder: &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_responses/cases"),
        at_least: 218,
        prefix: "responses",
        request: |case| requests::check(case).and_then(|()| replies::check_rejection(case)),
        reply: replies::check,
        more: checks::tests(),
    })
}
