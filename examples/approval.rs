//! Approval at the terminal: each call of a gated tool is shown to a person, who says yes, no, yes to
//! all like it, or changes what would run.
//!
//! The approval layer does the pausing and resuming; the program reads one stream. Without a terminal
//! the program answers for itself.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ApprovalRequest, ApprovalScope, ChatClientExt, ChatClientRunOptions,
    IChatClient, ToolOutcome,
};
use raf_framework::{ApprovalAnswer, ChatClientBuilderExt};
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{FunctionTool, ToolError, tool_fn};
use schemars::JsonSchema;
use serde::Deserialize;

/// A folder that exists in memory only.
type Folder = Arc<Mutex<Vec<String>>>;

fn list_files(folder: &Folder) -> FunctionTool {
    let folder = Arc::clone(folder);
    tool_fn("list_files", "Lists all files.", move |(): ()| {
        let files = folder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        async move { files }
    })
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    /// The name of one file.
    name: String,
}

/// Gated: its body is entered only after a yes to that very call.
fn delete_file(folder: &Folder) -> FunctionTool {
    let folder = Arc::clone(folder);
    let delete = move |delete: Delete| {
        let mut files = folder.lock().unwrap_or_else(PoisonError::into_inner);
        let before = files.len();
        files.retain(|file| *file != delete.name);
        let was_there = files.len() < before;
        async move {
            if was_there {
                Ok(format!("{} is deleted", delete.name))
            } else {
                Err(ToolError::tell_model(format!("no file '{}'", delete.name)))
            }
        }
    };
    tool_fn("delete_file", "Deletes one file.", delete).with_approval()
}

/// Puts a call before the person. An error (the terminal is gone) is no yes: the call stays open.
async fn ask_person(request: ApprovalRequest) -> io::Result<ApprovalAnswer> {
    let temporary = |name: &str| name.rsplit('.').next() == Some("tmp");
    let otherwise = match request.arguments["name"].as_str() {
        Some(name) if temporary(name) => "y",
        _ => "n",
    };
    println!(
        "  ? {} wants to run with {}",
        request.tool, request.arguments
    );
    loop {
        let answer = raf_examples::ask("    [y]es, [n]o, [a]lways, [e]dit:", otherwise).await?;
        return Ok(match answer.as_str() {
            "y" => ApprovalAnswer::approve(),
            "a" => ApprovalAnswer::approve().with_remember(ApprovalScope::ToolInSession),
            "n" => ApprovalAnswer::deny(raf_examples::ask("    why?", "it is still needed").await?),
            "e" => {
                let arguments = raf_examples::ask("    arguments:", "{}").await?;
                match serde_json::from_str(&arguments) {
                    Ok(arguments) => ApprovalAnswer::approve_edited(arguments),
                    Err(error) => {
                        println!("    that is no JSON: {error}");
                        continue;
                    }
                }
            }
            _ => continue,
        });
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let files = ["notes.txt", "draft.tmp", "cache.tmp"];
    let folder: Folder = Arc::new(Mutex::new(files.map(String::from).to_vec()));
    let agent = raf_examples::provider(script())?
        .into_builder()
        .approving(ask_person)
        .function_invoking([list_files(&folder), delete_file(&folder)])
        .build()?;

    let question = "Look what files there are, and delete those that nobody needs.";
    println!("\n> {question}\n");
    let options = ChatClientRunOptions::new().with_session_id("the-terminal");
    let mut updates = agent.run(&[question.into()], options).await?;
    while let Some(update) = updates.next().await {
        show(&update?)?;
    }
    let left = folder.lock().unwrap_or_else(PoisonError::into_inner);
    println!("Left: {}.", left.join(", "));
    Ok(())
}

fn show(update: &AgentResponseUpdate) -> io::Result<()> {
    match update {
        AgentResponseUpdate::TextDelta { text } => print!("{text}"),
        AgentResponseUpdate::MessageEnd { .. } => println!(),
        AgentResponseUpdate::ToolCalled { result, .. } => {
            let mark = match result.outcome() {
                ToolOutcome::Ok => "+",
                _ => "-",
            };
            println!("  {mark} {}: {}", result.name(), result.text());
        }
        AgentResponseUpdate::ToolApprovalRefused { reason, .. } => {
            println!("  - that answer does not fit ({reason}): the call waits");
        }
        AgentResponseUpdate::Finish { finish } => {
            println!("Ended with {:?}.", finish.reason);
            for waiting in &finish.pending {
                println!("Still waiting: {}", waiting.call.name());
            }
        }
        _ => {}
    }
    io::stdout().flush()
}

/// What the scripted endpoint says where there is no model: it looks, wants to delete all files at
/// once, and tells what became of it.
fn script() -> [Reply; 3] {
    let delete = |name: &str| format!(r#"{{"name": "{name}"}}"#);
    let look = raf_examples::say("Let me look.").call("call_1", "list_files", "{}");
    let delete = raf_examples::say("Three files. I would delete them all.")
        .call("call_2", "delete_file", &delete("draft.tmp"))
        .call("call_3", "delete_file", &delete("notes.txt"))
        .call("call_4", "delete_file", &delete("cache.tmp"));
    let tell = |request: &ScriptedRequest| {
        let results = request
            .messages
            .iter()
            .flat_map(raf_core::ChatMessage::tool_results);
        let results: Vec<String> = results.skip(1).map(raf_core::ToolResult::text).collect();
        raf_examples::say(&format!("This is what came of it: {}.", results.join("; ")))
    };
    [look, delete, Reply::from_fn(tell)]
}
