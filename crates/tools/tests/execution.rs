//! The executor on its own: order, bounds, deadlines, failures, results (contract D and H).

#[path = "execution/bounds.rs"]
mod bounds;
#[path = "execution/ends.rs"]
mod ends;
#[path = "execution/handlers.rs"]
mod handlers;
#[path = "execution/kinds.rs"]
mod kinds;
#[path = "execution/logging.rs"]
mod logging;
#[path = "execution/nesting.rs"]
mod nesting;
#[path = "execution/observing.rs"]
mod observing;
#[path = "execution/pausing.rs"]
mod pausing;
#[path = "execution/records.rs"]
mod records;
#[path = "execution/results.rs"]
mod results;
#[path = "execution/wrapping.rs"]
mod wrapping;

use std::sync::Arc;

use raf_core::{ChatMessage, ToolCall};
use raf_testing::ScriptedTool;
use raf_tools::{ExecuteOptions, Execution, ExecutionOptions, ToolExecutor, ToolRegistry};

/// An executor of these tools.
fn executor(options: ExecutionOptions, tools: &[&ScriptedTool]) -> ToolExecutor {
    let mut registry = ToolRegistry::builder();
    for tool in tools {
        registry = registry.with_shared_tool(Arc::new((*tool).clone()));
    }
    let registry = registry.build().expect("the tools have names of their own");
    ToolExecutor::with_options(registry, options)
}

/// An assistant message with these calls, each `tool#id` or `tool#id(arguments)`.
fn message(calls: &[&str]) -> ChatMessage {
    ChatMessage::assistant_calls(calls.iter().map(|call| {
        let (head, arguments) = match call.split_once('(') {
            Some((head, rest)) => (head, rest.strip_suffix(')').expect("a closing bracket")),
            None => (*call, "{}"),
        };
        let (tool, id) = head.split_once('#').expect("tool#id");
        ToolCall::new(id, tool, arguments)
    }))
}

async fn execute(executor: &ToolExecutor, calls: &[&str]) -> Execution {
    executor
        .execute(&message(calls), ExecuteOptions::new())
        .await
        .expect("a message with calls")
}

/// Each result as `id=text`.
fn texts(execution: &Execution) -> Vec<String> {
    execution
        .results
        .iter()
        .map(|result| format!("{}={}", result.call_id(), result.text()))
        .collect()
}
