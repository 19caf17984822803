//! The operators that only speak of `messages`.

use raf_testing::wire::{is_filled, list};
use serde_json::Value;

/// Whether a body keeps a rule about its messages.
pub(crate) fn holds(check: &Value, body: &Value) -> Option<bool> {
    let wanted = &check["value"];
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    Some(match check["op"].as_str().unwrap_or("") {
        "tool_results_paired" => are_paired(messages),
        "no_role_after" => !messages
            .windows(2)
            .any(|pair| pair[0]["role"] == wanted[0] && pair[1]["role"] == wanted[1]),
        "last_role_ok" => messages.last().is_some_and(|last| {
            list(wanted).contains(&last["role"]) || last["prefix"] == Value::Bool(true)
        }),
        "alternating" => messages
            .windows(2)
            .all(|pair| pair[0]["role"] != pair[1]["role"]),
        "system_only_first" => messages
            .iter()
            .skip(1)
            .all(|message| message["role"] != "system"),
        "assistant_not_empty" => messages
            .iter()
            .filter(|message| message["role"] == "assistant")
            .all(|message| is_filled(&message["content"]) || is_filled(&message["tool_calls"])),
        "assistant_calls_have" => messages
            .iter()
            .filter(|message| is_filled(&message["tool_calls"]))
            .all(|message| message.get(wanted.as_str().unwrap_or("")).is_some()),
        "mentions" => messages.iter().any(|message| {
            let text = message.to_string().to_lowercase();
            text.contains(wanted.as_str().unwrap_or("?"))
        }),
        _ => return None,
    })
}

fn are_paired(messages: &[Value]) -> bool {
    let mut at = 0;
    while at < messages.len() {
        let message = &messages[at];
        at += 1;
        if is_filled(&message["tool_calls"]) {
            let mut wanted: Vec<String> = list(&message["tool_calls"])
                .iter()
                .map(|call| call["id"].to_string())
                .collect();
            let mut got = Vec::new();
            while at < messages.len() && messages[at]["role"] == "tool" {
                got.push(messages[at]["tool_call_id"].to_string());
                at += 1;
            }
            wanted.sort();
            got.sort();
            if wanted != got {
                return false;
            }
        } else if message["role"] == "tool" {
            return false;
        }
    }
    true
}
