//! The smallest agent with a typed tool: the README's program, with a provider that needs no key.
#![cfg_attr(rustfmt, rustfmt_skip)]
#![expect(clippy::print_stdout, reason = "the program talks to a person at a terminal")]

use raf_framework::AgentRuntime;
use raf_tools::{schemars, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add { a: i64, b: i64 }

#[tokio::main]
async fn main() -> raf_core::Result<()> {
    let add = tool_fn("add", "Adds two numbers.", |add: Add| async move { add.a + add.b });
    let agent = AgentRuntime::builder(raf_examples::provider(script())?).tools([add]).build()?;
    let mut run = agent.run("2 + 40?");
    while let Some(piece) = run.next_text().await? { print!("{piece}"); }
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [raf_testing::Reply; 2] {
    let call = raf_testing::Reply::calls([("call_1", "add", r#"{"a": 2, "b": 40}"#)]);
    [call, raf_examples::say("2 + 40 is 42.\n")]
}
