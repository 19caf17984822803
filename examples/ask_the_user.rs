//! A tool that asks the user a question in the middle of its work: it interrupts, and is entered again
//! with the answer.
//!
//! This program pauses and resumes by hand, without the approval layer. Without a terminal it answers
//! for itself.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::error::Error;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, PendingCall, ToolApprovalResponse, WaitsFor,
};
use raf_framework::ChatClientBuilderExt;
use raf_testing::{Reply, ScriptedRequest};
use raf_tools::{ToolContext, ToolError, tool_fn_with_context};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many people come.
    people: u32,
}

/// Books a table. Which one, only the user can say.
async fn book_table(context: ToolContext, booking: Booking) -> Result<String, ToolError> {
    let Some(resumption) = context.resumption() else {
        // The first time: look what is free, and ask. The second value is kept for this tool itself.
        let free = json!(["by the window", "in the garden"]);
        let question = format!("A table for {}: which one?", booking.people);
        let information = json!({"question": question, "choices": free});
        return Err(ToolError::interrupt(information, json!({"free": free})));
    };
    // Entered again: the state that was left behind, and the answer. Look at it as at any input.
    let chosen = resumption.data.as_str().unwrap_or_default();
    let free = resumption.state["free"].as_array();
    if !free.is_some_and(|free| free.contains(&json!(chosen))) {
        return Err(ToolError::tell_model(format!(
            "there is no table '{chosen}'"
        )));
    }
    Ok(format!(
        "booked for {} {chosen}, as number {}",
        booking.people,
        context.idempotency_key()
    ))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let book = tool_fn_with_context("book_table", "Books a table for tonight.", book_table);
    let agent = raf_examples::provider(script())?
        .into_builder()
        .function_invoking([book])
        .build()?;

    let question = "Book a table for four.";
    println!("\n> {question}\n");
    let mut conversation = vec![ChatMessage::user(question)];
    let mut answers = Vec::new();
    loop {
        let options = ChatClientRunOptions::new().with_tool_approval_responses(answers);
        let response = agent.get_response(&conversation, options).await?;
        conversation.extend(response.messages.iter().cloned());
        if !response.finish_reason.is_pause() {
            println!("{}", response.text());
            return Ok(());
        }
        answers = Vec::new();
        for pending in &response.pending {
            answers.extend(answer(pending).await?);
        }
        if answers.is_empty() {
            return Err("something waits that this program has no answer to".into());
        }
    }
}

/// Puts the question of a tool to the user.
async fn answer(pending: &PendingCall) -> std::io::Result<Option<ToolApprovalResponse>> {
    let WaitsFor::Data {
        request_id,
        information,
        ..
    } = &pending.waits_for
    else {
        return Ok(None);
    };
    println!(
        "{}: {}",
        pending.call.name(),
        information["question"].as_str().unwrap_or_default()
    );
    let choices = information["choices"].as_array().map_or(&[][..], |all| all);
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    for (number, choice) in (1..).zip(&choices) {
        println!("  {number}. {choice}");
    }
    let typed = raf_examples::ask("  a number, or nothing for none of them:", "2").await?;
    let number: Option<usize> = typed.parse().ok();
    let chosen = number.and_then(|number| choices.get(number.checked_sub(1)?));
    Ok(Some(match chosen {
        Some(choice) => ToolApprovalResponse::resume(request_id, json!(choice)),
        None => ToolApprovalResponse::deny(request_id, "the user wants none of these tables"),
    }))
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 2] {
    let tell = |request: &ScriptedRequest| {
        let results = request.messages.iter().flat_map(ChatMessage::tool_results);
        let results: Vec<String> = results.map(raf_core::ToolResult::text).collect();
        Reply::text(format!("About your table: {}.", results.join("; ")))
    };
    let book = Reply::calls([("call_1", "book_table", r#"{"people": 4}"#)]);
    [book, Reply::from_fn(tell)]
}
