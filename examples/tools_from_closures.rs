//! Tools from closures: typed, with a context, dynamic, declared only; and an error that the model
//! may read.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use raf_core::{
    AgentResponse, ChatClientExt, ChatClientRunOptions, ChatMessage, FinishReason, ToolDeclaration,
    ToolResult,
};
use raf_framework::ChatClientBuilderExt;
use raf_testing::Reply;
use raf_tools::{
    FunctionTool, ToolContext, ToolError, dynamic_tool, tool_fn, tool_fn_with_context,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// The name of the item, in lower case.
    name: String,
}

/// A typed closure over state. Its error is written for the model: it reads the text and can try
/// again. Of any other error it reads only that the tool failed.
fn price() -> FunctionTool {
    let prices = Arc::new(HashMap::from([("apple", 120), ("pear", 150)]));
    tool_fn("price", "Looks up a price in cents.", move |item: Item| {
        let prices = Arc::clone(&prices);
        async move {
            let price = prices.get(item.name.as_str()).copied();
            price.ok_or_else(|| {
                let known: Vec<_> = prices.keys().copied().collect();
                ToolError::tell_model(format!("no item '{}'; there are {known:?}", item.name))
            })
        }
    })
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// What to buy.
    items: Vec<String>,
}

/// A typed function with the context of its call: to say how far it is, to see a cancellation, to
/// hand on a key that is the same if this very call is run again.
async fn order(context: ToolContext, order: Order) -> String {
    let key = context.idempotency_key();
    for item in &order.items {
        context.progress(format!("packing {item} under {key}"));
    }
    format!("ordered: {}", order.items.join(", "))
}

/// A tool whose schema is known only while the program runs.
fn store_hours() -> FunctionTool {
    let declaration = ToolDeclaration::new("store_hours", "Says when the store is open.")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"day": {"type": "string", "enum": ["saturday", "sunday"]}},
            "required": ["day"],
        }));
    dynamic_tool(declaration, |_context, arguments| async move {
        if arguments["day"] == "sunday" {
            "closed"
        } else {
            "9 to 17"
        }
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let ordering = tool_fn_with_context("order", "Orders items.", order);
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking([price(), ordering, store_hours()])
        .build()?;

    // Declared only: the model may call it, and this program answers the call itself.
    let ask_user = ToolDeclaration::new("ask_user", "Asks the user to choose. Takes no arguments.");
    let options = ChatClientRunOptions::new().with_tools([ask_user]);
    let mut conversation = vec![ChatMessage::user(
        "Is the store open on Saturday? If so, order a piece of fruit that I choose.",
    )];
    loop {
        let response = client.get_response(&conversation, options.clone()).await?;
        show(&response);
        conversation.extend(response.messages.iter().cloned());
        if response.finish_reason != FinishReason::AwaitingToolResults {
            return Ok(());
        }
        for pending in &response.pending {
            println!(
                "  {} is for this program to answer: pear",
                pending.call.name()
            );
            let result = ToolResult::ok(pending.call.id(), "pear");
            conversation.push(ChatMessage::tool(result));
        }
    }
}

fn show(response: &AgentResponse) {
    for message in &response.messages {
        for call in message.tool_calls() {
            println!("  calls {} with {}", call.name(), call.arguments());
        }
        for result in message.tool_results() {
            println!("  {}: {}", result.name(), result.text());
        }
    }
    if response.finish_reason == FinishReason::Stop {
        println!("{}", response.text());
    }
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 5] {
    [
        Reply::calls([
            ("call_1", "store_hours", r#"{"day": "saturday"}"#),
            ("call_2", "price", r#"{"name": "banana"}"#),
        ]),
        Reply::calls([("call_3", "price", r#"{"name": "pear"}"#)]),
        Reply::calls([("call_4", "ask_user", "{}")]),
        Reply::calls([("call_5", "order", r#"{"items": ["pear"]}"#)]),
        Reply::text("The store is open from 9 to 17, and a pear is ordered."),
    ]
}
