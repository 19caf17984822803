//! The architecture's rules as tests: each says what is wrong, where, and what to do.
//!
//! `ARCHITECTURE.md` says why they are as they are. An exception stands in the table of its rule,
//! with its reason; one that is no longer needed fails too.

mod clients;
mod code;
mod documents;
mod manifests;
mod repository;
mod sources;

use std::collections::BTreeSet;

/// Fails with every finding of a rule, and what to do about them.
fn report(what_to_do: &str, findings: &[String]) {
    assert!(
        findings.is_empty(),
        "\n{}\n\nWhat to do: {what_to_do}\n",
        findings.join("\n")
    );
}

/// An exception to a rule: what it is for, and why.
type Exception = (&'static str, &'static str);

/// Splits findings, each of one subject, by a table of exceptions; unneeded exceptions become findings.
fn except(
    exceptions: &[Exception],
    found: impl IntoIterator<Item = (String, String)>,
) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut findings = Vec::new();
    for (subject, finding) in found {
        match exceptions.iter().find(|(of, _)| *of == subject) {
            Some((of, _)) => {
                used.insert(*of);
            }
            None => findings.push(finding),
        }
    }
    findings.extend(
        exceptions
            .iter()
            .filter(|(of, _)| !used.contains(of))
            .map(|(of, _)| format!("{of}: this exception is no longer needed: take it out")),
    );
    findings
}

#[test]
fn an_exception_covers_its_subject_and_must_be_needed() {
    let found = || ["a", "b"].map(|subject| (subject.to_owned(), format!("{subject}: broken")));
    assert_eq!(except(&[("a", "why")], found()), ["b: broken"]);
    let stale = except(&[("a", "why"), ("b", "why"), ("c", "why")], found());
    assert_eq!(
        stale,
        ["c: this exception is no longer needed: take it out"]
    );
}
