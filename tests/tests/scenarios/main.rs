//! Every case as a file: one test each, in every way; and the table that says where each case stands.

#![expect(
    clippy::print_stdout,
    reason = "what is left out is counted where the tests are read"
)]

mod floors;
mod postgres;
mod sessions;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use raf_framework::FunctionInvokingChatClient;
use raf_scenarios::{Runner, Scenario};
use raf_tests::faults::{Fault, Plant};
use raf_tools::{ToolRegistry, ToolRegistryBuilder};

use crate::table::{CASES, ELSEWHERE, Place};

fn main() -> ExitCode {
    if let Some(killed) = sessions::child() {
        return killed;
    }
    let arguments = Arguments::from_args();
    // Bodies that panic are part of the cases; what a test fails with is in its own words.
    std::panic::set_hook(Box::new(|_| {}));
    let mut trials: Vec<Trial> = files().into_iter().map(trial).collect();
    trials.extend(postgres::trials());
    trials.extend(sessions::trials());
    trials.push(Trial::test(
        "every_case_has_its_place",
        every_case_has_its_place,
    ));
    trials.push(Trial::test(
        "most_cases_are_played_over_each_wire",
        floors::most_are_played_over_each_wire,
    ));
    trials.push(Trial::test(
        "every_case_of_the_loop_is_played_over_each_store",
        floors::all_are_played_over_each_store,
    ));
    trials.push(Trial::test(
        "rust_tests_that_stand_for_cases_are_there",
        rust_tests_are_there,
    ));
    trials.push(Trial::test(
        "the_guide_names_every_word",
        the_guide_names_every_word,
    ));
    trials.push(Trial::test(
        "the_program_of_the_guide_is_compiled",
        program_is_compiled,
    ));
    trials.push(Trial::test(
        "a_planted_fault_of_the_loop_is_caught",
        planted_faults_are_caught,
    ));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("tests/scenarios is a folder");
    let paths = entries.map(|entry| entry.expect("its files can be listed").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn trial(path: PathBuf) -> Trial {
    Trial::test(stem(&path), move || played(&Runner::new(), &path))
}

/// Plays the cases of a file.
fn played(runner: &Runner, path: &Path) -> Result<(), Failed> {
    let stem = stem(path);
    let mut failed = Vec::new();
    for scenario in Scenario::load(path)? {
        if !stem.starts_with(&format!("{}_", scenario.id())) {
            failed.push(format!(
                "the file is not named after its id {}",
                scenario.id()
            ));
        }
        let report = runner.play(&scenario);
        if !report.passed() {
            failed.push(report.to_string());
        }
    }
    passed(&failed)
}

fn passed(faults: &[String]) -> Result<(), Failed> {
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failed::from(faults.join("\n")))
}

/// A loop with a planted fault: one of the files, played over it, differs.
fn planted_faults_are_caught() -> Result<(), Failed> {
    let mut faults = Vec::new();
    let mut played = files();
    let further = "../crates/scenarios/tests/files/vocabulary.yaml";
    played.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(further));
    for fault in Fault::ALL {
        let plant = Plant::new(fault);
        let planted = plant.clone();
        let runner = Runner::new().with_http(false).with_stores(false);
        let runner = runner.with_stack(move |parts| {
            let tools = parts
                .tools
                .iter()
                .map(|tool| planted.tool(Arc::clone(tool.tool())));
            let tools = tools.fold(
                ToolRegistry::builder(),
                ToolRegistryBuilder::with_shared_tool,
            );
            let tools = tools.build().expect("the names are as they were");
            let model = planted.below(parts.model);
            let client = FunctionInvokingChatClient::with_options(model, tools, parts.options);
            planted.above(Arc::new(client))
        });
        let caught = played.iter().any(|file| {
            let cases = Scenario::load(file).unwrap_or_default();
            cases.iter().any(|case| !runner.play(case).passed())
        });
        if !caught {
            faults.push(format!(
                "{fault:?}, committed {} times, is not caught",
                plant.count()
            ));
        }
    }
    passed(&faults)
}

