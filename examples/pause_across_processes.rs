//! A run that waits in a file: one process asks, another answers and goes on.
//!
//! `cargo run --example pause_across_processes` starts both, one after the other. By hand:
//! `… -- ask` writes `raf_paused.json` and ends; `… -- answer`, any time later, reads it and goes on.
//!
//! What waits is sealed, as if the file went through hands that nobody vouches for (a browser, a
//! queue): changed by a byte, it is refused. `RAF_SEALING_KEY` gives the key.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::error::Error;
use std::path::Path;
use std::process::Command;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, IChatClient, ToolApprovalResponse, WaitsFor,
};
use raf_framework::{
    ChatClientBuilderExt, PausedRunSealer, SealedPausedRun, SealingKey, SealingKeys,
};
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{ToolContext, tool_fn_with_context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the file holds: the conversation as the caller knows it, and the run that waits.
#[derive(Serialize, Deserialize)]
struct Saved {
    conversation: Vec<ChatMessage>,
    paused: SealedPausedRun,
}

#[derive(Deserialize, JsonSchema)]
struct Transfer {
    /// Who gets it.
    to: String,
    /// How much, in cents.
    amount: u64,
}

/// A copy of the file can be answered a second time, and these processes share nothing that would tell.
/// The key is the same each time: a bank that knows it sends the money once.
async fn transfer(context: ToolContext, transfer: Transfer) -> String {
    let key = context.idempotency_key();
    format!("sent {} to {} as {key}", transfer.amount, transfer.to)
}

/// The same stack in both processes: on resume, tools are given again.
fn agent(script: [Reply; 1]) -> raf_core::Result<std::sync::Arc<dyn IChatClient>> {
    let transfer = tool_fn_with_context("transfer", "Sends money.", transfer).with_approval();
    raf_examples::provider(script)?
        .into_builder()
        .function_invoking([transfer])
        .build()
}

/// Seals for this user: what was sealed for another one does not open here.
fn sealer() -> raf_core::Result<PausedRunSealer> {
    let secret = std::env::var("RAF_SEALING_KEY");
    let secret = secret.unwrap_or_else(|_| "for this demonstration only, no secret".repeat(2));
    Ok(SealingKeys::new(SealingKey::new("demo", secret)?).for_audience("user-42"))
}

/// The first process: runs until the run waits, writes it down, ends.
async fn ask(file: &Path) -> Result<(), Box<dyn Error>> {
    let call = Reply::calls([(
        "call_1",
        "transfer",
        r#"{"to": "landlord", "amount": 50000}"#,
    )]);
    let mut conversation = vec![ChatMessage::user("Pay the rent.")];
    let response = agent([call])?
        .get_response(&conversation, ChatClientRunOptions::new())
        .await?;
    conversation.extend(response.messages);
    let Some(paused) = &response.paused_run else {
        println!("Nothing waits: the model called no gated tool.");
        return Ok(());
    };
    let saved = Saved {
        conversation,
        paused: sealer()?.seal(paused),
    };
    std::fs::write(file, serde_json::to_vec_pretty(&saved)?)?;
    println!(
        "{} call(s) wait in {}.",
        response.pending.len(),
        file.display()
    );
    Ok(())
}

/// The second process: reads it, has a person decide, goes on.
async fn answer(file: &Path) -> Result<(), Box<dyn Error>> {
    let saved: Saved = serde_json::from_slice(&std::fs::read(file)?)?;
    let paused = sealer()?.open(&saved.paused)?;
    let mut answers = Vec::new();
    for pending in paused.pending() {
        if let WaitsFor::Approval(request) = pending.waits_for {
            let question = format!("Run {} with {}? [y/n]", request.tool, request.arguments);
            let id = request.request_id;
            answers.push(match raf_examples::ask(&question, "y").await?.as_str() {
                "y" => ToolApprovalResponse::approve(id),
                _ => ToolApprovalResponse::deny(id, "not now"),
            });
        }
    }
    // No store is shared by the two processes: the file that is gone is what keeps a second answer off.
    std::fs::remove_file(file)?;
    let tell = |request: &ScriptedRequest| {
        let results = request.messages.iter().flat_map(ChatMessage::tool_results);
        let results: Vec<String> = results.map(raf_core::ToolResult::text).collect();
        Reply::text(format!("The bank says: {}.", results.join("; ")))
    };
    let options = ChatClientRunOptions::new()
        .with_paused_run(paused)
        .with_tool_approval_responses(answers);
    let response = agent([Reply::from_fn(tell)])?
        .get_response(&saved.conversation, options)
        .await?;
    println!("{}", response.text());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let step = arguments.next();
    let file = arguments.next().unwrap_or_else(|| "raf_paused.json".into());
    match step.as_deref() {
        Some("ask") => ask(Path::new(&file)).await,
        Some("answer") => answer(Path::new(&file)).await,
        Some(other) => Err(format!("there is ask and answer, and no '{other}'").into()),
        None => both(),
    }
}

/// Starts both processes, one after the other.
fn both() -> Result<(), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("raf_paused_{}.json", std::process::id()));
    for step in ["ask", "answer"] {
        println!("\n$ pause_across_processes {step} {}", file.display());
        let status = Command::new(std::env::current_exe()?)
            .arg(step)
            .arg(&file)
            .status()?;
        if !status.success() {
            return Err(format!("{step} failed").into());
        }
    }
    Ok(())
}
