//! Every case of the loop has its tests, and what they leave out stands in a list.

use std::path::Path;

use raf_tests::left_out::LEFT_OUT;

/// The cases that the loop is held to without pausing, stores and nested runs.
const CASES: &[&str] = &[
    "fi01", "fi02", "fi03", "fi04", "fi05", "fi06", "fi07", "fi08", "fi09", "fi10", "fi11", "fi12",
    "fi14", "fi25", "fx01", "fx02", "fx03", "fx05", "fx12", "c01", "c02", "c10", "c11", "c12",
    "c13", "c14", "c15", "c16", "c17", "c18", "c19",
];

#[test]
fn every_case_has_a_test_whose_name_starts_with_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(root.join("tests")).unwrap().flatten();
    let mut sources: String = files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    // A scenario file is a test that bears its name.
    for file in std::fs::read_dir(root.join("scenarios")).unwrap().flatten() {
        let name = file.file_name();
        sources.extend(["fn ", &name.to_string_lossy(), "\n"]);
    }
    let missing: Vec<&&str> = CASES
        .iter()
        .filter(|id| !sources.contains(&format!("fn {id}_")))
        .collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
}

#[test]
fn what_is_left_out_has_its_reason() {
    for left in LEFT_OUT {
        assert!(CASES.contains(&left.id), "{left:?} is of no case");
        assert!(!left.what.is_empty() && !left.reason.is_empty(), "{left:?}");
        let until = match left.issue {
            Some(issue) => format!("issue {issue}"),
            None => "later".to_owned(),
        };
        println!("{}: {} ({}; {until})", left.id, left.what, left.reason);
    }
    println!("{} parts of cases are left out", LEFT_OUT.len());
    assert_eq!(LEFT_OUT.len(), 4, "the list and the tests must agree");
}
