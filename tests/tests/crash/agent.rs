//! The run that is killed: three rounds, parallel calls, one idempotent, one gated, one nested agent.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream};
use raf_framework::{AgentTool, FunctionInvokingChatClient};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ToolLimits, ToolOutput, ToolRegistry};

use crate::boundary::Boundary;

pub(crate) const QUESTION: &str = "Do it all.";
pub(crate) const ANSWER: &str = "All is done.";

/// A model that says what follows from the conversation alone: any process gives the same reply.
#[derive(Debug)]
struct Model(fn(usize) -> Reply);

#[async_trait]
impl IChatClient for Model {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let asked = messages
            .iter()
            .filter(|message| message.tool_calls().next().is_some());
        let reply = (self.0)(asked.count());
        ScriptedChatClient::new([reply])
            .run(messages, options)
            .await
    }
}

fn main_model(round: usize) -> Reply {
    match round {
        0 => Reply::calls([
            ("c1", "pay", r#"{"n":1}"#),
            ("c2", "look", r#"{"n":2}"#),
            ("c3", "pay", r#"{"n":3}"#),
        ]),
        1 => Reply::calls([
            ("c4", "transfer", r#"{"n":4}"#),
            ("c5", "expert", r#"{"task":"probe"}"#),
        ]),
        2 => Reply::calls([("c6", "pay", r#"{"n":6}"#)]),
        _ => Reply::text(ANSWER),
    }
}

fn expert_model(round: usize) -> Reply {
    match round {
        0 => Reply::calls([("e1", "probe", r#"{"n":5}"#)]),
        _ => Reply::text("probed"),
    }
}

fn racing_model(round: usize) -> Reply {
    match round {
        0 => Reply::calls([("c1", "pay", r#"{"n":1}"#)]),
        _ => Reply::text(ANSWER),
    }
}

/// A tool whose entry is a line in a file outside of the store.
fn tool(name: &'static str, effects: &Path, boundary: Boundary) -> ScriptedTool {
    let effects = effects.to_owned();
    let body = Behaviour::custom(move |context, arguments| {
        let effects = effects.clone();
        async move {
            let n = arguments["n"].to_string();
            note(
                &effects,
                &format!("{name} {n} {}", context.idempotency_key()),
            );
            boundary.at(&format!("entered {name}"));
            boundary.at(&format!("leaves {name}"));
            Ok(ToolOutput::text(format!("{name} {n} is done")))
        }
    });
    ScriptedTool::new(name).always(body)
}

/// Adds a line that is on the disk when this returns.
pub(crate) fn note(effects: &Path, line: &str) {
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .open(effects)
        .expect("the file of effects");
    file.write_all(format!("{line}\n").as_bytes())
        .expect("the file of effects");
}

/// The stack, alike in each process.
pub(crate) fn client(effects: &Path, boundary: Boundary) -> Arc<dyn IChatClient> {
    let probe = ToolRegistry::builder()
        .with_tool(tool("probe", effects, boundary))
        .build()
        .expect("tools");
    let expert = FunctionInvokingChatClient::new(Arc::new(Model(expert_model)), probe);
    let idempotent = ToolLimits::new().with_idempotent(true);
    let tools = ToolRegistry::builder()
        .with_tool(tool("pay", effects, boundary))
        .with_tool(tool("look", effects, boundary).with_limits(idempotent))
        .with_tool(tool("transfer", effects, boundary).gated())
        .with_tool(AgentTool::new("expert", "Probes.", Arc::new(expert)))
        .build()
        .expect("tools");
    Arc::new(FunctionInvokingChatClient::new(
        Arc::new(Model(main_model)),
        tools,
    ))
}

/// The stack of the runs that workers race for: one call each.
pub(crate) fn racing_client(effects: &Path) -> Arc<dyn IChatClient> {
    let tools = ToolRegistry::builder()
        .with_tool(tool("pay", effects, Boundary(false)))
        .build()
        .expect("tools");
    Arc::new(FunctionInvokingChatClient::new(
        Arc::new(Model(racing_model)),
        tools,
    ))
}
