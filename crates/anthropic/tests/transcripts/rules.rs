//! The rules of requests, as a check that knows nothing of how requests are written. The numbers are
//! those of the corpus's one set of rules.

use std::collections::HashSet;

use serde_json::{Value, json};

/// Whose rules hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) dialect: &'a str,
    pub(crate) model: &'a str,
}

/// The types of blocks that an assistant's turn may hold.
const ASSISTANT: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "compaction",
];

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn fits(text: &str, most: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=most).contains(&text.len()) && text.bytes().all(fits)
}

/// Everything that breaks a rule.
pub(crate) fn faults(body: &Value, setting: &Setting<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, rule: &str| {
        if !holds {
            faults.push(rule.to_owned());
        }
    };
    form(body, setting, &mut must);
    let turns = list(&body["messages"]);
    conversation(body, turns, setting, &mut must);
    results(turns, &mut must);
    tools(body, turns, setting, &mut must);
    thinking(body, turns, setting, &mut must);
    cache(body, turns, &mut must);
    faults
}

fn form(body: &Value, setting: &Setting<'_>, must: &mut impl FnMut(bool, &str)) {
    let is_cloud = matches!(setting.dialect, "bedrock" | "vertex");
    must(body["max_tokens"].as_u64() > Some(0), "20: max_tokens");
    must(body.get("model").is_some() != is_cloud, "26: model");
    let has_version = body.get("anthropic_version").is_some();
    must(has_version == is_cloud, "26: version in the body");
    let streams = body.get("stream").is_some();
    must(streams != (setting.dialect == "bedrock"), "26: stream");
    let knows_output_config = setting.dialect == "anthropic";
    must(
        body.get("output_config").is_none() || knows_output_config,
        "26: output_config",
    );
    let known = [
        "model",
        "max_tokens",
        "system",
        "messages",
        "stream",
        "anthropic_version",
        "tools",
        "tool_choice",
        "thinking",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "output_config",
    ];
    let members = body.as_object().into_iter().flatten();
    for (name, _) in members {
        must(
            known.contains(&name.as_str()),
            &format!("26: {name} is unknown"),
        );
    }
}

fn conversation(
    body: &Value,
    turns: &[Value],
    setting: &Setting<'_>,
    must: &mut impl FnMut(bool, &str),
) {
    for block in list(&body["system"]) {
        must(!word(&block["text"]).trim().is_empty(), "20: blank system");
    }
    let has_system = body.get("system").is_some();
    must(
        !has_system || !list(&body["system"]).is_empty(),
        "20: empty system",
    );
    must(
        turns.first().is_some_and(|first| first["role"] == "user"),
        "20: user first",
    );
    for pair in turns.windows(2) {
        must(pair[0]["role"] != pair[1]["role"], "20: roles alternate");
    }
    for turn in turns {
        must(!list(&turn["content"]).is_empty(), "20: empty content");
        for block in list(&turn["content"]) {
            let kind = word(&block["type"]);
            if kind == "text" {
                must(!word(&block["text"]).trim().is_empty(), "20: blank text");
            }
            must(block.get("index").is_none(), "18: index");
            if turn["role"] == "assistant" {
                must(ASSISTANT.contains(&kind), &format!("18: {kind}"));
            } else {
                let of_user = ["text", "image", "document", "tool_result"];
                must(of_user.contains(&kind), &format!("20: {kind} of the user"));
            }
        }
    }
    let Some(last) = turns.last().filter(|last| last["role"] == "assistant") else {
        return;
    };
    let no_prefill = setting.dialect == "copilot" || setting.model == "claude-opus-4-7";
    let thinks = !matches!(word(&body["thinking"]["type"]), "" | "disabled");
    must(!no_prefill && !thinks, "20: a prefill that is not taken");
    let text = list(&last["content"])
        .last()
        .filter(|block| block["type"] == "text");
    let text = text.map_or("", |block| word(&block["text"]));
    must(text == text.trim_end(), "20: blanks at the end");
}

