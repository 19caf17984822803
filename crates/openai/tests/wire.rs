//! The wire cases: how OpenAI-compatible endpoints really behave, one test per case.
//!
//! `RAF_WIRE_CASES=DIR` runs the cases of another folder instead. Adding a case is adding a file.

#[path = "wire/case.rs"]
mod case;
#[path = "wire/checks.rs"]
mod checks;
#[path = "wire/comparator.rs"]
mod comparator;
#[path = "wire/compare.rs"]
mod compare;
#[path = "wire/dialects.rs"]
mod dialects;
#[path = "wire/outcome.rs"]
mod outcome;
#[path = "wire/replies.rs"]
mod replies;
#[path = "wire/requests.rs"]
mod requests;
#[path = "wire/server.rs"]
mod server;

use std::path::Path;
use std::process::ExitCode;

use case::{Case, load, own_folder};
use libtest_mimic::{Arguments, Failed, Trial};

/// How many cases our own folder has at least.
const OWN_CASES: usize = 305;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let other = std::env::var_os("RAF_WIRE_CASES");
    let folder = other
        .as_ref()
        .map_or_else(own_folder, |folder| Path::new(folder).to_owned());
    let cases = load(&folder);
    let count = cases.len();
    let least = if other.is_some() { 1 } else { OWN_CASES };
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
    trials.extend(comparator::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(case: Case) -> Trial {
    let name = format!("wire_{}", case.name.replace('-', "_"));
    Trial::test(name, move || {
        let checked = match case.kind() {
            "request" => requests::check(&case)
                .and_then(|()| requests::check_the_checks(&case))
                .and_then(|()| replies::check_rejection(&case)),
            "stream" | "body" | "http_error" => replies::check(&case),
            other => Err(format!("the runner does not know the kind '{other}'")),
        };
        checked.map_err(Failed::from)
    })
}
