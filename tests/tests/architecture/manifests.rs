//! Rules over the manifests: which crate knows which, what core pulls in, what is publishable.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::code::{code, words};
use crate::report;
use crate::repository::{cargo, files_ending_in, packages, published, read, root, rust_files};

/// The arrows: a crate, and the crates of ours that it may depend on. Lower never knows higher.
const ARROWS: &[(&str, &[&str])] = &[
    ("raf-core", &[]),
    ("raf-tools", &["raf-core", "raf-macros"]),
    ("raf-framework", &["raf-core", "raf-tools"]),
    // A provider knows declarations, never tools or layers.
    ("raf-wire", &["raf-core"]),
    ("raf-openai", &["raf-core", "raf-wire"]),
    ("raf-anthropic", &["raf-core", "raf-wire"]),
    ("raf-testing", &["raf-core", "raf-tools"]),
    // Those that come later.
    ("raf-store", &["raf-core"]),
    ("raf-mcp", &["raf-core", "raf-tools"]),
    ("raf-macros", &[]),
    (
        "raf-scenarios",
        &[
            "raf-anthropic",
            "raf-core",
            "raf-framework",
            "raf-openai",
            "raf-store",
            "raf-testing",
            "raf-tools",
        ],
    ),
];

/// All that raf-core may pull in, procedural macros aside.
const CORE_TREE: &[&str] = &[
    "bytes",
    "cfg-if",
    "futures",
    "futures-channel",
    "futures-core",
    "futures-io",
    "futures-sink",
    "futures-task",
    "futures-util",
    "getrandom",
    "itoa",
    "libc",
    "memchr",
    "pin-project-lite",
    "raf-core",
    "serde",
    "serde_core",
    "serde_json",
    "slab",
    "tokio",
    "tokio-util",
    "zmij",
];

/// What tokio-util's token needs of tokio.
const CORE_TOKIO: &[&str] = &["default", "sync"];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The dependencies of a package: name, kind, requirement, by path or not.
fn dependencies(package: &Value) -> impl Iterator<Item = (&str, &str, &str, bool)> {
    package["dependencies"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|dependency| {
            (
                text(&dependency["name"]),
                dependency["kind"].as_str().unwrap_or("normal"),
                text(&dependency["req"]),
                dependency["path"].is_string(),
            )
        })
}

#[test]
fn crates_depend_downwards_only() {
    let mut findings = Vec::new();
    for package in published() {
        let name = text(&package["name"]);
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == name) else {
            findings.push(format!("{name}: it has no row in ARROWS"));
            continue;
        };
        for (dependency, kind, _, by_path) in dependencies(&package) {
            if by_path && kind != "dev" && !allowed.contains(&dependency) {
                findings.push(format!("{name} depends on {dependency}"));
            }
        }
    }
    report(
        "take the dependency out; what both need belongs to a crate below them. A new crate gets a row \
         in ARROWS and in ARCHITECTURE.md",
        &findings,
    );
}

#[test]
fn crates_can_be_published_in_order() {
    let mut findings = Vec::new();
    for package in published() {
        let name = text(&package["name"]);
        for (dependency, kind, requirement, by_path) in dependencies(&package) {
            let versioned = requirement != "*";
            match kind {
                "dev" if by_path && versioned => findings.push(format!(
                    "{name}: the dev-dependency {dependency} has a version: write \
                     `{dependency} = {{ path = \"…\" }}`, for a version closes a cycle at publishing"
                )),
                "dev" => {}
                _ if by_path && !versioned => findings.push(format!(
                    "{name}: the dependency {dependency} has a path and no version: write \
                     `{dependency}.workspace = true`"
                )),
                _ => {}
            }
        }
    }
    report("change the manifest as said", &findings);
}

#[test]
fn crates_say_what_a_registry_shows() {
    let mut findings = Vec::new();
    for package in published() {
        let name = text(&package["name"]);
        let folder = name.trim_start_matches("raf-");
        if !text(&package["manifest_path"]).ends_with(&format!("/crates/{folder}/Cargo.toml")) {
            findings.push(format!("{name}: it does not stand in crates/{folder}"));
        }
        for field in [
            "description",
            "license",
            "repository",
            "readme",
            "rust_version",
        ] {
            if text(&package[field]).is_empty() {
                findings.push(format!("{name}: no {field}"));
            }
        }
        for field in ["keywords", "categories"] {
            let count = package[field].as_array().map_or(0, Vec::len);
            if !(1..=5).contains(&count) {
                findings.push(format!("{name}: {count} {field}, not one to five"));
            }
        }
        if text(&package["license"]) != "MIT OR Apache-2.0" {
            findings.push(format!("{name}: its licence is {}", package["license"]));
        }
        let readme = format!("crates/{folder}/README.md");
        let lines = read(&readme).lines().count();
        if lines < 5 {
            findings.push(format!(
                "{readme}: {lines} lines; it is the crate's front page"
            ));
        }
        for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let own = std::fs::read_to_string(root().join(format!("crates/{folder}/{license}")));
            if own.ok().as_ref() != Some(&read(license)) {
                findings.push(format!(
                    "crates/{folder}/{license}: it is not the root's: `ln -s ../../{license}` there"
                ));
            }
        }
    }
    report(
        "complete the manifest; shared fields come from the workspace",
        &findings,
    );
}

