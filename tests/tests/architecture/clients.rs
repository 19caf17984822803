//! Rules over `impl IChatClient`: a layer forwards every method, and each client is in a contract suite.

use crate::code::{Impl, code, fields, impls, without_tests, words};
use crate::repository::{File, rust_files};
use crate::{Exception, except, report};

const SUITES: &[&str] = &["decorator_contract", "provider_contract"];

/// Clients that no suite can be given, and why.
const WITHOUT_SUITE: &[Exception] = &[(
    "$pointer",
    "Arc and Box forward to the client that they hold: every suite runs through an Arc",
)];

/// The impls outside of fakes and tests, with their file and its code.
fn clients() -> Vec<(File, String, Impl)> {
    let mut clients = Vec::new();
    for file in rust_files() {
        let of_a_crate = file.source_of().is_some() && !file.is_for_tests();
        if (!of_a_crate && !file.path.starts_with("examples/")) || file.is_test() {
            continue;
        }
        let own = without_tests(&code(&file.text));
        for found in impls(&own, "IChatClient") {
            let (path, text) = (file.path.clone(), file.text.clone());
            clients.push((File { path, text }, own.clone(), found));
        }
    }
    assert!(!clients.is_empty(), "no impl of IChatClient is found");
    clients
}

#[test]
fn a_layer_forwards_every_method() {
    let findings: Vec<String> = clients()
        .iter()
        .filter(|(_, own, client)| {
            let forwards = client.of.starts_with('$');
            forwards || fields(own, &client.of).is_some_and(|body| !words(body, "inner").is_empty())
        })
        .filter(|(_, _, client)| {
            !client
                .attributes
                .contains("deny(clippy::missing_trait_methods)")
        })
        .map(|(file, _, client)| format!("{}:{}: {}", file.path, client.line, client.of))
        .collect();
    report(
        "write `#[deny(clippy::missing_trait_methods)]` on the impl, so that a method which is added \
         later is not silently un-forwarded",
        &findings,
    );
}

#[test]
fn every_client_is_in_a_contract_suite() {
    let suites: Vec<String> = rust_files()
        .iter()
        .filter(|file| file.source_of() != Some("testing"))
        .map(|file| code(&file.text))
        .filter(|code| {
            SUITES.iter().any(|suite| {
                words(code, suite)
                    .iter()
                    .any(|at| code[at + suite.len()..].starts_with('!'))
            })
        })
        .collect();
    let found = clients()
        .into_iter()
        .filter(|(file, _, client)| {
            let exempt = file.path.starts_with("examples/");
            !exempt
                && !suites
                    .iter()
                    .any(|suite| !words(suite, &client.of).is_empty())
        })
        .map(|(file, _, client)| {
            let finding = format!("{}:{}: {}", file.path, client.line, client.of);
            (client.of, finding)
        });
    report(
        "give it a contract suite: `raf_testing::decorator_contract!` for a layer, \
         `raf_testing::provider_contract!` for a provider, in a test of its crate or in tests/",
        &except(WITHOUT_SUITE, found),
    );
}
