//! The work tree as the rules see it: its files, and what cargo says of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A file that is in the repository or about to be.
pub(crate) struct File {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl File {
    /// The name without folders.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it holds tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.name() == "tests.rs"
            || self.path.contains("/tests/")
            || self.path.starts_with("tests/")
    }

    /// Whether it belongs to a crate that tests are made of: fakes and runners.
    pub(crate) fn is_for_tests(&self) -> bool {
        matches!(self.source_of(), Some("testing" | "scenarios"))
    }

    /// The folder of its crate under `crates/`, if it is one of that crate's sources.
    pub(crate) fn source_of(&self) -> Option<&str> {
        let (folder, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then_some(folder)
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are a member of the workspace")
        .to_path_buf()
}

/// Every text file that git tracks, or would with `git add`.
pub(crate) fn files() -> Vec<File> {
    let listed = run(Command::new("git").args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]));
    let mut paths: Vec<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    let files: Vec<File> = paths
        .into_iter()
        .filter_map(|path| {
            // Not a file any more, a link to a folder, or not text: nothing that a rule reads.
            let text = std::fs::read_to_string(root().join(path)).ok()?;
            let path = path.to_owned();
            Some(File { path, text })
        })
        .collect();
    assert!(files.len() > 50, "git names {} files only", files.len());
    files
}

/// The Rust files of the workspace.
pub(crate) fn rust_files() -> Vec<File> {
    let mut files = files_ending_in("rs");
    // A workspace of its own: it measures, and nothing depends on it.
    files.retain(|file| !file.path.starts_with("benches/peers/"));
    files
}

/// The text files whose names have this ending.
pub(crate) fn files_ending_in(ending: &str) -> Vec<File> {
    let mut files = files();
    files.retain(|file| {
        Path::new(&file.path)
            .extension()
            .is_some_and(|end| end == ending)
    });
    files
}

/// The text of a file of the root.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path} cannot be read: {error}"))
}

/// The members of the workspace as `cargo metadata` has them.
pub(crate) fn packages() -> Vec<Value> {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&text).expect("cargo metadata prints JSON");
    metadata["packages"].as_array().expect("a list").clone()
}

/// Those that are published.
pub(crate) fn published() -> Vec<Value> {
    let mut packages = packages();
    packages.retain(|package| package["publish"].is_null());
    packages
}

/// What a cargo command prints. It reaches no network.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    run(Command::new(env!("CARGO")).args(arguments).arg("--offline"))
}

fn run(command: &mut Command) -> String {
    let output = command
        .current_dir(root())
        .output()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}
