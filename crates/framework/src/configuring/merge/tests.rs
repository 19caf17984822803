//! Which of defaults, run and overrides wins, field by field.

use std::time::Duration;

use raf_core::{
    ChatClientRunOptions, JsonSchemaFormat, ReasoningEffort, ResponseFormat, ToolApprovalResponse,
    ToolChoice, ToolDeclaration,
};
use raf_tools::{ToolOptionsExt, ToolRegistry, tool_fn};
use serde_json::json;

use super::merge;

fn none() -> ChatClientRunOptions {
    ChatClientRunOptions::new()
}

/// Every field that one place sets, told apart by `n`.
fn all(n: u32) -> ChatClientRunOptions {
    let effort = [ReasoningEffort::Low, ReasoningEffort::High];
    let format = JsonSchemaFormat::new(format!("schema{n}"), &json!({}));
    none()
        .with_model(format!("m{n}"))
        .with_temperature(n.into())
        .with_top_p(n.into())
        .with_max_output_tokens(n)
        .with_stop([format!("stop{n}")])
        .with_seed(n.into())
        .with_frequency_penalty(n.into())
        .with_presence_penalty(n.into())
        .with_tools([ToolDeclaration::new("t", format!("tool {n}"))])
        .with_tool_choice(ToolChoice::Named(format!("t{n}")))
        .with_parallel_tool_calls(n.is_multiple_of(2))
        .with_response_format(ResponseFormat::JsonSchema(format))
        .with_reasoning_effort(effort[n as usize % 2].clone())
        .with_extra_body("field", json!(n))
        .with_session_id(format!("s{n}"))
        .with_deadline(Duration::from_secs(n.into()))
        .with_extension(n)
}

fn shown(options: &ChatClientRunOptions) -> String {
    format!("{options:#?} {:?}", options.extensions.get::<u32>())
}

#[test]
fn overrides_win_over_the_run_and_the_run_over_defaults() {
    let check = |defaults, run, overrides, expect| {
        assert_eq!(shown(&merge(&defaults, &run, &overrides)), shown(&expect));
    };
    check(none(), none(), none(), none());
    check(all(1), none(), none(), all(1));
    check(none(), all(2), none(), all(2));
    check(none(), none(), all(3), all(3));
    check(all(1), all(2), none(), all(2));
    check(all(1), none(), all(3), all(3));
    check(none(), all(2), all(3), all(3));
    check(all(1), all(2), all(3), all(3));
}

#[test]
fn no_field_is_forgotten() {
    let names = |options: ChatClientRunOptions, only_set: bool| -> Vec<String> {
        format!("{options:#?}")
            .lines()
            .filter(|line| line.starts_with("    ") && !line.starts_with("     "))
            .filter(|line| !(only_set && (line.ends_with("None,") || line.ends_with("[],"))))
            .filter_map(|line| Some(line.trim().split_once(':')?.0.to_owned()))
            .collect()
    };
    let mut every = names(none(), false);
    let mut set = names(all(1), true);
    let own = ["cancellation", "tool_approval_responses", "paused_run"];
    set.extend(
        own.map(str::to_owned)
            .into_iter()
            .filter(|name| every.contains(name)),
    );
    set.sort();
    every.sort();
    set.dedup();
    assert_eq!(set, every, "set the new field in `all`, and merge it");
}

#[test]
fn lists_and_maps_add_up_by_name() {
    let declared = |names: &[(&str, &str)]| {
        let tools = names.iter();
        none().with_tools(tools.map(|(name, text)| ToolDeclaration::new(*name, *text)))
    };
    let merged = merge(
        &declared(&[("a", "default"), ("b", "default")]).with_extra_body("x", json!({"deep": 1})),
        &declared(&[("c", "run"), ("b", "run")]).with_extra_body("y", json!(2)),
        &declared(&[("d", "override"), ("a", "override")]).with_extra_body("x", json!(3)),
    );
    let tools: Vec<_> = merged
        .tools
        .iter()
        .map(|tool| (tool.name(), tool.description()))
        .collect();
    assert_eq!(
        tools,
        [
            ("a", "override"),
            ("b", "run"),
            ("c", "run"),
            ("d", "override")
        ]
    );
    assert_eq!(
        serde_json::Value::from(merged.extra_body),
        json!({"x": 3, "y": 2})
    );
}

#[tokio::test]
async fn sources_of_tools_add_up_strongest_first() {
    let source = |name: &str| {
        let tool = tool_fn(name, "", |(): ()| async {});
        let registry = ToolRegistry::builder().with_tool(tool).build().unwrap();
        none().with_provider_tools(registry)
    };
    let merged = merge(&source("default"), &source("run"), &source("override"));
    let mut names = Vec::new();
    for source in merged.provider_tools() {
        for tool in source.tools().await.unwrap() {
            names.push(tool.name().to_owned());
        }
    }
    assert_eq!(names, ["override", "run", "default"]);
}

#[test]
fn cancellation_and_answers_are_the_runs_own() {
    let answered =
        |id: &str| none().with_tool_approval_responses([ToolApprovalResponse::approve(id)]);
    let (defaults, run, overrides) = (answered("d"), answered("r"), answered("o"));
    defaults.cancellation.cancel();
    overrides.cancellation.cancel();
    let merged = merge(&defaults, &run, &overrides);
    assert_eq!(merged.tool_approval_responses, run.tool_approval_responses);
    assert!(!merged.cancellation.is_cancelled());
    run.cancellation.cancel();
    assert!(merged.cancellation.is_cancelled());
}
