//! Rules over source files: how they begin, how long they are, what they may name.

use crate::code::{code, line, without_tests, words};
use crate::repository::{File, read, rust_files};
use crate::{Exception, except, report};

const MAX_LINES: usize = 400;
const MAX_INLINE_TESTS: usize = 150;

/// Files that may be longer than [`MAX_LINES`].
const LONG: &[Exception] = &[];

/// Where a task may be spawned: in a set that the run owns. All else is a future that is polled.
const SPAWNS: &[&str] = &[
    "crates/tools/src/execution/",
    // One thread per store, joined by the drop of its last handle: it starts no task of a run.
    "crates/store/src/sqlite/thread.rs",
    "crates/store/src/postgres/thread.rs",
];

/// Files that may name reqwest.
const REQWEST: &[Exception] = &[
    (
        "crates/wire/src/transport.rs",
        "the one place that speaks HTTP",
    ),
    (
        "crates/wire/src/lib.rs",
        "re-exports it, so that users can bring a client of their own",
    ),
    (
        "crates/openai/src/lib.rs",
        "re-exports it, so that users can bring a client of their own",
    ),
    (
        "crates/anthropic/src/lib.rs",
        "re-exports it, so that users can bring a client of their own",
    ),
];

/// Public traits that are no seam (`I…`), sugar (`…Ext`) or conversion (`Into…`).
const OTHER_TRAITS: &[Exception] = &[
    (
        "ToolParams",
        "the bound of a typed tool's parameters, under the name that users know",
    ),
    (
        "WireReply",
        "a static bound that a provider implements: never held as `dyn`, nothing is boxed per event",
    ),
    (
        "EventSink",
        "a static bound: what takes the events of a decoder",
    ),
    (
        "Short",
        "the short forms of values in scenario files: only types of the format have them",
    ),
];

/// Functions over data: they neither wait nor look at a clock nor draw a number.
const PURE: &[&str] = &[
    "crates/anthropic/src/blocks/mod.rs",
    "crates/anthropic/src/blocks/say.rs",
    "crates/anthropic/src/request/arrange.rs",
    "crates/anthropic/src/request/cache.rs",
    "crates/anthropic/src/request/message.rs",
    "crates/anthropic/src/request/settings.rs",
    "crates/core/src/fold.rs",
    "crates/core/src/normalise.rs",
    "crates/framework/src/function_invoking/counters.rs",
    "crates/framework/src/function_invoking/no_progress.rs",
    "crates/framework/src/function_invoking/plan.rs",
    "crates/tools/src/arguments.rs",
    "crates/tools/src/execution/open_batch/answers.rs",
    "crates/tools/src/execution/open_batch/mod.rs",
    "crates/tools/src/execution/open_batch/records.rs",
    "crates/tools/src/execution/prepare.rs",
    "crates/tools/src/toolset.rs",
];

/// All Rust files but the programs that a test of the compiler's messages compiles.
fn written_files() -> Vec<File> {
    let mut files = rust_files();
    files.retain(|file| !file.path.contains("/tests/ui/"));
    files
}

/// The code of a source that is not a test's.
fn own_code(file: &File) -> String {
    without_tests(&code(&file.text))
}

/// The sources of all crates that are no tests.
fn sources() -> Vec<File> {
    let mut files = rust_files();
    files.retain(|file| file.source_of().is_some() && !file.is_test());
    files
}

#[test]
fn every_file_begins_with_what_it_is_for() {
    let findings: Vec<String> = written_files()
        .iter()
        .filter(|file| {
            let first = file.text.lines().next().unwrap_or_default();
            let from_readme = first.starts_with("#![doc = include_str!");
            let documented = first
                .strip_prefix("//! ")
                .is_some_and(|text| text.len() > 10);
            !documented && !from_readme
        })
        .map(|file| format!("{}:1", file.path))
        .collect();
    report(
        "begin the file with `//! ` and one sentence that says what it is for",
        &findings,
    );
}

#[test]
fn no_file_is_a_drawer_for_anything() {
    const DRAWERS: &[&str] = &[
        "utils", "util", "helpers", "helper", "common", "types", "misc", "stuff",
    ];
    let findings: Vec<String> = written_files()
        .iter()
        .filter(|file| {
            file.path
                .split('/')
                .any(|part| DRAWERS.contains(&part.trim_end_matches(".rs")))
        })
        .map(|file| file.path.clone())
        .collect();
    report("name the file after the one thing that it holds", &findings);
}

#[test]
fn files_are_short() {
    let found = rust_files()
        .into_iter()
        .filter(|file| !file.is_test())
        .filter_map(|file| {
            let lines = file.text.lines().count();
            let own = without_tests(&code(&file.text));
            let whole = code(&file.text);
            let inline = whole
                .lines()
                .zip(own.lines())
                .filter(|(whole, own)| whole != own)
                .count();
            let finding = if lines - inline > MAX_LINES {
                format!("{}: {} lines, tests aside", file.path, lines - inline)
            } else if inline > MAX_INLINE_TESTS {
                format!("{}: {inline} lines of inline tests", file.path)
            } else {
                return None;
            };
            Some((file.path, finding))
        });
    report(
        &format!(
            "split by meaning: {MAX_LINES} lines are the bound, and {MAX_INLINE_TESTS} of inline tests; \
             longer tests go to a tests.rs beside. A table of data can stand in LONG, with its reason"
        ),
        &except(LONG, found),
    );
}

