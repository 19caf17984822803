//! Cases and rules of pausing and resuming, each in both forms and with every kind of reload. Tests
//! begin with the id of their case (c, fi, fx), or of the contract's rule that they hold (e, i, d).

#[path = "cases_pausing/answers.rs"]
mod answers;
#[path = "cases_pausing/dropped.rs"]
mod dropped;
#[path = "cases_pausing/function_invocation.rs"]
mod function_invocation;
#[path = "cases_pausing/messages.rs"]
mod messages;
#[path = "cases_pausing/policies.rs"]
mod policies;
#[path = "cases_pausing/resuming.rs"]
mod resuming;
#[path = "cases_pausing/sealed.rs"]
mod sealed;
#[path = "cases_pausing/stopping.rs"]
mod stopping;
#[path = "cases_pausing/stores.rs"]
mod stores;
#[path = "cases_pausing/support.rs"]
mod support;

/// Every case and rule that is held here, or by a scenario file.
const IDS: &[&str] = &[
    "c03", "c04", "c05", "c06", "c07", "c08", "c09", "fi11", "fi14", "fi19", "fi20", "fi21",
    "fi23", "fi24", "fx01", "fx07", "fx08", "fx11", "te16", "te17", "te18", "te22", "te25", "e2",
    "e3", "e4", "e5", "e6", "e7", "e8", "e9", "i2", "i3", "i4", "i5", "i6", "d2", "d8", "f1", "f2",
    "h1", "b5", "a2", "a6", "f4",
];

/// E1 is held by the cases c03 and fi19.
#[test]
fn every_case_has_a_test_whose_name_starts_with_it_or_says_what_is_left_out() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = std::fs::read_dir(tests.join("cases_pausing")).unwrap();
    let mut sources = std::fs::read_to_string(tests.join("executor_pausing.rs")).unwrap();
    for file in folder.flatten() {
        sources.push_str(&std::fs::read_to_string(file.path()).unwrap());
    }
    for file in std::fs::read_dir(tests.join("../scenarios"))
        .unwrap()
        .flatten()
    {
        let name = file.file_name();
        sources.extend(["fn ", &name.to_string_lossy(), "\n"]);
    }
    let is_held = |id: &str| sources.contains(&format!("fn {id}_"));
    let missing: Vec<_> = IDS.iter().filter(|id| !is_held(id)).collect();
    assert!(missing.is_empty(), "no test for {missing:?}");
    for left in raf_tests::pausing::left_out::LEFT_OUT {
        assert!(
            IDS.contains(&left.id) && !left.reason.is_empty(),
            "{left:?}"
        );
    }
}
