//! Request cases: the conversation that would naively have given the body which the server rejects,
//! written in the case's dialect, must keep the case's rules.

use raf_core::{
    ChatClientRunOptions, JsonSchemaFormat, ReasoningEffort, ResponseFormat, ToolChoice,
    ToolDeclaration,
};
use raf_openai::{OpenAiOptions, OpenAiResponsesChatClient, ResponsesRunOptionsExt};
use raf_testing::wire::{WireCase, check_rules, list};
use serde_json::Value;

use crate::checks;
use crate::dialects::{of_server, with_capability};
use crate::history::read_history;

/// Builds the request, streamed and not, and evaluates the rules.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    let capability = case.json["capability"].as_str();
    let dialect = of_server(case.server());
    let dialect = capability.into_iter().fold(dialect, with_capability);
    let input = &case.json["input"];
    let asked = &input["rejected_wire"];
    let must_send = &input["must_send"];
    let messages = read_history(case, dialect.name());
    let options = read_options(asked, must_send);
    for streaming in [true, false] {
        let client = OpenAiOptions::new()
            .with_responses_dialect(dialect.clone())
            .with_streaming(streaming);
        let client = OpenAiResponsesChatClient::new(client).map_err(|error| error.to_string())?;
        let body = client
            .request_body(&messages, &options)
            .map_err(|error| format!("refused: {error}"))?;
        let body = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        check_rules(case, &body, checks::holds)?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn read_options(asked: &Value, must_send: &Value) -> ChatClientRunOptions {
    let mut options = ChatClientRunOptions::new().with_model(text(&asked["model"]));
    options.temperature = asked["temperature"].as_f64();
    options.top_p = asked["top_p"].as_f64();
    options.max_output_tokens = asked["max_output_tokens"]
        .as_u64()
        .and_then(|limit| limit.try_into().ok());
    options.parallel_tool_calls = asked["parallel_tool_calls"].as_bool();
    let effort = asked["reasoning_effort"]
        .as_str()
        .or(asked["reasoning"]["effort"].as_str());
    options.reasoning_effort = effort.map(|effort| ReasoningEffort::Other(effort.to_owned()));
    let format = [
        &asked["text"]["format"],
        &asked["response_format"]["json_schema"],
        &asked["response_format"],
    ];
    let format = format.into_iter().find(|format| format.is_object());
    options.response_format = format.map(|format| match &format["schema"] {
        Value::Null => ResponseFormat::JsonObject,
        schema => ResponseFormat::JsonSchema(JsonSchemaFormat::new(text(&format["name"]), schema)),
    });
    for tool in list(&asked["tools"]) {
        match text(&tool["type"]) {
            "function" => options.tools.push(read_tool(tool)),
            _ => options = options.with_hosted_tool(tool.clone()),
        }
    }
    let choice = &asked["tool_choice"];
    match choice {
        Value::String(word) => {
            options.tool_choice = Some(match word.as_str() {
                "required" => ToolChoice::Required,
                "none" => ToolChoice::None,
                _ => ToolChoice::Auto,
            });
        }
        Value::Object(choice) => {
            let name = choice
                .get("name")
                .or_else(|| choice.get("function")?.get("name"));
            match name {
                Some(Value::Array(names)) => {
                    options.tool_choice = Some(ToolChoice::Required);
                    options = options.with_allowed_tools(names.iter().map(text));
                }
                name => {
                    let name = text(name.unwrap_or(&Value::Null)).to_owned();
                    options.tool_choice = Some(ToolChoice::Named(name));
                }
            }
        }
        _ => {}
    }
    if let Some(id) = must_send["previous_response_id"].as_str() {
        options = options.with_previous_response_id(id);
    }
    if must_send["store"] == true {
        options = options.with_server_state(true);
    }
    options
}

fn read_tool(tool: &Value) -> ToolDeclaration {
    let function = if tool["function"].is_object() {
        &tool["function"]
    } else {
        tool
    };
    let mut tool = ToolDeclaration::new(text(&function["name"]), text(&function["description"]));
    if let Some(parameters) = function.get("parameters") {
        tool = tool.with_parameters(parameters);
    }
    match function["strict"].as_bool() {
        Some(true) => tool.with_strict(true),
        _ => tool,
    }
}