/// The id that a file is named after.
fn id(stem: &str) -> String {
    stem.split('_').next().unwrap_or_default().to_owned()
}

/// Each case has a file, or stands in the table with the reason why it has none.
fn every_case_has_its_place() -> Result<(), Failed> {
    let with_file: BTreeSet<String> = files().iter().map(|path| id(&stem(path))).collect();
    let in_table: BTreeSet<String> = ELSEWHERE.iter().map(|place| place.id.to_owned()).collect();
    let mut faults = Vec::new();
    for case in CASES {
        let whole = ELSEWHERE
            .iter()
            .any(|place| place.id == *case && place.part.is_empty());
        match (with_file.contains(*case), whole) {
            (false, false) => faults.push(format!("{case} has neither a file nor a place")),
            (true, true) => faults.push(format!("{case} has a file: take it out of the table")),
            _ => {}
        }
    }
    for id in with_file.iter().chain(&in_table) {
        if !CASES.contains(&id.as_str()) {
            faults.push(format!("{id} is no case"));
        }
    }
    let rust = ELSEWHERE
        .iter()
        .filter(|place| matches!(place.place, Place::Rust(_)));
    let whole_in_rust =
        rust.filter(|place| place.part.is_empty() && place.id.starts_with(['c', 'f']));
    if whole_in_rust.count() > 10 {
        faults.push("more than ten cases of the loop are Rust tests".to_owned());
    }
    passed(&faults)
}

/// A Rust test that stands for a case is there, and is named after it.
fn rust_tests_are_there() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tests = ["tests/tests", "crates/tools/tests"].map(|path| sources(&root.join(path)));
    let mut faults = Vec::new();
    for place in ELSEWHERE {
        let Place::Rust(test) = place.place else {
            continue;
        };
        if !tests
            .iter()
            .any(|text| text.contains(&format!("fn {test}")))
        {
            faults.push(format!("{}: there is no test {test}…", place.id));
        }
    }
    passed(&faults)
}

/// The text of a file, or of all files of a folder.
fn sources(path: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::read_to_string(path).unwrap_or_default();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.map(|path| sources(&path)).collect()
}

fn document(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(path)).expect("the document is there")
}

/// Each word of the format stands in the guide, as code.
fn the_guide_names_every_word() -> Result<(), Failed> {
    let guide = document("docs/scenarios.md");
    let schema: serde_json::Value = serde_json::from_str(&raf_scenarios::json_schema())?;
    let mut words = BTreeSet::new();
    words_of(&schema, &mut words);
    let named = |word: &&String| {
        guide
            .split(|character: char| !(character.is_alphanumeric() || character == '_'))
            .any(|own| own == **word)
    };
    let missing: Vec<String> = words
        .iter()
        .filter(|word| !named(word))
        .map(|word| format!("docs/scenarios.md does not name `{word}`"))
        .collect();
    passed(&missing)
}

/// The keys and the words that a schema allows.
fn words_of(schema: &serde_json::Value, words: &mut BTreeSet<String>) {
    use serde_json::Value;
    match schema {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("properties", Value::Object(properties)) => {
                        words.extend(properties.keys().cloned());
                    }
                    ("const", Value::String(word)) => {
                        words.insert(word.clone());
                    }
                    ("enum", Value::Array(all)) => {
                        let texts = all.iter().filter_map(Value::as_str);
                        words.extend(texts.map(str::to_owned));
                    }
                    _ => {}
                }
                words_of(field, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| words_of(item, words)),
        _ => {}
    }
}

/// The program of the guide stands in the README of the crate too, whose programs are compiled.
fn program_is_compiled() -> Result<(), Failed> {
    let program = |document: &str| {
        let (_, behind) = document.split_once("```rust\n")?;
        Some(behind.split_once("```")?.0.to_owned())
    };
    let guide = program(&document("docs/scenarios.md"));
    if guide.is_some() && guide == program(&document("crates/scenarios/README.md")) {
        return Ok(());
    }
    Err(Failed::from(
        "the program of docs/scenarios.md is not that of the crate's README",
    ))
}
