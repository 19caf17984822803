//! The rules of requests to Chat Completions, as a check that knows nothing of how they are written.

use std::collections::HashSet;

use serde_json::Value;

use crate::{list, word};

/// Servers that refuse null beside calls.
const NO_NULL: &[&str] = &["ollama", "lmstudio", "cloudflare"];
/// Servers that refuse an empty text beside calls.
const NO_EMPTY: &[&str] = &["bedrock", "kimi", "databricks", "xai", "anthropic"];
/// Servers that refuse reasoning in the history.
const NO_REASONING: &[&str] = &["groq", "mistral", "cerebras"];
/// Servers whose templates take one system message, first.
const ONE_SYSTEM: &[&str] = &["vllm", "llamacpp", "mistral", "anthropic", "minimax"];
/// Servers that want the tools of past calls declared.
const TOOLS_STAY: &[&str] = &["bedrock", "litellm", "anthropic"];

/// Everything that breaks a rule.
pub(crate) fn faults(body: &Value, dialect: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            faults.push(rule.to_owned());
        }
    };
    let messages = list(&body["messages"]);
    must(body["model"].is_string(), "a model");
    must(!messages.is_empty(), "messages");
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        let role = word(&message["role"]);
        if role == "tool" {
            let id = word(&message["tool_call_id"]);
            let known = open.iter().position(|other| *other == id);
            must(known.is_some(), "a result without its call");
            if let Some(known) = known {
                open.remove(known);
            }
            must(
                !word(&message["content"]).is_empty(),
                "a result that is an empty text or none",
            );
            continue;
        }
        must(open.is_empty(), "a call without its result directly behind");
        open.clear();
        match role {
            "assistant" => {
                assistant(message, dialect, &mut must);
                for call in list(&message["tool_calls"]) {
                    let id = word(&call["id"]);
                    must(fits_id(id, dialect), "the form of ids");
                    must(ids.insert(id), "ids are unique");
                    open.push(id);
                }
            }
            "user" | "system" | "developer" => {
                content(&message["content"], role, &mut must);
                let is_prompt = role != "user";
                let is_first = place == 0 || !ONE_SYSTEM.contains(&dialect);
                must(!is_prompt || is_first, "one system message, first");
                must(
                    role != "developer" || ["openai", "azure"].contains(&dialect),
                    "developer is not known",
                );
            }
            other => must(false, &format!("the role '{other}'")),
        }
        if dialect == "mistral" && role == "user" {
            let before = place.checked_sub(1).map(|before| &messages[before]["role"]);
            must(
                before.is_none_or(|role| role != "tool"),
                "user directly behind tool",
            );
        }
    }
    must(open.is_empty(), "a call without its result");
    tools(body, messages, dialect, &mut must);
    must(
        !body.to_string().contains("raf_"),
        "a member of raf's own is sent",
    );
    faults
}

/// Up to 40 bytes; Mistral takes nine letters or digits.
fn fits_id(id: &str, dialect: &str) -> bool {
    match dialect {
        "mistral" => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        _ => (1..=40).contains(&id.len()),
    }
}

pub(crate) fn fits_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn assistant(message: &Value, dialect: &str, must: &mut impl FnMut(bool, &str)) {
    let calls = list(&message["tool_calls"]);
    let content = &message["content"];
    let is_text = content.is_string() || content.is_null();
    must(is_text, "the assistant's content is text or null");
    if calls.is_empty() {
        must(
            message.get("tool_calls").is_none(),
            "an empty list of calls",
        );
        must(
            !word(content).is_empty(),
            "an assistant message that says nothing",
        );
    } else if NO_NULL.contains(&dialect) {
        must(content.is_string(), "null beside calls");
    } else if NO_EMPTY.contains(&dialect) {
        must(content.as_str() != Some(""), "an empty text beside calls");
    }
    for call in calls {
        let function = &call["function"];
        must(call["type"] == "function", "the type of a call");
        must(fits_name(word(&function["name"])), "the name of a call");
        let arguments = serde_json::from_str::<Value>(word(&function["arguments"]));
        must(
            arguments.is_ok_and(|value| value.is_object()),
            "arguments are an object's text",
        );
    }
    let reasoning = message.get("reasoning_content");
    match dialect {
        "deepseek" if !calls.is_empty() => must(reasoning.is_some(), "reasoning with calls"),
        "kimi" if !calls.is_empty() => must(
            reasoning.is_some_and(|text| !word(text).is_empty()),
            "non-empty reasoning with calls",
        ),
        dialect if NO_REASONING.contains(&dialect) => {
            let has = reasoning.is_some() || message.get("reasoning_details").is_some();
            must(!has, "reasoning in the history");
        }
        _ => {}
    }
}

fn content(content: &Value, role: &str, must: &mut impl FnMut(bool, &str)) {
    if let Some(text) = content.as_str() {
        must(!text.is_empty(), &format!("an empty {role} message"));
        return;
    }
    must(
        !list(content).is_empty(),
        &format!("{role} content without parts"),
    );
    for part in list(content) {
        let data = |text: &Value| {
            let text = word(text);
            text.starts_with("https://") || text.starts_with("data:") && text.contains(";base64,")
        };
        let holds = match word(&part["type"]) {
            "text" => !word(&part["text"]).is_empty(),
            "image_url" => data(&part["image_url"]["url"]),
            "video_url" => data(&part["video_url"]["url"]),
            "input_audio" => !word(&part["input_audio"]["data"]).is_empty(),
            "file" => {
                let file = &part["file"];
                word(&file["file_data"]).starts_with("data:") || file["file_id"].is_string()
            }
            _ => false,
        };
        must(holds, &format!("the part {part} of a {role} message"));
    }
}

fn tools(body: &Value, messages: &[Value], dialect: &str, must: &mut impl FnMut(bool, &str)) {
    let tools = list(&body["tools"]);
    let has_calls = messages
        .iter()
        .any(|message| message.get("tool_calls").is_some());
    must(
        body.get("tools").is_none() || !tools.is_empty(),
        "an empty list of tools",
    );
    if TOOLS_STAY.contains(&dialect) {
        must(!has_calls || !tools.is_empty(), "tools stay with calls");
    }
    for name in ["tool_choice", "parallel_tool_calls"] {
        must(
            !tools.is_empty() || body.get(name).is_none(),
            "a choice without tools",
        );
    }
    let mut names = HashSet::new();
    for tool in tools {
        let name = word(&tool["function"]["name"]);
        must(fits_name(name) && names.insert(name), "names of tools");
    }
}
