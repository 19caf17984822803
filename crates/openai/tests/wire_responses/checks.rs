//! The operators that speak of `input` items.

use raf_testing::wire::{SuiteTest, get, holds as holds_any, list};
use serde_json::{Value, json};

/// The calls, and the type of their outputs.
const OUTPUTS: &[(&str, &str)] = &[
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("local_shell_call", "local_shell_call_output"),
];

/// How the ids of items begin.
const PREFIXES: &[(&str, &str)] = &[
    ("message", "msg"),
    ("function_call", "fc"),
    ("reasoning", "rs"),
    ("custom_tool_call", "ct"),
];

/// Whether a body keeps a rule about its input.
pub(crate) fn holds(check: &Value, body: &Value) -> Option<bool> {
    let path = check["path"].as_str().unwrap_or("");
    let wanted = &check["value"];
    let op = check["op"].as_str().unwrap_or("");
    let inner = |value: &Value, rule: &Value| holds_any(rule, value, holds);
    Some(match op {
        "each_where" | "none_where" | "some_where" | "count_where" => {
            let found: Vec<&Value> = get(body, path)
                .into_iter()
                .flat_map(|value| match value {
                    Value::Array(items) => items.iter().collect(),
                    value => vec![value],
                })
                .filter(|value| value.is_object() && matches(value, &wanted["where"]))
                .collect();
            let has_rule = wanted.get("op").is_some();
            match op {
                "none_where" => found.is_empty(),
                "count_where" => wanted["count"].as_u64() == u64::try_from(found.len()).ok(),
                "some_where" => found.iter().any(|value| !has_rule || inner(value, wanted)),
                _ => found.iter().all(|value| inner(value, wanted)),
            }
        }
        "if_present" => get(body, path).is_empty() || inner(body, &wanted["then"]),
        "calls_answered" => are_answered(body),
        "contiguous" => stands(&items(body), list(wanted), false),
        "in_order" => stands(&items(body), list(wanted), true),
        "reasoning_followed" => {
            let items = items(body);
            (0..items.len()).all(|at| {
                kind(items[at]) != "reasoning"
                    || items.get(at + 1).is_some_and(|next| is_of_model(next))
            })
        }
        "item_id_prefix" => items(body).iter().all(|item| {
            let prefix = PREFIXES.iter().find(|(of, _)| *of == kind(item));
            let id = item["id"].as_str().unwrap_or("");
            id.is_empty() || prefix.is_none_or(|(_, prefix)| id.starts_with(prefix))
        }),
        "unique_values" => {
            let found = get(body, path);
            let found: Vec<_> = found.into_iter().filter(|value| !value.is_null()).collect();
            (0..found.len()).all(|at| !found[..at].contains(&found[at]))
        }
        _ => return None,
    })
}

/// The items of the input.
pub(crate) fn items(body: &Value) -> Vec<&Value> {
    let input = list(&body["input"]).iter();
    input.filter(|item| item.is_object()).collect()
}

/// The type of an item; one with a role is a message.
pub(crate) fn kind(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

fn matches(item: &Value, wanted: &Value) -> bool {
    let members = wanted.as_object().into_iter().flatten();
    members.into_iter().all(|(name, wanted)| {
        if name == "$list" {
            return item[wanted.as_str().unwrap_or("")].is_array();
        }
        let of_kind = Value::from(kind(item));
        let have = if name == "type" {
            &of_kind
        } else {
            &item[name]
        };
        match wanted {
            Value::Null => have.is_null(),
            Value::Array(any) => any.contains(have),
            wanted => have == wanted,
        }
    })
}

fn is_of_model(item: &Value) -> bool {
    let kind = kind(item);
    kind == "reasoning"
        || (kind == "message" && item["role"] == "assistant")
        || kind.ends_with("_call")
}

fn are_answered(body: &Value) -> bool {
    let mut open: Vec<(&Value, &str)> = Vec::new();
    let mut seen: Vec<&Value> = Vec::new();
    for item in items(body) {
        let id = &item["call_id"];
        let of_call = OUTPUTS.iter().find(|(call, _)| *call == kind(item));
        if let Some((_, output)) = of_call {
            if seen.contains(&id) {
                return false;
            }
            seen.push(id);
            open.push((id, output));
        } else if OUTPUTS.iter().any(|(_, output)| *output == kind(item)) {
            match open.iter().position(|(of, _)| *of == id) {
                Some(at) if open.remove(at).1 != kind(item) => return false,
                None if seen.contains(&id) || body["previous_response_id"].is_null() => {
                    return false;
                }
                _ => {}
            }
        }
    }
    open.is_empty()
}

/// Whether an item has these members, equal.
pub(crate) fn is_like(item: &Value, wanted: &Value) -> bool {
    let members = wanted.as_object().into_iter().flatten();
    members
        .into_iter()
        .all(|(name, wanted)| match name.as_str() {
            "type" => wanted == kind(item),
            name => item.get(name) == Some(wanted),
        })
}

/// Whether these items stand in the list, in this order, with or without others between them.
pub(crate) fn stands(items: &[&Value], wanted: &[Value], with_gaps: bool) -> bool {
    if !with_gaps {
        let is_run = |run: &[&Value]| run.iter().zip(wanted).all(|(item, of)| is_like(item, of));
        return wanted.is_empty() || items.windows(wanted.len()).any(is_run);
    }
    let mut wanted = wanted.iter().peekable();
    for item in items {
        wanted.next_if(|wanted| is_like(item, wanted));
    }
    wanted.next().is_none()
}

/// Each operator fails what breaks it.
pub(crate) fn tests() -> Vec<SuiteTest> {
    vec![("checks_fail_what_breaks_them".to_owned(), || {
        let body = json!({"input": [
            {"role": "user", "content": "x"},
            {"type": "reasoning", "id": "x_1"},
            {"role": "user", "content": "y"},
            {"type": "function_call", "call_id": "a", "id": "x_1"},
        ]});
        for check in [
            json!({"path": "input", "op": "each_where", "value": {"where": {"type": "message"}, "path": "content", "op": "type", "value": "array"}}),
            json!({"path": "input", "op": "none_where", "value": {"where": {"type": "reasoning", "summary": null}}}),
            json!({"path": "input", "op": "some_where", "value": {"where": {"type": "message", "role": "system"}}}),
            json!({"path": "input", "op": "count_where", "value": {"where": {"role": "user"}, "count": 1}}),
            json!({"path": "input", "op": "if_present", "value": {"then": {"path": "tools", "op": "present"}}}),
            json!({"path": "input", "op": "calls_answered"}),
            json!({"path": "input", "op": "contiguous", "value": [{"type": "reasoning"}, {"type": "function_call"}]}),
            json!({"path": "input", "op": "in_order", "value": [{"type": "function_call"}, {"type": "reasoning"}]}),
            json!({"path": "input", "op": "reasoning_followed"}),
            json!({"path": "input", "op": "item_id_prefix"}),
            json!({"path": "input.*.id", "op": "unique_values"}),
        ] {
            if holds(&check, &body) != Some(false) {
                return Err(format!("{check} takes what breaks it"));
            }
        }
        Ok(())
    })]
}
