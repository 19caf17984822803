//! An agent that is a tool holds the laws of a tool.

use raf_core::ChatClientExt;
use raf_framework::{AgentTool, ChatClientBuilderExt};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool, tool_contract};
use serde_json::json;

/// An agent that calls a tool of its own, then answers.
fn agent() -> AgentTool {
    let model = ScriptedChatClient::always(Reply::from_fn(|request| {
        let has_result = request.lines().iter().any(|line| line.starts_with("R("));
        if has_result {
            Reply::text("Bern is a city.")
        } else {
            Reply::calls([("c1", "look", "{}")])
        }
    }));
    let stack = model
        .into_builder()
        .function_invoking([ScriptedTool::returning("look", "a map")])
        .build()
        .expect("one loop around a model");
    AgentTool::new("geographer", "Knows cities.", stack)
}

tool_contract!(
    agent_backed: AgentTool, agent,
    valid: json!({"task": "What is Bern?"}), invalid: json!({"task": 1})
);
