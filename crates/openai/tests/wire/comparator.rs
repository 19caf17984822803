//! The comparator must fail what is wrong: each of these takes a good case and changes what it wants.

use raf_testing::wire::{SuiteTest, WireCase, holds};
use serde_json::{Value, json};

use crate::{checks, replies};

/// A change of what a case expects: name, place, new value.
type Change = (&'static str, &'static str, &'static str);

const CHANGES: &[Change] = &[
    ("text", "/text", r#""hi""#),
    ("text_missing", "/text", r#""""#),
    ("reasoning", "/reasoning", r#""""#),
    ("finish_reason", "/finish_reason", r#""stop""#),
    ("finish_reason_none", "/finish_reason", "null"),
    ("usage", "/usage/total_tokens", "5"),
    ("usage_none", "/usage", "null"),
    ("call_missing", "/tool_calls", "[]"),
    (
        "call_twice",
        "/tool_calls",
        r#"[{"id": "call_1", "name": "f", "arguments": {"a": 1}}, {"id": "call_1", "name": "f", "arguments": {"a": 1}}]"#,
    ),
    ("call_id", "/tool_calls/0/id", r#""call_2""#),
    ("call_name", "/tool_calls/0/name", r#""g""#),
    ("call_arguments", "/tool_calls/0/arguments", r#"{"a": 2}"#),
    (
        "call_arguments_raw",
        "/tool_calls/0/arguments",
        r#""{\"a\": 1}""#,
    ),
    ("call_incomplete", "/tool_calls/0/incomplete", "true"),
    ("call_extra", "/tool_calls/0/extra", r#"{"x": 1}"#),
    ("refusal", "/refusal", r#""No.""#),
    (
        "error",
        "/error",
        r#"{"class": "server_error", "retryable": true, "retry_after_ms": null}"#,
    ),
];

/// Changes of the expected error of a failing case.
const ERROR_CHANGES: &[Change] = &[
    ("none", "/error", "null"),
    ("class", "/error/class", r#""quota""#),
    ("retryable", "/error/retryable", "false"),
    ("wait", "/error/retry_after_ms", "7001"),
    ("wait_none", "/error/retry_after_ms", "null"),
    ("words", "/error/message_contains", r#""elephants""#),
    (
        "words_forbidden",
        "/error/message_must_not_contain",
        r#""Slow""#,
    ),
];

fn apply(change: &Change, expected: &mut Value) {
    let (_, place, value) = change;
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    let parent = expected.pointer_mut(parent).expect("the parent is there");
    parent[name] = serde_json::from_str(value).expect("JSON");
}

fn error(class: &str, retryable: bool, wait: &Value) -> Value {
    json!({"class": class, "retryable": retryable, "retry_after_ms": wait})
}

fn good() -> WireCase {
    let frames = [
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm","content":"Hi"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3}}"#,
        "[DONE]",
    ];
    let reads: Vec<String> = frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect();
    WireCase {
        name: "good".to_owned(),
        json: json!({
            "kind": "stream",
            "input": reads,
            "response": {"status": 200, "headers": {}, "end": "eof"},
            "expected": {
                "text": "Hi",
                "reasoning": "Hm",
                "tool_calls": [{"id": "call_1", "name": "f", "arguments": {"a": 1}}],
                "finish_reason": "tool_calls",
                "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
                "error": null,
            },
        }),
    }
}

fn failing() -> WireCase {
    WireCase {
        name: "failing".to_owned(),
        json: json!({
            "kind": "http_error",
            "input": {
                "status": 429,
                "headers": {"retry-after": "7"},
                "body": r#"{"error":{"message":"Slow down"}}"#,
            },
            "expected": {
                "text": "",
                "tool_calls": [],
                "error": error("rate_limit", true, &json!(7000)),
            },
        }),
    }
}

/// The comparator's own tests.
pub(crate) fn tests() -> Vec<SuiteTest> {
    vec![
        ("comparator_passes_what_is_right".to_owned(), || {
            replies::check(&good()).and_then(|()| replies::check(&failing()))
        }),
        ("comparator_takes_alternatives".to_owned(), || {
            let mut case = good();
            case.json["expected"]["text"] = json!("Hello");
            case.json["alternatives"] = json!([{"text": "Hey"}, {"text": "Hi"}]);
            replies::check(&case)
        }),
        (
            "comparator_fails_broken_wire_checks".to_owned(),
            wire_checks,
        ),
        ("comparator_fails_each_change".to_owned(), || {
            changes(good, CHANGES)
        }),
        (
            "comparator_fails_each_change_of_an_error".to_owned(),
            || changes(failing, ERROR_CHANGES),
        ),
    ]
}

fn changes(make: fn() -> WireCase, changes: &[Change]) -> Result<(), String> {
    for change in changes {
        let mut case = make();
        apply(change, &mut case.json["expected"]);
        if replies::check(&case).is_ok() {
            return Err(format!("the comparator takes what is wrong: {}", change.0));
        }
    }
    Ok(())
}

/// Each rule fails a body that breaks it.
fn wire_checks() -> Result<(), String> {
    let body = json!({"messages": [
        {"role": "system", "content": ""},
        {"role": "system"},
        {"role": "assistant", "tool_calls": [{"id": "call_1", "arguments": "[]"}]},
        {"role": "assistant", "content": null, "tool_calls": []},
    ], "tools": [{"s": {"properties": {"a": {}}, "required": []}}, {"s": null}]});
    for check in [
        json!({"path": "messages", "op": "absent"}),
        json!({"path": "messages.*.content", "op": "present"}),
        json!({"path": "nothing", "op": "present"}),
        json!({"path": "messages", "op": "type", "value": "string"}),
        json!({"path": "messages.0.role", "op": "equals", "value": "user"}),
        json!({"path": "messages.*.content", "op": "not_equals", "value": ""}),
        json!({"path": "messages.-1.role", "op": "in", "value": ["user"]}),
        json!({"path": "messages.*.tool_calls.*.id", "op": "matches", "value": "^[a-z]+$"}),
        json!({"path": "messages.*.tool_calls.*.id", "op": "max_len", "value": 5}),
        json!({"path": "messages.*.tool_calls", "op": "min_items", "value": 1}),
        json!({"path": "messages.*.role", "op": "count", "value": 1}),
        json!({"path": "messages.*.role", "op": "unique"}),
        json!({"path": "messages.*.role", "op": "all_same"}),
        json!({"path": "messages.*.tool_calls.*.arguments", "op": "json_object_text"}),
        json!({"path": "tools.0.s", "op": "all_required"}),
        json!({"path": "messages", "op": "tool_results_paired"}),
        json!({"path": "messages", "op": "no_role_after", "value": ["system", "assistant"]}),
        json!({"path": "messages", "op": "last_role_ok", "value": ["user"]}),
        json!({"path": "messages", "op": "alternating"}),
        json!({"path": "messages", "op": "system_only_first"}),
        json!({"path": "messages", "op": "assistant_not_empty"}),
        json!({"path": "messages", "op": "assistant_calls_have", "value": "content"}),
        json!({"path": "messages", "op": "mentions", "value": "elephants"}),
    ] {
        if holds(&check, &body, checks::holds) {
            return Err(format!("{check} takes what breaks it"));
        }
    }
    Ok(())
}
