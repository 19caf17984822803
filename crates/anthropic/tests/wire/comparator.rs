//! The comparator must fail what is wrong: each of these takes a good case and changes what it wants.

use raf_testing::wire::{SuiteTest, WireCase, holds};
use serde_json::{Value, json};

use crate::{checks, replies};

/// A change of what a case expects: place, new value.
type Change = (&'static str, &'static str);

const CHANGES: &[Change] = &[
    ("/text", r#""hi""#),
    ("/reasoning", r#""""#),
    ("/finish_reason", r#""stop""#),
    ("/usage/total_tokens", "5"),
    ("/usage/cache_read_tokens", "5"),
    ("/usage/cache_write_tokens", "5"),
    ("/usage/reasoning_tokens", "5"),
    ("/tool_calls", "[]"),
    ("/tool_calls/0/arguments", r#"{"a": 2}"#),
    ("/reasoning_signature", r#""sig_B""#),
    ("/reasoning_signature", "null"),
    ("/raw_finish_reason", r#""end_turn""#),
    ("/stop_sequence", r#""END""#),
    ("/replay", "[]"),
    ("/replay/0/signature", r#""sig_B""#),
    ("/replay/1/text", r#""hi""#),
    (
        "/error",
        r#"{"class": "server_error", "retryable": true, "retry_after_ms": null}"#,
    ),
];

fn good() -> WireCase {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
        {"type": "thinking", "thinking": "Hm", "signature": "sig_A"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
    ], "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 1,
        "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3, "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 1}}});
    WireCase {
        name: "good".to_owned(),
        json: json!({
            "kind": "body",
            "server": "Anthropic",
            "input": {"status": 200, "headers": {}, "body": body.to_string()},
            "expected": {
                "text": "Hi",
                "reasoning": "Hm",
                "tool_calls": [{"id": "toolu_1", "name": "f", "arguments": {"a": 1}}],
                "finish_reason": "tool_calls",
                "raw_finish_reason": "tool_use",
                "stop_sequence": null,
                "usage": {"prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10,
                    "cache_read_tokens": 2, "cache_write_tokens": 3, "reasoning_tokens": 1},
                "error": null,
                "reasoning_signature": "sig_A",
                "replay": [
                    {"type": "thinking", "thinking": "Hm", "signature": "sig_A"},
                    {"type": "text", "text": "Hi"},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
                ],
            },
        }),
    }
}

fn apply((place, value): &Change, expected: &mut Value) {
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    let parent = expected.pointer_mut(parent).expect("the parent is there");
    parent[name] = serde_json::from_str(value).expect("JSON");
}

/// The comparator's own tests.
pub(crate) fn tests() -> Vec<SuiteTest> {
    vec![
        ("comparator_passes_what_is_right".to_owned(), || {
            replies::check(&good())
        }),
        ("comparator_fails_each_change".to_owned(), || {
            for change in CHANGES {
                let mut case = good();
                apply(change, &mut case.json["expected"]);
                if replies::check(&case).is_ok() {
                    return Err(format!("the comparator takes what is wrong: {change:?}"));
                }
            }
            Ok(())
        }),
        (
            "comparator_fails_broken_wire_checks".to_owned(),
            wire_checks,
        ),
    ]
}

/// Each rule fails a body that breaks it.
fn wire_checks() -> Result<(), String> {
    let mark = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    let body = json!({
        "thinking": {"type": "enabled", "budget_tokens": 9},
        "max_tokens": 9,
        "system": [{"type": "text", "text": " ", "cache_control": mark}],
        "messages": [
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "x"},
                {"type": "tool_use", "id": "toolu_1", "input": {}},
            ]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": [
                {"type": "text", "text": "x", "cache_control": long},
                {"type": "tool_result", "tool_use_id": "srvtoolu_1", "is_error": true,
                    "content": [{"type": "image"}]},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "x "},
                {"type": "tool_use", "id": "toolu_2", "input": {}},
            ]},
        ],
    });
    for check in [
        json!({"path": "nothing", "op": "equals", "value": 1}),
        json!({"path": "max_tokens", "op": "equals", "value": 8}),
        json!({"path": "messages.*.content.*.tool_use_id", "op": "matches", "value": "^(?!srvtoolu_)"}),
        json!({"path": "max_tokens", "op": "absent_or", "value": [1]}),
        json!({"path": "messages", "op": "mentions", "value": "elephants"}),
        json!({"path": "max_tokens", "op": "at_least", "value": 10}),
        json!({"path": "thinking.budget_tokens", "op": "less_than_path", "value": "max_tokens"}),
        json!({"path": "thinking", "op": "no_keys", "value": ["type"]}),
        json!({"path": "max_tokens", "op": "contains", "value": 8}),
        json!({"path": "messages", "op": "no_block_type", "value": ["thinking"]}),
        json!({"path": "messages", "op": "only_roles", "value": ["user"]}),
        json!({"path": "messages", "op": "first_role", "value": "user"}),
        json!({"path": "messages", "op": "last_role", "value": "user"}),
        json!({"path": "messages", "op": "alternating"}),
        json!({"path": "messages", "op": "no_empty_text"}),
        json!({"path": "messages", "op": "no_empty_content"}),
        json!({"path": "messages", "op": "final_assistant_trimmed"}),
        json!({"path": "messages", "op": "tool_results_follow"}),
        json!({"path": "messages", "op": "tool_turn_starts_with_thinking"}),
        json!({"path": "messages", "op": "thinking_signed"}),
        json!({"path": "messages", "op": "max_cache_control", "value": 1}),
        json!({"path": "messages", "op": "cache_ttl_order"}),
        json!({"path": "messages", "op": "error_results_text_only"}),
    ] {
        if holds(&check, &body, checks::holds) {
            return Err(format!("{check} takes what breaks it"));
        }
    }
    Ok(())
}
