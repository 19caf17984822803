//! The operators of these cases, beside those that all cases have.

use raf_testing::wire::{get, list};
use serde_json::{Value, json};

/// Whether a body keeps a rule; nothing for the operators that all cases have.
pub(crate) fn holds(check: &Value, body: &Value) -> Option<bool> {
    let wanted = &check["value"];
    let path = check["path"].as_str().unwrap_or("");
    let found = get(body, path);
    let messages = list(&body["messages"]);
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    Some(match check["op"].as_str().unwrap_or("") {
        "equals" => !found.is_empty() && found.iter().all(|value| is_same(value, wanted)),
        "matches" => {
            // The one form of look-ahead that occurs.
            let not = wanted.as_str()?.strip_prefix("^(?!")?.strip_suffix(')')?;
            found
                .iter()
                .all(|value| value.as_str().is_some_and(|text| !text.starts_with(not)))
        }
        "absent_or" => found
            .iter()
            .all(|value| list(wanted).iter().any(|wanted| is_same(value, wanted))),
        "mentions" => found
            .iter()
            .any(|value| value.to_string().contains(wanted.as_str().unwrap_or("?"))),
        "at_least" => found.iter().all(|value| number(value) >= number(wanted)),
        "less_than_path" => {
            let other = get(body, wanted.as_str().unwrap_or(""));
            let most = other.first().map(|most| number(most));
            most.is_some_and(|most| found.iter().all(|value| number(value) < most))
        }
        "no_keys" => !found.iter().any(|value| {
            list(wanted)
                .iter()
                .any(|key| value.get(text(key)).is_some())
        }),
        "contains" => found.contains(&wanted),
        "no_block_type" => !messages
            .iter()
            .flat_map(blocks)
            .any(|block| list(wanted).contains(&block["type"])),
        "only_roles" => messages
            .iter()
            .all(|message| list(wanted).contains(&message["role"])),
        "first_role" => messages.first().is_some_and(|of| of["role"] == *wanted),
        "last_role" => messages.last().is_some_and(|of| of["role"] == *wanted),
        "alternating" => messages
            .windows(2)
            .all(|pair| pair[0]["role"] != pair[1]["role"]),
        "no_empty_text" => texts(body).iter().all(|text| !text.trim().is_empty()),
        "no_empty_content" => !messages.is_empty() && has_content(messages),
        "final_assistant_trimmed" => is_trimmed(messages),
        "tool_results_follow" => results_follow(messages),
        "tool_turn_starts_with_thinking" => starts_with_thinking(body),
        "thinking_signed" => messages
            .iter()
            .flat_map(blocks)
            .filter(|block| block["type"] == "thinking")
            .all(|block| !text(&block["signature"]).is_empty()),
        "max_cache_control" => wanted.as_u64() >= Some(lifetimes(body).len() as u64),
        "cache_ttl_order" => lifetimes(body).windows(2).all(|pair| pair[0] >= pair[1]),
        "error_results_text_only" => messages
            .iter()
            .flat_map(blocks)
            .filter(|block| block["is_error"] == true)
            .flat_map(|block| list(&block["content"]).to_vec())
            .all(|part| part["type"] == "text"),
        _ => return None,
    })
}

/// Numbers are the same as whole and as floating ones.
fn is_same(left: &Value, right: &Value) -> bool {
    left == right || (left.is_number() && right.is_number() && left.as_f64() == right.as_f64())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The blocks of a message; a text is one block.
pub(crate) fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        content => list(content).to_vec(),
    }
}

fn texts(body: &Value) -> Vec<String> {
    fn walk(block: &Value, into: &mut Vec<String>) {
        if block["type"] == "text" {
            into.push(text(&block["text"]).to_owned());
        }
        if block["type"] == "tool_result" {
            for part in list(&block["content"]) {
                walk(part, into);
            }
        }
    }
    let mut texts: Vec<String> = match &body["system"] {
        Value::String(system) => vec![system.clone()],
        system => {
            let texts = list(system)
                .iter()
                .map(|block| text(&block["text"]).to_owned());
            texts.collect()
        }
    };
    for block in list(&body["messages"]).iter().flat_map(blocks) {
        walk(&block, &mut texts);
    }
    texts
}

fn has_content(messages: &[Value]) -> bool {
    let last = messages.len() - 1;
    messages.iter().enumerate().all(|(place, message)| {
        let says = !blocks(message).is_empty() && message["content"] != "";
        says || (place == last && message["role"] == "assistant")
    })
}

fn is_trimmed(messages: &[Value]) -> bool {
    let Some(last) = messages.last().filter(|last| last["role"] == "assistant") else {
        return true;
    };
    let blocks = blocks(last);
    let text_of = |block: &&Value| block["type"] == "text";
    blocks
        .iter()
        .rfind(text_of)
        .is_none_or(|block| text(&block["text"]) == text(&block["text"]).trim_end())
}

/// Each call is answered once, by results that open the next message.
fn results_follow(messages: &[Value]) -> bool {
    let id = |block: &Value| text(&block["tool_use_id"]).to_owned();
    let mut wanted: Vec<String> = Vec::new();
    for message in messages {
        let blocks = blocks(message);
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let results = blocks.iter().filter(is_result).count();
        if wanted.is_empty() {
            if results > 0 {
                return false;
            }
        } else {
            let mut head: Vec<String> = blocks
                .iter()
                .take(wanted.len())
                .filter(is_result)
                .map(id)
                .collect();
            head.sort();
            wanted.sort();
            if message["role"] != "user" || head != wanted || results != wanted.len() {
                return false;
            }
        }
        wanted.clear();
        if message["role"] == "assistant" {
            let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
            wanted.extend(calls.map(|call| text(&call["id"]).to_owned()));
        }
    }
    wanted.is_empty()
}

fn starts_with_thinking(body: &Value) -> bool {
    if matches!(text(&body["thinking"]["type"]), "" | "disabled") {
        return true;
    }
    let last = list(&body["messages"])
        .iter()
        .rfind(|message| message["role"] == "assistant");
    last.is_none_or(|last| {
        let blocks = blocks(last);
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        let first = blocks.first().map(|first| text(&first["type"]).to_owned());
        !calls || matches!(first.as_deref(), Some("thinking" | "redacted_thinking"))
    })
}

/// The lifetimes of all breakpoints in seconds, in the order of processing.
pub(crate) fn lifetimes(body: &Value) -> Vec<u32> {
    fn walk(block: &Value, into: &mut Vec<u32>) {
        let mark = &block["cache_control"];
        if mark.is_object() {
            into.push(if mark["ttl"] == "1h" { 3600 } else { 300 });
        }
        for part in list(&block["content"]) {
            walk(part, into);
        }
    }
    let mut found = Vec::new();
    let marked = [&body["tools"], &body["system"]];
    for block in marked.into_iter().flat_map(list) {
        walk(block, &mut found);
    }
    for block in list(&body["messages"]).iter().flat_map(blocks) {
        walk(&block, &mut found);
    }
    found
}