fn results(turns: &[Value], must: &mut impl FnMut(bool, &str)) {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for turn in turns {
        let blocks = list(&turn["content"]);
        let results = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result");
        let answered: Vec<&str> = results.map(|block| word(&block["tool_use_id"])).collect();
        must(
            answered == open,
            "21: results first, one for each call, in order",
        );
        for block in blocks.iter().skip(answered.len()) {
            must(
                block["type"] != "tool_result",
                "21: a result behind the others",
            );
        }
        for block in blocks.iter().filter(|block| block["is_error"] == true) {
            let is_text = |part: &Value| part["type"] == "text";
            must(
                list(&block["content"]).iter().all(is_text),
                "21: text alone in errors",
            );
        }
        for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
            let content = &block["content"];
            let says = !word(content).trim().is_empty() || !list(content).is_empty();
            must(says, "20: an empty result");
            for part in list(content).iter().filter(|part| part["type"] == "text") {
                must(
                    !word(&part["text"]).trim().is_empty(),
                    "20: blank text in a result",
                );
            }
        }
        open.clear();
        for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
            must(turn["role"] == "assistant", "18: a call of the user");
            let id = word(&call["id"]);
            must(fits(id, usize::MAX), "22: the form of ids");
            must(ids.insert(id), "22: ids are unique");
            must(call["input"].is_object(), "22: input is an object");
            must(fits(word(&call["name"]), 64), "22: names in the history");
            open.push(id);
        }
    }
    must(open.is_empty(), "21: a call without result");
}

fn tools(body: &Value, turns: &[Value], setting: &Setting<'_>, must: &mut impl FnMut(bool, &str)) {
    let tools = list(&body["tools"]);
    let mut names = HashSet::new();
    for tool in tools {
        must(fits(word(&tool["name"]), 64), "22: tool names");
        must(
            names.insert(word(&tool["name"])),
            "22: tool names are unique",
        );
        let schema = &tool["input_schema"];
        must(schema["type"] == "object", "22: schemas are objects");
        for union in ["anyOf", "oneOf", "allOf"] {
            must(schema.get(union).is_none(), "22: no union at the root");
        }
    }
    let blocks = turns.iter().flat_map(|turn| list(&turn["content"]));
    let has_calls = blocks.clone().any(|block| block["type"] == "tool_use");
    must(!has_calls || !tools.is_empty(), "22: tools stay with calls");
    let choice = &body["tool_choice"];
    must(
        choice.is_null() || !tools.is_empty(),
        "23: a choice without tools",
    );
    if !choice.is_null() {
        let kind = word(&choice["type"]);
        must(
            ["auto", "any", "tool", "none"].contains(&kind),
            "23: the form of choices",
        );
        let knows_none = ["anthropic", "bedrock", "vertex", "openrouter"];
        let is_known = kind != "none" || knows_none.contains(&setting.dialect);
        must(is_known, "23: none is not known");
        if kind == "tool" {
            must(names.contains(word(&choice["name"])), "23: the chosen tool");
        }
    }
}

fn thinking(
    body: &Value,
    turns: &[Value],
    setting: &Setting<'_>,
    must: &mut impl FnMut(bool, &str),
) {
    let kind = word(&body["thinking"]["type"]);
    let thinks = !matches!(kind, "" | "disabled");
    let temperature = &body["temperature"];
    if thinks {
        let choice = word(&body["tool_choice"]["type"]);
        must(matches!(choice, "" | "auto" | "none"), "24: a forced call");
        must(
            temperature.is_null() || temperature == 1.0,
            "24: temperature",
        );
        must(body["top_k"].is_null(), "24: top_k");
    }
    if kind == "enabled" {
        let budget = body["thinking"]["budget_tokens"].as_u64();
        must(budget >= Some(1024), "24: a small budget");
        must(budget < body["max_tokens"].as_u64(), "24: budget and limit");
    }
    let adaptive = setting.model == "claude-opus-4-7"
        && ["anthropic", "bedrock", "vertex", "litellm", "openrouter"].contains(&setting.dialect);
    if adaptive {
        must(kind != "enabled", "24: a budget for an adaptive model");
        must(
            temperature.is_null() && body["top_p"].is_null(),
            "24: sampling",
        );
    }
    must(
        temperature.is_null() || body["top_p"].is_null(),
        "24: temperature or top_p",
    );
    for stop in list(&body["stop_sequences"]) {
        must(!word(stop).trim().is_empty(), "24: a blank stop text");
    }
    let unsigned = [
        "deepseek", "kimi", "minimax", "llamacpp", "sglang", "vllm", "ollama",
    ];
    let own = format!("{}/{}", setting.dialect, setting.model);
    for block in turns.iter().flat_map(|turn| list(&turn["content"])) {
        let secret = match word(&block["type"]) {
            "thinking" => word(&block["signature"]),
            "redacted_thinking" => word(&block["data"]),
            _ => continue,
        };
        let is_unsigned = secret.is_empty() && unsigned.contains(&setting.dialect);
        must(
            secret == own || is_unsigned,
            &format!("19: a thought of {secret}"),
        );
    }
    let last = turns.iter().rfind(|turn| turn["role"] == "assistant");
    let blocks = last.map_or(&[][..], |last| list(&last["content"]));
    if thinks && blocks.iter().any(|block| block["type"] == "tool_use") {
        let first = word(&blocks[0]["type"]);
        must(
            first.ends_with("thinking"),
            "24: the turn begins with its thought",
        );
    }
}

