//! Known names, detection, and keys.

use super::{Dialect, KNOWN_DIALECTS};

#[test]
fn every_known_name_has_its_row() {
    for name in KNOWN_DIALECTS {
        assert_eq!(Dialect::named(name).unwrap().name(), *name);
    }
    assert_eq!(Dialect::named("OpenAI").unwrap().name(), "openai");
    assert!(Dialect::named("nobody").is_none());
}

#[test]
fn hosts_and_ports_are_recognised_where_that_is_safe() {
    for (url, name) in [
        ("https://api.openai.com/v1", "openai"),
        ("https://my.openai.azure.com", "azure"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("http://localhost:11434/v1", "ollama"),
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
            "bedrock",
        ),
        ("https://evilapi.openai.com.example/v1", "compatible"),
        ("https://notapi.openai.com/v1", "compatible"),
        ("http://localhost:8080/v1", "compatible"),
        ("no url", "compatible"),
    ] {
        assert_eq!(Dialect::detect(url).name(), name, "{url}");
    }
}

#[test]
fn a_change_gives_another_key() {
    let dialect = Dialect::named("groq").unwrap();
    assert_eq!(
        dialect.render_key,
        Dialect::named("groq").unwrap().render_key
    );
    assert_ne!(
        dialect.render_key,
        dialect.clone().with_think_tags(true).render_key
    );
}

#[test]
fn the_table_in_the_documentation_has_every_name() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dialects.md");
    // It is not part of the published crate.
    if let Ok(table) = std::fs::read_to_string(path) {
        for name in KNOWN_DIALECTS {
            assert!(table.contains(&format!("`{name}`")), "{name}");
        }
    }
}
