//! Dialects by name, by address and by model.

use super::{Dialect, KNOWN_DIALECTS, ThinkingForm, model_rules};

#[test]
fn every_known_name_has_a_row_of_that_name() {
    for name in KNOWN_DIALECTS {
        let dialect = Dialect::named(&name.to_ascii_uppercase()).expect("a row");
        assert_eq!(dialect.name(), *name);
    }
    assert!(Dialect::named("nobody").is_none());
}

#[test]
fn hosts_tell_their_dialect() {
    for (url, name) in [
        ("https://api.anthropic.com", "anthropic"),
        ("https://api.anthropic.com/v1/messages", "anthropic"),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
        (
            "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic",
            "vertex",
        ),
        ("https://aiplatform.googleapis.com/v1", "vertex"),
        ("https://api.deepseek.com/anthropic", "deepseek"),
        ("https://api.z.ai/api/anthropic", "glm"),
        ("https://api.minimax.io/anthropic", "minimax"),
        ("https://openrouter.ai/api", "openrouter"),
        ("https://notapi.anthropic.com.example.org", "compatible"),
        ("https://xopenrouter.ai", "compatible"),
        ("http://localhost:8080", "compatible"),
    ] {
        assert_eq!(Dialect::detect(url).name(), name, "{url}");
    }
}

#[test]
fn models_differ_by_their_names() {
    for (model, adaptive, prefill) in [
        ("claude-opus-4-7", true, false),
        ("anthropic.claude-opus-4-7-v1:0", true, false),
        ("anthropic/claude-opus-4.7", true, false),
        ("claude-sonnet-4-6@20260101", false, false),
        ("claude-sonnet-4-5-20250929", false, true),
        ("MiniMax-M3", true, true),
        ("m", false, true),
    ] {
        let rules = model_rules(model);
        assert_eq!(
            (rules.is_adaptive_only, rules.takes_prefill),
            (adaptive, prefill),
            "{model}"
        );
    }
    let anthropic = Dialect::named("anthropic").unwrap().rules;
    let form = |model| anthropic.thinking_of(&model_rules(model));
    assert_eq!(form("claude-opus-4-7"), ThinkingForm::Adaptive);
    assert_eq!(form("claude-opus-4-1"), ThinkingForm::Budget);
}