#[test]
fn members_share_version_edition_lints_and_dependencies() {
    let mut findings = Vec::new();
    for package in packages() {
        let name = text(&package["name"]);
        let path = text(&package["manifest_path"]);
        let manifest = std::fs::read_to_string(path).expect("a manifest");
        for line in [
            "version.workspace = true",
            "edition.workspace = true",
            "rust-version.workspace = true",
            "license.workspace = true",
            "[lints]\nworkspace = true",
        ] {
            if !manifest.contains(line) {
                findings.push(format!("{name}: no `{}`", line.replace('\n', " ")));
            }
        }
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if section.contains("dependencies") && line.contains('=') {
                let by_path = line.contains("path = ");
                if !line.contains("workspace = true") && !by_path {
                    findings.push(format!("{name}: `{line}` names its own version"));
                }
            }
        }
    }
    report(
        "all versions stand in the workspace's Cargo.toml, once: write `name.workspace = true`",
        &findings,
    );
}

/// Whether a text names a crate, as a path's beginning or in a `use`.
fn names_crate(text: &str, name: &str) -> bool {
    words(text, name).into_iter().any(|at| {
        let begins_a_path = text[at + name.len()..].starts_with("::");
        begins_a_path || text[..at].ends_with("use ")
    })
}

#[test]
fn every_dependency_is_used() {
    let files = rust_files();
    // The front pages and the guides hold programs that tests run.
    let pages = files_ending_in("md");
    let mut findings = Vec::new();
    for package in packages() {
        let name = text(&package["name"]);
        let manifest = text(&package["manifest_path"]);
        let folder = manifest
            .strip_prefix(&format!("{}/", root().display()))
            .and_then(|manifest| manifest.strip_suffix("Cargo.toml"))
            .expect("a member of the workspace");
        for (dependency, kind, _, _) in dependencies(&package) {
            let word = dependency.replace('-', "_");
            let used = files
                .iter()
                .filter(|file| file.path.starts_with(folder))
                // Only tests use a dev-dependency; documentation's examples are tests.
                .filter(|file| kind == "dev" || !file.is_test() || folder == "tests/")
                .any(|file| match kind {
                    "dev" => names_crate(&file.text, &word),
                    _ => names_crate(&code(&file.text), &word),
                });
            let on_a_page = pages
                .iter()
                .filter(|page| page.path.starts_with(folder) || page.path.starts_with("docs/"))
                .any(|page| kind == "dev" && names_crate(&page.text, &word));
            if !used && !on_a_page {
                findings.push(format!("{name}: nothing names {dependency}"));
            }
        }
    }
    report("take the dependency out of the manifest", &findings);
}

#[test]
fn core_pulls_in_little() {
    let tree = cargo(&[
        "tree",
        "-p",
        "raf-core",
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}|{f}",
    ]);
    let mut findings = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in tree.lines() {
        let (package, features) = line.split_once('|').expect("package|features");
        let name = package.split(' ').next().unwrap_or(package);
        seen.insert(name);
        if !CORE_TREE.contains(&name) {
            findings.insert(format!("raf-core pulls in {package}"));
        }
        if name == "tokio" {
            let features = features.trim_end_matches(" (*)");
            for feature in features
                .split(',')
                .filter(|feature| !CORE_TOKIO.contains(feature))
            {
                findings.insert(format!("raf-core asks tokio for `{feature}`"));
            }
        }
    }
    for name in CORE_TREE {
        // Which of these there are depends on the machine.
        if !seen.contains(name) && !["libc", "cfg-if"].contains(name) {
            findings.insert(format!(
                "{name} is gone from raf-core's tree: take it out of CORE_TREE"
            ));
        }
    }
    report(
        "core holds data and seams: no HTTP, no timer, no runtime. Move what needs them up, or ask for \
         fewer features of the dependency",
        &findings.into_iter().collect::<Vec<_>>(),
    );
}

#[test]
fn json_means_the_same_for_every_crate_of_a_program() {
    let tree = cargo(&[
        "tree",
        "--workspace",
        "--all-features",
        "-e",
        "normal,build,dev",
        "--prefix",
        "none",
        "--format",
        "{p}|{f}",
    ]);
    let features: BTreeSet<&str> = tree
        .lines()
        .filter(|line| line.starts_with("serde_json "))
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|features| features.trim_end_matches(" (*)").split(','))
        .collect();
    assert!(
        features.contains("raw_value"),
        "serde_json is not found in the tree"
    );
    let findings: Vec<String> = ["arbitrary_precision", "preserve_order"]
        .into_iter()
        .filter(|feature| features.contains(feature))
        .map(|feature| format!("serde_json has `{feature}`"))
        .collect();
    report(
        "a feature of one crate holds for a whole program: numbers and key order must not hang on it. \
         `cargo tree -e features -i serde_json` says who asks for it; where order counts, raw text is \
         kept instead",
        &findings,
    );
}
