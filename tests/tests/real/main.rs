//! The loop against a real model behind a real server that speaks all three protocols, where
//! `RAF_REAL_SERVER_URL` names one (`.ci/real` starts it). The model is tiny: what it says is not looked
//! at, only the structure of what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};
use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{
    AgentResponse, ChatClientBuilder, ChatClientExt, ChatClientRunOptions, ChatMessage, Content,
    FinishReason, IChatClient, MessageRole, Result, ToolCall, ToolChoice, ToolResult,
    validate_history,
};
use raf_framework::{ChatClientBuilderExt, FunctionInvokingOptions};
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient};
use raf_tools::{ToolRegistry, schemars, tool_fn};

/// One check against one door of a server.
type Check = fn(&str, &str) -> Result<(), Failed>;

const ADDRESS: &str = "RAF_REAL_SERVER_URL";

fn main() {
    let arguments = Arguments::from_args();
    let address = std::env::var(ADDRESS).ok();
    let mut trials = Vec::new();
    for door in ["chat_completions", "responses", "messages"] {
        let checks: [(&str, Check); 3] = [
            ("text", text),
            ("a_tool_is_called_and_its_result_read", tool),
            ("no_tool_where_none_is_allowed", none),
        ];
        for (name, check) in checks {
            let address = address.clone();
            let ignored = address.is_none();
            let trial = Trial::test(format!("{door}::{name}"), move || {
                check(door, &address.unwrap_or_default())
            });
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    if address.is_none() {
        #[expect(
            clippy::print_stderr,
            reason = "who runs the tests must see what is left out"
        )]
        {
            eprintln!("{ADDRESS} is not set: the tests against a real server are skipped");
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn client(door: &str, address: &str) -> Result<Arc<dyn IChatClient>> {
    let openai = || {
        OpenAiOptions::new()
            .with_base_url(format!("{address}/v1"))
            .with_api_key("none")
            .with_model("smollm2-135m")
    };
    Ok(match door {
        "chat_completions" => Arc::new(OpenAiChatClient::new(openai())?),
        "responses" => Arc::new(OpenAiResponsesChatClient::new(openai())?),
        _ => Arc::new(AnthropicChatClient::new(
            AnthropicOptions::new()
                .with_base_url(format!("{address}/v1"))
                .with_api_key("none")
                .with_model("smollm2-135m"),
        )?),
    })
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

/// A system line and two worked examples: then a model of this size calls the tool.
fn conversation() -> Vec<ChatMessage> {
    let mut messages = vec![ChatMessage::system(
        "You are a helpful assistant. Use the weather tool for every question about the weather.",
    )];
    for (number, city) in ["Paris", "Oslo"].into_iter().enumerate() {
        let id = format!("call_example_{number}");
        let call = ToolCall::new(id.as_str(), "weather", format!("{{\"city\": \"{city}\"}}"));
        messages.push(ChatMessage::user(format!("What is the weather in {city}?")));
        messages.push(ChatMessage::new(
            MessageRole::Assistant,
            [Content::ToolCall(call)],
        ));
        messages.push(ChatMessage::tool(ToolResult::ok(
            id.as_str(),
            "sunny, 20 degrees",
        )));
        messages.push(ChatMessage::assistant(format!(
            "It is sunny in {city}, 20 degrees."
        )));
    }
    messages.push(ChatMessage::user("What is the weather in Rome?"));
    messages
}

fn run(
    door: &str,
    address: &str,
    options: ChatClientRunOptions,
) -> Result<(AgentResponse, usize, Vec<ChatMessage>), Failed> {
    let entered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&entered);
    let weather = tool_fn("weather", "The weather in a city.", move |place: Place| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { format!("sunny in {}, 21 degrees", place.city) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let messages = conversation();
    let response = runtime.block_on(async {
        let tools = ToolRegistry::builder().with_tool(weather).build()?;
        let stack = ChatClientBuilder::new(client(door, address)?)
            .function_invoking_with(tools, FunctionInvokingOptions::new().with_max_rounds(4))
            .build()?;
        let options = options.with_temperature(0.0).with_max_output_tokens(64);
        stack.get_response(&messages, options).await
    })?;
    let mut transcript = messages;
    transcript.extend(response.messages.iter().cloned());
    validate_history(&transcript).map_err(|faults| format!("{faults:?}"))?;
    let entered = entered.load(Ordering::SeqCst);
    Ok((response, entered, transcript))
}

fn text(door: &str, address: &str) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let options = ChatClientRunOptions::new().with_max_output_tokens(24);
    let response = runtime.block_on(async {
        let client = client(door, address)?;
        client.get_response(&["Say hello.".into()], options).await
    })?;
    if response.text().trim().is_empty() {
        return Err("the model said nothing".into());
    }
    if !matches!(
        response.finish_reason,
        FinishReason::Stop | FinishReason::Length
    ) {
        return Err(format!("ended as {:?}", response.finish_reason).into());
    }
    if response.usage.output_tokens.unwrap_or(0) == 0 {
        return Err("no usage was reported".into());
    }
    Ok(())
}

fn tool(door: &str, address: &str) -> Result<(), Failed> {
    let (response, entered, transcript) = run(door, address, ChatClientRunOptions::new())?;
    let results = transcript
        .iter()
        .flat_map(ChatMessage::tool_results)
        .filter(|result| result.occurrence().is_some())
        .count();
    if entered == 0 || results < entered {
        return Err(format!(
            "{entered} bodies were entered and {results} results stand in the transcript: {:?}",
            response.finish_reason
        )
        .into());
    }
    Ok(())
}

/// The Messages door of llama.cpp takes `none` as `auto` (seen with xllamacpp 2026.10.11549): the model may
/// call, and the loop runs nothing.
fn none(door: &str, address: &str) -> Result<(), Failed> {
    let options = ChatClientRunOptions::new().with_tool_choice(ToolChoice::None);
    let (_, entered, _) = run(door, address, options)?;
    if entered != 0 {
        return Err("a body was entered although no tool was allowed".into());
    }
    Ok(())
}
