//! Rules over what is not code: the papers that must be there, the map that must be true, and what
//! must never be committed.

use std::collections::BTreeSet;

use crate::report;
use crate::repository::{files, read, root, rust_files};

#[test]
fn the_papers_are_there() {
    let findings: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "Cargo.lock",
    ]
    .into_iter()
    .filter(|path| !root().join(path).is_file())
    .map(|path| format!("{path} is missing"))
    .collect();
    report("write it", &findings);
}

/// What stands between backticks, as far as it looks like a path of ours.
fn paths(text: &str) -> BTreeSet<&str> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| {
            ["crates/", "tests/", "examples/", "docs/", ".ci/"]
                .iter()
                .any(|start| quoted.starts_with(start))
                && !quoted.contains(['*', '…', ' ', '{', '<'])
        })
        .collect()
}

#[test]
fn the_map_names_what_exists() {
    let findings: Vec<String> = paths(&read("ARCHITECTURE.md"))
        .into_iter()
        .filter(|path| !root().join(path).exists())
        .map(|path| format!("ARCHITECTURE.md names {path}"))
        .collect();
    report("take it out, or name its new place", &findings);
}

/// The code map's entries of one crate: the first words of the lines of its block.
fn mapped(map: &str, folder: &str) -> Option<BTreeSet<String>> {
    let heading = format!("### `crates/{folder}`");
    let (_, rest) = map.split_once(&heading)?;
    let section = rest.split("\n#").next().unwrap_or(rest);
    let entries = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once('`'))
        .map(|(entry, _)| entry.trim_end_matches('/').to_owned())
        .collect();
    Some(entries)
}

#[test]
fn the_map_names_every_file_and_folder_of_every_crate() {
    let map = read("ARCHITECTURE.md");
    let mut findings = Vec::new();
    let mut folders = BTreeSet::new();
    let mut sources = BTreeSet::new();
    for file in rust_files() {
        if let Some(folder) = file.source_of().filter(|_| !file.is_test()) {
            folders.insert(folder.to_owned());
            let inside = file.path[format!("crates/{folder}/src/").len()..].to_owned();
            sources.insert((folder.to_owned(), inside));
        }
    }
    for folder in folders {
        let Some(mapped) = mapped(&map, &folder) else {
            findings.push(format!("no section \"### `crates/{folder}`\""));
            continue;
        };
        for (_, file) in sources.iter().filter(|(of, _)| *of == folder) {
            let named = mapped.iter().any(|entry| {
                // A module's file stands for its folder too.
                let folder = format!("{}/", entry.trim_end_matches(".rs"));
                file == entry || file.starts_with(&folder)
            });
            if !named && file != "lib.rs" {
                findings.push(format!("crates/{folder}/src/{file} is not in the map"));
            }
        }
        for entry in mapped {
            if !root().join(format!("crates/{folder}/src/{entry}")).exists() {
                findings.push(format!(
                    "crates/{folder}/src/{entry} is in the map and not there"
                ));
            }
        }
    }
    report(
        "give the file, or the folder that it is in, a line in the code map of ARCHITECTURE.md",
        &findings,
    );
}

/// The ids of contract rules that a text names: `contract F2, F3` names two.
fn rules(text: &str) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    for (at, word) in text.match_indices("contract ") {
        for word in text[at + word.len()..].split([' ', ',', ')', '(', ':', ';', '.', '\n']) {
            let id = word.split_at_checked(1).filter(|(letter, number)| {
                "ABCDEFGHIJK".contains(letter) && number.parse::<u8>().is_ok()
            });
            match id {
                Some(_) => rules.insert(word.to_owned()),
                None if ["", "and"].contains(&word) => continue,
                None => break,
            };
        }
    }
    rules
}

#[test]
fn rules_that_are_named_are_explained() {
    assert_eq!(
        Vec::from_iter(rules("(contract F2, F3): contract X1 A1")),
        ["F2", "F3"]
    );
    let architecture = read("ARCHITECTURE.md");
    let mut findings = BTreeSet::new();
    for file in rust_files() {
        for rule in rules(&file.text) {
            if !architecture.contains(&format!("| {rule} |")) {
                findings.insert(format!("{}: contract {rule}", file.path));
            }
        }
    }
    report(
        "give the rule a row under Invariants in ARCHITECTURE.md, or name the right one",
        &Vec::from_iter(findings),
    );
}

#[test]
fn nothing_names_a_machine_or_holds_a_key() {
    // In pieces, so that this file does not name them either.
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!(".lib", "rary/"),
        concat!("far", "m-"),
        concat!("sha", "red/design"),
        concat!("sha", "red/research"),
        concat!("sha", "red/cases"),
        concat!("sha", "red/wire"),
        concat!("-----BEGIN ", "PRIVATE KEY"),
        concat!("-----BEGIN RSA ", "PRIVATE KEY"),
    ];
    let mut findings = Vec::new();
    for file in files() {
        for (number, line) in file.text.lines().enumerate() {
            let place = places.iter().find(|place| line.contains(*place));
            let key = key_like(line).filter(|_| !file.path.contains("test"));
            if let Some(found) = place.copied().or(key) {
                findings.push(format!("{}:{}: {found}", file.path, number + 1));
            }
        }
    }
    report(
        "take it out: the repository stands alone, and a key that was committed is to be revoked",
        &findings,
    );
}

/// A word of a line that looks like a key of a provider.
fn key_like(line: &str) -> Option<&str> {
    line.split(|found: char| !found.is_ascii_alphanumeric() && !"-_".contains(found))
        .find(|word| {
            ["sk-", "gsk_", "ghp_", "xoxb-", "AKIA", "AIza"]
                .iter()
                .filter_map(|start| word.strip_prefix(start))
                .any(|rest| rest.len() >= 16 && rest.bytes().any(|byte| byte.is_ascii_digit()))
        })
}

#[test]
fn keys_are_known_by_their_form() {
    let key = concat!("sk", "-abcdefghijklmn0123");
    assert_eq!(key_like(&format!("key = \"{key}\"")), Some(key));
    assert_eq!(key_like("sk-test and task-force-of-many-words"), None);
}
