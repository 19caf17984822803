//! The agent: it reads a bill, and pays it when a person says yes.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use raf_core::{ChatMessage, MessageRole, Result, ToolResult};
use raf_examples::Provider;
use raf_framework::AgentRuntime;
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{FunctionTool, ToolContext, ToolLimits, tool_fn, tool_fn_with_context};
use schemars::JsonSchema;
use serde::Deserialize;

/// The agent, alike in each process that plays runs.
///
/// # Errors
/// A setting of the provider that is missing or wrong.
pub(crate) fn agent(payments: &Path) -> Result<AgentRuntime> {
    AgentRuntime::builder(Provider::from_env()?.client_by_rule(scripted)?)
        .name("bookkeeper")
        .instructions("You pay the user's bills. Read a bill before you pay it.")
        .tools([read_bill(), pay(payments.to_owned())])
        .build()
}

#[derive(Deserialize, JsonSchema)]
struct Bill {
    /// What the bill is for.
    subject: String,
}

/// It changes nothing: a process that dies within it costs nothing but a second look.
fn read_bill() -> FunctionTool {
    let read = |bill: Bill| async move { format!("{}: 95000 cents to landlord", bill.subject) };
    tool_fn("read_bill", "Reads a bill.", read).with_limits(ToolLimits::new().with_idempotent(true))
}

#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// Who gets the money.
    to: String,
    /// How much.
    cents: u64,
}

/// Gated, and not declared idempotent: its body is entered once at most, in all processes together. The key
/// is the same in each process; a real bank takes it as the header `Idempotency-Key`, and then the tool may be
/// declared idempotent.
fn pay(payments: PathBuf) -> FunctionTool {
    let pay = move |context: ToolContext, payment: Payment| {
        let payments = payments.clone();
        async move {
            let key = context.idempotency_key();
            let line = format!("{key} {} cents to {}\n", payment.cents, payment.to);
            let noted = tokio::task::spawn_blocking(move || note(&payments, &line)).await;
            noted.map_err(io::Error::other)??;
            Ok::<_, io::Error>(format!("{} cents went to {}", payment.cents, payment.to))
        }
    };
    tool_fn_with_context("pay", "Pays a bill.", pay).with_approval()
}

/// The bank: a line per payment, on the disk when this returns.
fn note(payments: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(payments)?;
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

/// What the scripted endpoint says where there is no model: it follows from the conversation alone, so that
/// any server goes on where another one died.
fn scripted(request: &ScriptedRequest) -> Reply {
    let question = |message: &ChatMessage| message.role() == MessageRole::User;
    let turn = request.messages.iter().rposition(question).unwrap_or(0);
    let results = request.messages[turn..]
        .iter()
        .flat_map(ChatMessage::tool_results);
    match results.map(ToolResult::text).collect::<Vec<_>>().as_slice() {
        [] => raf_examples::say("Let me read the bill. ").call(
            "call_1",
            "read_bill",
            r#"{"subject": "rent in May"}"#,
        ),
        [_] => raf_examples::say("Now I pay it. ").call(
            "call_2",
            "pay",
            r#"{"to": "landlord", "cents": 95000}"#,
        ),
        [.., last] => raf_examples::say(&format!("The bank says: {last}.")),
    }
}
