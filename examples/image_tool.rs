//! A tool that returns an image: its result is typed parts, and stays so for the program and for the
//! models that read images.

#![expect(
    clippy::print_stdout,
    reason = "the program talks to a person at a terminal"
)]

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, Content, MediaContent, ToolDeclaration,
};
use raf_framework::ChatClientBuilderExt;
use raf_testing::Reply;
use raf_tools::KindTool;
use serde_json::json;

/// One red pixel, as a PNG.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// Plots something. A tool of the enhanced kind: its body returns typed parts.
fn plot() -> KindTool {
    let declaration =
        ToolDeclaration::new("plot", "Plots a function of x.").with_parameters(&json!({
            "type": "object",
            "properties": {"function": {"type": "string"}},
            "required": ["function"],
        }));
    KindTool::enhanced_invokable(declaration, |_, arguments| async move {
        let title = format!("A plot of {}.", arguments["function"]);
        let image = MediaContent::base64(PIXEL, "image/png");
        Ok(vec![Content::text(title), Content::Image(image)])
    })
    .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = raf_examples::provider(script())?
        .into_builder()
        .function_invoking([plot()])
        .build()?;
    let question = [ChatMessage::user("Plot x squared.")];
    let options = ChatClientRunOptions::new();
    let response = client.get_response(&question, options).await?;
    for result in response.messages.iter().flat_map(ChatMessage::tool_results) {
        for part in result.content() {
            match part {
                Content::Text(text) => println!("{} says: {}", result.name(), text.text),
                Content::Image(image) => println!(
                    "{} returned an image of type {}",
                    result.name(),
                    image.media_type.as_deref().unwrap_or("unknown")
                ),
                other => println!("{} returned {other:?}", result.name()),
            }
        }
    }
    println!("{}", response.text());
    Ok(())
}

/// What the scripted endpoint says where there is no model.
fn script() -> [Reply; 2] {
    [
        Reply::calls([("call_1", "plot", r#"{"function": "x * x"}"#)]),
        Reply::text("Here is the plot: a parabola."),
    ]
}