fn cache(body: &Value, turns: &[Value], must: &mut impl FnMut(bool, &str)) {
    let mut lifetimes = Vec::new();
    let of_turns = turns.iter().flat_map(|turn| list(&turn["content"]));
    let all = list(&body["tools"])
        .iter()
        .chain(list(&body["system"]))
        .chain(of_turns);
    for block in all {
        let mark = &block["cache_control"];
        if mark.is_null() {
            continue;
        }
        must(
            !word(&block["type"]).ends_with("thinking"),
            "25: on thinking",
        );
        must(mark["type"] == "ephemeral", "25: the form of breakpoints");
        lifetimes.push(mark["ttl"] == "1h");
    }
    must(lifetimes.len() <= 4, "25: at most four");
    must(
        lifetimes.windows(2).all(|pair| pair[0] || !pair[1]),
        "25: an hour first",
    );
}

/// Each change of a good body is found.
pub(crate) fn self_test() {
    let setting = Setting {
        dialect: "anthropic",
        model: "m",
    };
    let good = json!({
        "model": "m", "max_tokens": 4096, "stream": true,
        "system": [{"type": "text", "text": "s"}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": "anthropic/m"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        ],
    });
    assert_eq!(faults(&good, &setting), Vec::<String>::new());
    let mark = json!({"type": "ephemeral"});
    for (place, value) in [
        ("/max_tokens", json!(0)),
        ("/messages/0/role", json!("assistant")),
        ("/messages/0/content", json!([])),
        ("/messages/0/content/0/text", json!(" ")),
        ("/messages/0/content/0/type", json!("hologram")),
        ("/messages/1/content/0/signature", json!("anthropic/other")),
        ("/messages/1/content/0/type", json!("text")),
        ("/messages/1/content/1/id", json!("a b")),
        ("/messages/1/content/1/input", json!("{}")),
        (
            "/messages/1/content/0",
            json!({"type": "thinking", "signature": "anthropic/m", "cache_control": mark}),
        ),
        ("/messages/2/content/0/tool_use_id", json!("b")),
        ("/messages/2/content/0/content", json!("")),
        (
            "/messages/2/content",
            json!([{"type": "text", "text": "x"}]),
        ),
        ("/system", json!([{"type": "text", "text": ""}])),
        ("/system", json!([])),
        ("/tools", json!([])),
        ("/tools/0/name", json!("a.b")),
        (
            "/tools/0/input_schema",
            json!({"type": "object", "anyOf": []}),
        ),
        ("/thinking/budget_tokens", json!(5)),
        ("/thinking/budget_tokens", json!(4096)),
        ("/model", json!(null)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).expect("a place") = value.clone();
        if place == "/model" {
            bad.as_object_mut().expect("an object").remove("model");
        }
        assert!(!faults(&bad, &setting).is_empty(), "{place} = {value}");
    }
    for (name, value) in [
        ("temperature", json!(0.5)),
        ("top_k", json!(5)),
        ("tool_choice", json!({"type": "any"})),
        ("tool_choice", json!("auto")),
        ("stop_sequences", json!(["\n"])),
        ("parallel_tool_calls", json!(false)),
    ] {
        let mut bad = good.clone();
        bad[name] = value.clone();
        assert!(!faults(&bad, &setting).is_empty(), "{name} = {value}");
    }
}
