//! What becomes of settings: thinking, sampling, limits, and those that the API refuses together.

use raf_anthropic::{AnthropicRunOptions, AnthropicRunOptionsExt, Conflicts, Thinking};
use raf_core::{
    ChatClientRunOptions, Content, ErrorKind, ProviderData, ReasoningContent, ReasoningEffort,
    ToolChoice,
};
use serde_json::{Value, json};

use super::{body, called, hello, plain, thinking, tool, try_body};

#[test]
fn what_the_api_refuses_together_is_refused_with_what_to_change() {
    let forced = |options: ChatClientRunOptions| {
        options
            .with_tools([tool("look")])
            .with_tool_choice(ToolChoice::Required)
    };
    let budget = || thinking(Thinking::Budget(2048));
    let adaptive_model = || plain().with_model("claude-opus-4-7");
    let top_k = AnthropicRunOptions::new()
        .with_top_k(5)
        .with_thinking(Thinking::Budget(2048));
    for (name, options, words, given_way) in [
        (
            "forced call",
            forced(budget()),
            "ToolChoice::Auto",
            json!({"tool_choice": {"type": "auto"}}),
        ),
        (
            "temperature",
            budget().with_temperature(0.2),
            "temperature",
            json!({"temperature": null}),
        ),
        (
            "top_k",
            plain().with_anthropic(top_k),
            "top_k",
            json!({"top_k": null}),
        ),
        (
            "both",
            plain().with_temperature(0.2).with_top_p(0.4),
            "leave one out",
            json!({"temperature": 0.2, "top_p": null}),
        ),
        (
            "sampling",
            adaptive_model().with_temperature(0.2),
            "leave them out",
            json!({"temperature": null}),
        ),
        (
            "adaptive alone",
            adaptive_model()
                .with_anthropic(AnthropicRunOptions::new().with_thinking(Thinking::Budget(2048))),
            "Thinking::Adaptive",
            json!({"thinking": {"type": "adaptive"}}),
        ),
        (
            "small budget",
            thinking(Thinking::Budget(5)),
            "1024",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ),
        (
            "large budget",
            thinking(Thinking::Budget(4096)).with_max_output_tokens(2000),
            "lower the budget",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1999}, "max_tokens": 2000}),
        ),
        (
            "no room",
            thinking(Thinking::Budget(4096)).with_max_output_tokens(100),
            "raise the limit",
            json!({"thinking": {"type": "disabled"}, "max_tokens": 100}),
        ),
        (
            "blank stop",
            plain().with_stop(["\n", "END"]),
            "blanks",
            json!({"stop_sequences": ["END"]}),
        ),
    ] {
        let error = try_body("anthropic", Conflicts::Refuse, &hello(), &options);
        let error = error.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Misuse, "{name}");
        assert!(error.message().contains(words), "{name}: {error}");
        let body = try_body("anthropic", Conflicts::Adapt, &hello(), &options).expect(name);
        for (member, wanted) in given_way.as_object().expect("an object") {
            assert_eq!(body.get(member).unwrap_or(&Value::Null), wanted, "{name}");
        }
    }
}

#[test]
fn numbers_that_are_none_and_forced_calls_without_tools_are_always_refused() {
    for options in [
        plain().with_temperature(f64::NAN),
        plain().with_top_p(f64::INFINITY),
        plain().with_tool_choice(ToolChoice::Required),
    ] {
        let error = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
    }
    let two = [
        tool("look"),
        tool("look").with_parameters(&json!({"type": "object", "properties": {"a": {}}})),
    ];
    let options = plain().with_tools(two);
    let error = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[test]
fn efforts_are_budgets_or_adaptive_thinking_as_the_model_wants_it() {
    for (model, effort, wanted, config, most) in [
        (
            "claude-sonnet-4-5",
            ReasoningEffort::Low,
            json!({"type": "enabled", "budget_tokens": 2048}),
            None,
            18_432,
        ),
        (
            "claude-sonnet-4-5",
            ReasoningEffort::None,
            json!({"type": "disabled"}),
            None,
            16_384,
        ),
        (
            "claude-opus-4-7",
            ReasoningEffort::High,
            json!({"type": "adaptive"}),
            Some("high"),
            16_384,
        ),
        (
            "claude-opus-4-7",
            ReasoningEffort::Minimal,
            json!({"type": "adaptive"}),
            Some("low"),
            16_384,
        ),
    ] {
        let options = plain().with_model(model).with_reasoning_effort(effort);
        let body = body(&hello(), &options);
        assert_eq!(body["thinking"], wanted);
        assert_eq!(body["output_config"]["effort"].as_str(), config);
        assert_eq!(body["max_tokens"], most);
    }
    // A rough word gives way to the limit.
    let options = plain()
        .with_reasoning_effort(ReasoningEffort::High)
        .with_max_output_tokens(2000);
    assert_eq!(body(&hello(), &options)["thinking"]["budget_tokens"], 1999);
    let options = options.with_max_output_tokens(500);
    assert!(body(&hello(), &options).get("thinking").is_none());
}

#[test]
fn the_limit_of_tokens_is_always_sent() {
    for (model, most) in [
        ("claude-sonnet-4-5", 16_384),
        ("claude-3-5-haiku-20241022", 8192),
        ("claude-3-opus", 4096),
        ("somebody", 4096),
    ] {
        let options = plain().with_model(model);
        assert_eq!(body(&hello(), &options)["max_tokens"], most, "{model}");
    }
    let options = plain().with_max_output_tokens(7);
    assert_eq!(body(&hello(), &options)["max_tokens"], 7);
}

#[test]
fn a_turn_without_a_thought_of_this_model_is_not_thought_on() {
    let options = thinking(Thinking::Budget(2048)).with_tools([tool("look")]);
    let sent = |data: Option<Value>| {
        let mut messages = called();
        if let Some(data) = data {
            let thought = ReasoningContent::new("Hm")
                .with_provider_data(ProviderData::new("anthropic", data));
            let mut parts = vec![Content::Reasoning(thought)];
            parts.extend(messages[1].contents().to_vec());
            messages[1] = messages[1].to_builder().replace_contents(parts).build();
        }
        body(&messages, &options)
    };
    let own = json!({"model": "claude-sonnet-4-5", "signature": "sig"});
    let with_own = sent(Some(own));
    assert_eq!(with_own["thinking"]["type"], "enabled");
    let block = json!({"type": "thinking", "thinking": "Hm", "signature": "sig"});
    assert_eq!(with_own["messages"][1]["content"][0], block);
    for foreign in [
        None,
        Some(json!({"model": "another", "signature": "sig"})),
        Some(json!({"model": "claude-sonnet-4-5"})),
    ] {
        let without = sent(foreign);
        assert_eq!(without["thinking"], json!({"type": "disabled"}));
        assert_eq!(without["messages"][1]["content"][0]["type"], "tool_use");
    }
}

#[test]
fn extra_fields_are_laid_over_and_a_thinking_of_their_own_counts() {
    let options = plain()
        .with_extra_body(
            "thinking",
            json!({"type": "enabled", "budget_tokens": 1024}),
        )
        .with_extra_body("metadata", json!({"user_id": "u"}))
        .with_temperature(0.2);
    let error = try_body("anthropic", Conflicts::Refuse, &hello(), &options).unwrap_err();
    assert!(error.message().contains("temperature"));
    let sent = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap();
    assert_eq!(sent["thinking"]["budget_tokens"], 1024);
    assert_eq!(sent["metadata"]["user_id"], "u");
    assert!(sent.get("temperature").is_none());
}
