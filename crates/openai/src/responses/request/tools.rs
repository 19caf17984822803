//! The tools of a request to `/responses`: flat, `strict` always said, the server's own beside them.

use raf_core::{ChatClientRunOptions, Error, Result, ToolChoice};
use raf_wire::{BodyWriter, Restore, StrictForm, ToolRules, WireTool, push_string, tool_name};
use serde_json::{Value, json};

use super::Writer;
use crate::responses::run_options::ResponsesRunOptions;

/// What the reading must know of the tools.
pub(super) struct Written {
    pub(super) restore: Restore,
    pub(super) names: Option<Vec<String>>,
}

pub(super) fn write(
    body: &mut BodyWriter<'_>,
    options: &ChatClientRunOptions,
    own: &ResponsesRunOptions,
    writer: &Writer<'_>,
) -> Result<Written> {
    let rules = ToolRules {
        schema: writer.rules.schema,
        strict: StrictForm::Always,
    };
    let mut names: Vec<String> = Vec::new();
    let declared = writer.cache.rendered(&options.tools, rules, write_tool)?;
    names.extend(
        options
            .tools
            .iter()
            .map(|tool| tool_name(tool.name()).into_owned()),
    );
    let hosted = if writer.rules.hosted {
        own.hosted_tools.as_slice()
    } else {
        &[]
    };
    let added = options.extra_body.get("tools").and_then(Value::as_array);
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    names.extend(
        hosted
            .iter()
            .chain(added.into_iter().flatten())
            .filter_map(name),
    );
    let has_tools = !options.tools.is_empty() || !hosted.is_empty();
    if has_tools {
        body.raw_field("tools", |text| {
            let declared = declared.json.trim_start_matches('[').trim_end_matches(']');
            text.push(b'[');
            text.extend_from_slice(declared.as_bytes());
            for (place, tool) in hosted.iter().enumerate() {
                if place > 0 || !declared.is_empty() {
                    text.push(b',');
                }
                text.extend_from_slice(tool.to_string().as_bytes());
            }
            text.push(b']');
        });
        if let Some(parallel) = options.parallel_tool_calls {
            body.field("parallel_tool_calls", &parallel)?;
        }
        // Without a function there is nothing to forbid.
        let asked = options.tool_choice.as_ref();
        let asked = asked.filter(|choice| !options.tools.is_empty() || choice.is_forced());
        if let Some(choice) = choice(asked, own, hosted) {
            body.field("tool_choice", &choice)?;
        }
    } else if options
        .tool_choice
        .as_ref()
        .is_some_and(ToolChoice::is_forced)
        && added.is_none()
    {
        return Err(Error::misuse(
            "a tool call is forced by the tool choice, but the request has no tools",
        ));
    }
    let any = has_tools || added.is_some_and(|added| !added.is_empty());
    Ok(Written {
        restore: declared.restore.clone(),
        names: any.then_some(names),
    })
}

fn choice(
    choice: Option<&ToolChoice>,
    own: &ResponsesRunOptions,
    hosted: &[Value],
) -> Option<Value> {
    let word = match choice {
        Some(ToolChoice::None) => "none",
        Some(ToolChoice::Required) => "required",
        Some(ToolChoice::Named(name)) => return Some(named(name, hosted)),
        None if own.allowed_tools.is_empty() => return None,
        _ => "auto",
    };
    if word == "none" && !hosted.is_empty() {
        // The choice is among the declared tools: the loop's last request keeps what the server runs.
        return Some(
            json!({"type": "allowed_tools", "mode": "auto", "tools": hosted_only(hosted)}),
        );
    }
    if own.allowed_tools.is_empty() || word == "none" {
        return Some(word.into());
    }
    let tools = own.allowed_tools.iter().map(|name| named(name, hosted));
    Some(json!({
        "type": "allowed_tools",
        "mode": word,
        "tools": tools.collect::<Vec<_>>(),
    }))
}

fn hosted_only(hosted: &[Value]) -> Vec<Value> {
    let short = |tool: &Value| match tool["name"].as_str() {
        Some(name) => json!({"type": tool["type"], "name": name}),
        None => match tool["server_label"].as_str() {
            Some(label) => json!({"type": tool["type"], "server_label": label}),
            None => json!({"type": tool["type"]}),
        },
    };
    hosted.iter().map(short).collect()
}

/// A tool by its name, whoever runs it.
fn named(name: &str, hosted: &[Value]) -> Value {
    let is_it = |tool: &&Value| match tool["name"].as_str() {
        Some(of) => of == name,
        None => tool["type"] == name,
    };
    match hosted.iter().find(is_it) {
        Some(tool) if tool["name"].is_string() => json!({"type": tool["type"], "name": name}),
        Some(tool) => json!({"type": tool["type"]}),
        None => json!({"type": "function", "name": tool_name(name)}),
    }
}

fn write_tool(json: &mut String, tool: &WireTool<'_>) {
    json.push_str(r#"{"type":"function","name":"#);
    push_string(json, tool.name);
    if !tool.description.is_empty() {
        json.push_str(r#","description":"#);
        push_string(json, tool.description);
    }
    json.push_str(r#","parameters":"#);
    json.push_str(
        tool.parameters
            .unwrap_or(r#"{"type":"object","properties":{}}"#),
    );
    json.push_str(match tool.strict {
        Some(true) => r#","strict":true}"#,
        _ => r#","strict":false}"#,
    });
}
