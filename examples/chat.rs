//! A chat at the terminal: history in a session, tools, approvals, line editing. Ctrl-C stops the turn
//! and keeps the session; Ctrl-D leaves.
//!
//! Without a terminal the lines of standard input are the conversation; without any, the program plays
//! one of its own.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, CancellationToken, ChatClientRunOptions, ErrorKind, Finish, PendingCall,
    Session, ToolApprovalResponse,
};
use raf_framework::{AgentRequest, AgentRuntime};
use raf_testing::Reply;
use raf_tools::{FunctionTool, tool_fn};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use schemars::JsonSchema;
use serde::Deserialize;

type Notes = Arc<Mutex<Vec<String>>>;

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// The text of the note.
    text: String,
}

fn tools(notes: &Notes) -> [FunctionTool; 3] {
    let locked = |notes: &Notes| notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (all, add, delete) = (Arc::clone(notes), Arc::clone(notes), Arc::clone(notes));
    [
        tool_fn("list_notes", "Lists all notes.", move |(): ()| {
            let notes = locked(&all);
            async move { notes }
        }),
        tool_fn("add_note", "Adds a note.", move |note: Note| {
            add.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(note.text);
            async { "added" }
        }),
        tool_fn(
            "delete_note",
            "Deletes a note, word for word.",
            move |note: Note| {
                let mut notes = delete.lock().unwrap_or_else(PoisonError::into_inner);
                notes.retain(|text| *text != note.text);
                async { "deleted" }
            },
        )
        .with_approval(),
    ]
}

/// Where lines come from.
#[derive(Clone)]
enum Lines {
    Editor(Arc<Mutex<DefaultEditor>>),
    Script(Arc<Mutex<VecDeque<String>>>),
}

impl Lines {
    fn open() -> Result<Self, Box<dyn Error>> {
        if io::stdin().is_terminal() {
            return Ok(Self::Editor(Arc::new(Mutex::new(DefaultEditor::new()?))));
        }
        let mut lines: VecDeque<String> = io::stdin().lock().lines().collect::<Result<_, _>>()?;
        if lines.is_empty() {
            println!("(nobody is at a terminal: the program talks to itself)");
            lines.extend(
                ["What do I have to do?", "The plants are watered.", "y"].map(String::from),
            );
        }
        Ok(Self::Script(Arc::new(Mutex::new(lines))))
    }

    /// The next line; `None` at the end. Reading blocks: it has a thread of its own.
    async fn next(&self, prompt: &'static str) -> Result<Option<String>, Box<dyn Error>> {
        match self {
            Self::Script(lines) => {
                let line = lines
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .pop_front();
                println!("{prompt}{}", line.as_deref().unwrap_or_default());
                Ok(line)
            }
            Self::Editor(editor) => {
                let editor = Arc::clone(editor);
                let read = move || {
                    let mut editor = editor.lock().unwrap_or_else(PoisonError::into_inner);
                    let line = editor.readline(prompt)?;
                    editor.add_history_entry(&line)?;
                    Ok(line)
                };
                match tokio::task::spawn_blocking(read).await? {
                    Ok(line) => Ok(Some(line)),
                    // An empty line: nothing is asked, nothing is decided.
                    Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                    Err(ReadlineError::Eof) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let notes: Notes = Arc::new(Mutex::new(vec![
        "water the plants".into(),
        "buy bread".into(),
    ]));
    let agent = AgentRuntime::builder(raf_examples::provider(script())?)
        .instructions("You keep the user's notes. Be brief.")
        .tools(tools(&notes))
        .build()?;
    let session = Session::in_memory();
    let lines = Lines::open()?;
    println!("Ctrl-C stops an answer, Ctrl-D leaves.");
    while let Some(line) = lines.next("> ").await? {
        if line.trim().is_empty() {
            continue;
        }
        let mut request = AgentRequest::new(line.as_str());
        while let Some(finish) = turn(&agent, request.in_session(session.clone())).await? {
            let answers = ask(&lines, &finish.pending).await?;
            if answers.is_empty() {
                // What is left open waits: it is superseded by the next message.
                break;
            }
            request = AgentRequest::answers(answers);
        }
    }
    println!("\nUntil next time.");
    Ok(())
}

/// Plays a turn; says how it ended if calls wait.
async fn turn(
    agent: &AgentRuntime,
    request: AgentRequest,
) -> Result<Option<Finish>, Box<dyn Error>> {
    let stop = CancellationToken::new();
    let options = ChatClientRunOptions::new().with_cancellation(stop.clone());
    let mut run = agent.run(request.with_options(options));
    loop {
        let update = tokio::select! {
            update = run.next() => update,
            // The run ends by itself, and leaves a valid session.
            interrupt = tokio::signal::ctrl_c(), if !stop.is_cancelled() => {
                interrupt?;
                stop.cancel();
                continue;
            }
        };
        match update {
            Some(Ok(AgentResponseUpdate::Finish { finish })) => {
                return Ok(finish.reason.is_pause().then_some(*finish));
            }
            Some(Ok(update)) => show(&update)?,
            Some(Err(error)) if error.kind() == ErrorKind::Cancelled => println!("\n(stopped)"),
            Some(Err(error)) => println!("\n({error})"),
            None => return Ok(None),
        }
    }
}

/// Asks the person about each call that waits.
async fn ask(
    lines: &Lines,
    pending: &[PendingCall],
) -> Result<Vec<ToolApprovalResponse>, Box<dyn Error>> {
    let mut answers = Vec::new();
    for request in pending.iter().filter_map(PendingCall::approval) {
        println!(
            "  ? {} wants to run with {}",
            request.tool, request.arguments
        );
        let answer = lines.next("    [y]es or [n]o: ").await?.unwrap_or_default();
        answers.extend(match answer.trim() {
            "y" => Some(ToolApprovalResponse::approve(&request.request_id)),
            "n" => Some(ToolApprovalResponse::deny(&request.request_id, "")),
            _ => None,
        });
    }
    Ok(answers)
}

fn show(update: &AgentResponseUpdate) -> io::Result<()> {
    match update {
        AgentResponseUpdate::TextDelta { text } => print!("{text}"),
        AgentResponseUpdate::MessageEnd { .. } => println!(),
        AgentResponseUpdate::ToolCalled { result, .. } => {
            println!("  + {}: {}", result.name(), result.text());
        }
        _ => {}
    }
    io::stdout().flush()
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 4] {
    [
        raf_examples::say("I will look.").call("call_1", "list_notes", "{}"),
        raf_examples::say("You have to water the plants and buy bread."),
        raf_examples::say("Then that note can go.").call(
            "call_2",
            "delete_note",
            r#"{"text": "water the plants"}"#,
        ),
        raf_examples::say("Done. Only the bread is left."),
    ]
}
