//! A tool that streams its result: each piece is shown while the tool is at work, and the model reads
//! the whole.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use std::io::Write;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage, Content, IChatClient,
    ToolDeclaration,
};
use raf_framework::ChatClientBuilderExt;
use raf_testing::Reply;
use raf_tools::{KindTool, ToolError};
use serde_json::json;

/// Reads a log, line by line. A tool of the streamable kind: its body returns a stream of text.
fn read_log() -> KindTool {
    let declaration = ToolDeclaration::new("read_log", "Reads the log of a service.")
        .with_parameters(&json!({
            "type": "object",
            "properties": {"service": {"type": "string"}},
            "required": ["service"],
        }));
    KindTool::streamable(declaration, |context, arguments| async move {
        let service = arguments["service"].as_str().unwrap_or_default().to_owned();
        if service != "shop" {
            return Err(ToolError::tell_model("there is only 'shop'"));
        }
        let lines = [
            "08:00 started\n",
            "08:01 no space left\n",
            "08:02 stopped\n",
        ];
        Ok(stream::iter(lines).then(move |line| {
            let context = context.clone();
            async move {
                if context.is_cancelled() {
                    return Err(ToolError::cancelled());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(line.to_owned())
            }
        }))
    })
    .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking([read_log()])
        .build()?;
    let question = [ChatMessage::user("Why did the shop stop?")];
    let options = ChatClientRunOptions::new();
    let mut updates = client.run(&question, options).await?;
    while let Some(update) = updates.try_next().await? {
        match update {
            AgentResponseUpdate::ToolStarted { call, .. } => println!("{} is at work:", call.name),
            // Live, as the tool says it. It is no part of the transcript: the result is.
            AgentResponseUpdate::ToolProgress { content, .. } => {
                let text = content.as_text().unwrap_or_default();
                for line in text.lines() {
                    println!("  … {line}");
                }
            }
            AgentResponseUpdate::ToolCalled { result, .. } => {
                let lines = result.content().iter().filter_map(Content::as_text);
                println!(
                    "the model reads {} bytes",
                    lines.map(str::len).sum::<usize>()
                );
            }
            AgentResponseUpdate::TextDelta { text } => print!("{text}"),
            _ => {}
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 2] {
    [
        Reply::calls([("call_1", "read_log", r#"{"service": "shop"}"#)]),
        raf_examples::say("The disk was full at 08:01.\n"),
    ]
}
