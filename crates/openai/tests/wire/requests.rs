//! Request cases: the conversation that would naively have given the body which the server rejects,
//! written in the case's dialect, must keep the case's rules.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, JsonSchemaFormat, MediaContent, MessageRole,
    ProviderData, ReasoningContent, ResponseFormat, ToolCall, ToolChoice, ToolDeclaration,
    ToolOutcome, ToolResult,
};
use raf_openai::{Dialect, OpenAiChatClient, OpenAiOptions};
use raf_testing::wire::{WireCase, check_rules};
use serde_json::{Map, Value};

use crate::checks;
use crate::dialects::{of_server, with_capability};

/// Builds the request, streamed and not, and evaluates the rules.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    for streaming in [true, false] {
        let body = build(case, streaming)?;
        check_rules(case, &body, checks::holds)?;
    }
    Ok(())
}

fn build(case: &WireCase, streaming: bool) -> Result<Value, String> {
    let input = &case.json["input"];
    let dialect = dialect(case);
    let must_send = &input["must_send"];
    // What the caller did not set, a naive client did.
    let is_callers = !input["condition"]
        .as_str()
        .unwrap_or("")
        .starts_with("Caller did not");
    let raw;
    let asked = match input["rejected_wire"]["raw"].as_str() {
        Some(text) => {
            raw = serde_json::from_str(&text.replace("\\ud83c", "\u{fffd}")).expect("JSON");
            &raw
        }
        None if is_callers => &input["rejected_wire"],
        None => must_send,
    };
    let past = must_send["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let messages: Vec<ChatMessage> = asked["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(place, message)| read_message(message, past.get(place), dialect.name()))
        .collect();
    let options = read_options(asked);
    let client = OpenAiOptions::new()
        .with_dialect(dialect)
        .with_streaming(streaming);
    let client = OpenAiChatClient::new(client).map_err(|error| error.to_string())?;
    let body = client
        .request_body(&messages, &options)
        .map_err(|error| format!("refused: {error}"))?;
    serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))
}

fn dialect(case: &WireCase) -> Dialect {
    let capability = case.json["capability"].as_str();
    let dialect = of_server(case.server());
    capability.into_iter().fold(dialect, with_capability)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The message of a conversation that a naive client would have sent so. What a past reply came with
/// (reasoning, signatures) is taken from the body that works, where the rejected one left it out.
fn read_message(message: &Value, past: Option<&Value>, provider: &str) -> ChatMessage {
    let role = match text(&message["role"]) {
        "system" => MessageRole::System,
        "developer" => MessageRole::Developer,
        "assistant" => MessageRole::Assistant,
        "tool" => MessageRole::Tool,
        _ => MessageRole::User,
    };
    if role == MessageRole::Tool {
        let id = text(&message["tool_call_id"]);
        return ChatMessage::tool(ToolResult::new(
            id,
            ToolOutcome::Ok,
            text(&message["content"]),
        ));
    }
    let past = past.filter(|past| past["role"] == message["role"]);
    let mut builder = ChatMessage::builder(role);
    let from_past = past.map_or(&Value::Null, |past| &past["reasoning_content"]);
    let reasoning = message.get("reasoning_content").unwrap_or(from_past);
    if let Some(reasoning) = reasoning.as_str() {
        builder = builder.content(ReasoningContent::new(reasoning));
    }
    match &message["content"] {
        Value::Array(parts) => builder = builder.contents(parts.iter().map(read_part)),
        Value::String(text) => builder = builder.content(text.as_str()),
        _ => {}
    }
    for (place, call) in message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let past = past.map_or(&Value::Null, |past| &past["tool_calls"][place]);
        builder = builder.content(read_call(call, past, provider));
    }
    for (name, value) in message.as_object().into_iter().flatten() {
        match name.as_str() {
            "role" | "content" | "tool_calls" | "reasoning_content" => {}
            "name" => builder = builder.name(text(value)),
            other => builder = builder.extra(other, value.clone()),
        }
    }
    builder.build()
}

fn read_part(part: &Value) -> Content {
    match text(&part["type"]) {
        "text" => Content::text(text(&part["text"])),
        "image_url" => Content::Image(MediaContent::url(text(&part["image_url"]["url"]))),
        other => panic!("the runner does not know parts of type '{other}'"),
    }
}

fn read_call(call: &Value, past: &Value, provider: &str) -> ToolCall {
    let function = &call["function"];
    let arguments = match &function["arguments"] {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut builder = ToolCall::builder(text(&call["id"]), text(&function["name"]), arguments);
    let extra = call
        .get("extra_content")
        .or_else(|| past.get("extra_content"));
    if let Some(extra) = extra {
        let data = Map::from_iter([("extra_content".to_owned(), extra.clone())]);
        builder = builder.provider_data(ProviderData::new(provider, Value::Object(data)));
    }
    if let Some(index) = call.get("index") {
        builder = builder.extra("index", index.clone());
    }
    builder.build()
}

fn read_options(body: &Value) -> ChatClientRunOptions {
    let mut options = ChatClientRunOptions::new().with_model(text(&body["model"]));
    options.temperature = body["temperature"].as_f64();
    options.top_p = body["top_p"].as_f64();
    let limit = body["max_tokens"]
        .as_u64()
        .or_else(|| body["max_completion_tokens"].as_u64());
    options.max_output_tokens = limit.and_then(|limit| limit.try_into().ok());
    options.parallel_tool_calls = body["parallel_tool_calls"].as_bool();
    if let Some(stop) = body["stop"].as_array() {
        options.stop = stop.iter().map(|stop| text(stop).to_owned()).collect();
    }
    options.tool_choice = match &body["tool_choice"] {
        Value::String(word) => match word.as_str() {
            "required" => Some(ToolChoice::Required),
            "none" => Some(ToolChoice::None),
            _ => Some(ToolChoice::Auto),
        },
        Value::Object(choice) => Some(ToolChoice::Named(
            text(&choice["function"]["name"]).to_owned(),
        )),
        _ => None,
    };
    options.tools = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(read_tool)
        .collect();
    let format = &body["response_format"];
    options.response_format = match text(&format["type"]) {
        "json_schema" => {
            let schema = &format["json_schema"];
            let name = text(&schema["name"]);
            Some(ResponseFormat::JsonSchema(JsonSchemaFormat::new(
                name,
                &schema["schema"],
            )))
        }
        "json_object" => Some(ResponseFormat::JsonObject),
        _ => None,
    };
    options
}

fn read_tool(tool: &Value) -> ToolDeclaration {
    let function = &tool["function"];
    let mut tool = ToolDeclaration::new(text(&function["name"]), text(&function["description"]));
    if let Some(parameters) = function.get("parameters") {
        tool = tool.with_parameters(parameters);
    }
    match function["strict"].as_bool() {
        Some(strict) => tool.with_strict(strict),
        None => tool,
    }
}
