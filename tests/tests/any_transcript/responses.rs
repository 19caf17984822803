//! The rules of requests to the Responses API (20 to 24 of its corpus), as a check that knows nothing of
//! how they are written.

use std::collections::HashSet;

use serde_json::Value;

use crate::chat_completions::fits_name;
use crate::{list, word};

/// Servers that know items of tools of their own, and encrypted reasoning.
const FULL: &[&str] = &["openai", "azure", "codex", "xai", "openrouter", "litellm"];
/// Servers that take reasoning back as text.
const OPEN_REASONING: &[&str] = &["deepseek", "vllm"];
/// Servers that take parts in the output of a tool.
const PARTS: &[&str] = &[
    "openai",
    "azure",
    "codex",
    "xai",
    "openrouter",
    "litellm",
    "vllm",
];

/// Everything that breaks a rule.
pub(crate) fn faults(body: &Value, dialect: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            faults.push(rule.to_owned());
        }
    };
    let items = list(&body["input"]);
    let mut ids = HashSet::new();
    let mut call_ids = HashSet::new();
    let mut open: Vec<(&str, String)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let kind = word(&item["type"]);
        if let Some(id) = item["id"].as_str() {
            must(
                !id.is_empty() && ids.insert(id),
                "23: item ids are there once",
            );
        }
        if !kind.ends_with("_output") {
            let goes_on = matches!(kind, "reasoning" | "compaction") || kind.ends_with("_call");
            let is_said = kind == "message" && item["role"] == "assistant";
            must(
                open.is_empty() || goes_on || is_said,
                "22: outputs directly after the turn",
            );
        }
        match kind {
            "message" | "" => message(item, dialect, &mut must),
            "reasoning" => {
                let next = items.get(place + 1);
                let is_followed = next.is_some_and(|next| {
                    let kind = word(&next["type"]);
                    let is_said = kind == "message" && next["role"] == "assistant";
                    is_said || matches!(kind, "reasoning" | "compaction") || kind.ends_with("_call")
                });
                must(
                    is_followed || dialect == "openrouter",
                    "20: reasoning that nothing follows",
                );
                reasoning(item, dialect, &mut must);
            }
            "function_call" => {
                let id = word(&item["call_id"]);
                must((1..=64).contains(&id.len()), "22: the form of call ids");
                must(call_ids.insert(id), "22: call ids are unique");
                must(fits_name(word(&item["name"])), "22: the name of a call");
                let arguments = serde_json::from_str::<Value>(word(&item["arguments"]));
                must(
                    arguments.is_ok_and(|value| value.is_object()),
                    "22: arguments",
                );
                let own = item["id"].as_str();
                must(
                    own.is_none_or(|id| id.starts_with("fc")),
                    "23: the item id of a call",
                );
                open.push((id, format!("{kind}_output")));
            }
            "function_call_output" => {
                let id = word(&item["call_id"]);
                let known = open
                    .iter()
                    .position(|(of, output)| *of == id && output == kind);
                must(known.is_some(), "22: an output without its call");
                if let Some(known) = known {
                    open.remove(known);
                }
                output(&item["output"], dialect, &mut must);
            }
            "web_search_call" | "compaction" => {
                must(FULL.contains(&dialect), "items of tools of the server");
            }
            other => must(false, &format!("an item of type '{other}'")),
        }
    }
    must(open.is_empty(), "22: a call without its output");
    for tool in list(&body["tools"]) {
        must(
            tool["type"] == "function" && fits_name(word(&tool["name"])),
            "24: flat tools",
        );
        must(tool["strict"].is_boolean(), "24: strict always");
    }
    let has_tools = !list(&body["tools"]).is_empty();
    must(body.get("tools").is_none() || has_tools, "24: empty tools");
    must(
        !body.to_string().contains("raf_"),
        "a member of raf's own is sent",
    );
    faults
}

fn reasoning(item: &Value, dialect: &str, must: &mut impl FnMut(bool, &str)) {
    must(item["summary"].is_array(), "20: summary is kept");
    let is_encrypted = !word(&item["encrypted_content"]).is_empty();
    if FULL.contains(&dialect) {
        must(is_encrypted, "20: reasoning without its encrypted content");
    } else {
        must(
            OPEN_REASONING.contains(&dialect) && !is_encrypted,
            "reasoning that is not taken",
        );
    }
}

fn message(item: &Value, dialect: &str, must: &mut impl FnMut(bool, &str)) {
    let role = word(&item["role"]);
    must(
        ["user", "assistant", "system", "developer"].contains(&role),
        "roles",
    );
    must(
        dialect != "codex" || !["system", "developer"].contains(&role),
        "codex: instructions",
    );
    must(
        !list(&item["content"]).is_empty(),
        "24: a message without parts",
    );
    for part in list(&item["content"]) {
        if role == "assistant" {
            let text = match word(&part["type"]) {
                "output_text" => word(&part["text"]),
                "refusal" => word(&part["refusal"]),
                _ => "",
            };
            must(
                !text.is_empty(),
                &format!("23: the part {part} of the assistant"),
            );
        } else {
            input(part, must);
        }
    }
}

fn input(part: &Value, must: &mut impl FnMut(bool, &str)) {
    let data = |text: &Value| word(text).starts_with("data:");
    let url = |text: &Value| data(text) || word(text).starts_with("https://");
    let holds = match word(&part["type"]) {
        "input_text" => !word(&part["text"]).is_empty(),
        "input_image" => url(&part["image_url"]) || part["file_id"].is_string(),
        "input_file" => {
            let is_named = !word(&part["filename"]).is_empty();
            data(&part["file_data"]) && is_named
                || url(&part["file_url"])
                || part["file_id"].is_string()
        }
        "input_audio" => !word(&part["input_audio"]["data"]).is_empty(),
        _ => false,
    };
    must(holds, &format!("23: the part {part}"));
}

fn output(output: &Value, dialect: &str, must: &mut impl FnMut(bool, &str)) {
    if let Some(text) = output.as_str() {
        must(!text.is_empty(), "24: an empty output");
        return;
    }
    must(PARTS.contains(&dialect), "output is text there");
    must(!list(output).is_empty(), "24: an output without parts");
    for part in list(output) {
        input(part, must);
    }
}