#[test]
fn only_the_transport_names_reqwest() {
    let found = sources().into_iter().filter_map(|file| {
        let own = own_code(&file);
        let at = *words(&own, "reqwest").first()?;
        let finding = format!("{}:{}", file.path, line(&own, at));
        Some((file.path, finding))
    });
    report(
        "keep HTTP behind the transport: other files speak of raf's own types",
        &except(REQWEST, found),
    );
}

#[test]
fn tasks_are_spawned_in_the_set_of_the_run_alone() {
    let mut findings = Vec::new();
    for file in sources() {
        if file.is_for_tests() || SPAWNS.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        let own = own_code(&file);
        for word in [
            "spawn",
            "spawn_blocking",
            "spawn_local",
            "spawn_on",
            "JoinSet",
        ] {
            for at in words(&own, word) {
                findings.push(format!("{}:{}: {word}", file.path, line(&own, at)));
            }
        }
    }
    report(
        "await it instead: no task outlives the future that owns it, so bodies of tools run in the \
         batch's JoinSet and nothing else is spawned",
        &findings,
    );
}

#[test]
fn the_loop_runs_no_tool_but_by_the_executor() {
    let mut findings = Vec::new();
    for file in sources() {
        if file.is_for_tests() || !file.path.starts_with("crates/framework/") {
            continue;
        }
        let own = own_code(&file);
        for word in ["call", "execute", "call_whole", "call_stream"] {
            let found = words(&own, word).into_iter().filter(|at| {
                let is_method = own[..*at].ends_with('.');
                let is_called = own[at + word.len()..].starts_with('(');
                is_called && (is_method || word.starts_with("call_"))
            });
            for at in found {
                findings.push(format!("{}:{}: {word}", file.path, line(&own, at)));
            }
        }
    }
    report(
        "hand the call to `ToolExecutor::batch`: what enters a body elsewhere passes no middleware, no \
         approval, no limit",
        &findings,
    );
}

#[test]
fn decisions_are_pure() {
    const IMPURE: &[&str] = &[
        "async",
        "await",
        "Instant",
        "SystemTime",
        "random",
        "getrandom",
        "spawn",
        "sleep",
        "env",
    ];
    let mut findings = Vec::new();
    let files = sources();
    for path in PURE {
        let Some(file) = files.iter().find(|file| file.path == *path) else {
            findings.push(format!(
                "{path} is gone: take it out of PURE or name its new place"
            ));
            continue;
        };
        let own = own_code(file);
        for word in IMPURE {
            for at in words(&own, word) {
                findings.push(format!("{path}:{}: {word}", line(&own, at)));
            }
        }
    }
    report(
        "what decides is a function of its arguments: hand the time, the number or the answer in",
        &findings,
    );
}

#[test]
fn traits_are_seams_or_sugar() {
    let mut found = Vec::new();
    for file in sources() {
        let own = own_code(&file);
        for at in words(&own, "trait") {
            let before = own[..at].trim_end();
            let public = before.ends_with("pub") || before.ends_with("pub unsafe");
            let name: String = own[at + "trait".len()..]
                .trim_start()
                .chars()
                .take_while(|found| found.is_alphanumeric())
                .collect();
            let mut letters = name.chars();
            let seam =
                letters.next() == Some('I') && letters.next().is_some_and(char::is_uppercase);
            let conversion = name.starts_with("Into");
            if public && !seam && !conversion && !name.ends_with("Ext") {
                let finding = format!("{}:{}: {name}", file.path, line(&own, at));
                found.push((name, finding));
            }
        }
    }
    report(
        "name a trait that is held as `dyn` at a seam I…, sugar that nobody implements …Ext, a \
         conversion Into…; another one stands in OTHER_TRAITS, with its reason",
        &except(OTHER_TRAITS, found),
    );
}

#[test]
fn front_pages_are_the_readmes() {
    let findings: Vec<String> = sources()
        .iter()
        .filter(|file| file.path.ends_with("/src/lib.rs"))
        .filter(|file| {
            !file
                .text
                .starts_with("#![doc = include_str!(\"../README.md\")]")
        })
        .map(|file| file.path.clone())
        .collect();
    report(
        "begin lib.rs with `#![doc = include_str!(\"../README.md\")]`",
        &findings,
    );
    assert!(read("rust-toolchain.toml").contains(&format!("\"{}.0\"", rust_version())));
}

fn rust_version() -> String {
    read("Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .expect("the workspace names its rust-version")
        .trim_matches('"')
        .to_owned()
}
