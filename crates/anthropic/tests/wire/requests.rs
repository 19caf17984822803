//! Request cases: the conversation that would naively have given the body which the server rejects,
//! written in the case's dialect, must keep the case's rules.

use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt,
    CacheLifetime, Conflicts, Dialect, PromptCaching, Thinking,
};
use raf_core::{
    ChatClientRunOptions, Error, ErrorKind, ReasoningEffort, ToolChoice, ToolDeclaration,
};
use raf_testing::wire::{WireCase, holds};
use serde_json::Value;

use crate::dialects::{of_server, with_capability};
use crate::transcript::{MODEL, read};
use crate::{checks, headers};

/// Builds the request, streamed and not, and evaluates the rules. Settings that the API refuses together
/// give way here; with the default they are refused, or the rules hold as well.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    check_the_checks(case)?;
    for streaming in [true, false] {
        let body = build(case, streaming, Conflicts::Adapt)
            .map_err(|error| format!("refused: {error}"))?;
        check_body(case, &body)?;
        match build(case, streaming, Conflicts::Refuse) {
            Ok(body) => check_body(case, &body)?,
            Err(error) if error.kind() == ErrorKind::Misuse => {}
            Err(error) => return Err(format!("refused: {error}")),
        }
    }
    headers::check(case, &options(case))
}

fn check_body(case: &WireCase, body: &Value) -> Result<(), String> {
    match broken(case, body) {
        Some(check) => Err(format!("{check} does not hold for {body}")),
        None => Ok(()),
    }
}

fn broken<'a>(case: &'a WireCase, body: &Value) -> Option<&'a Value> {
    let checks = case.expected()["wire_checks"].as_array();
    let mut checks = checks.into_iter().flatten();
    checks.find(|check| !holds(check, body, checks::holds))
}

/// The rules must hold for what works, and not for what is rejected.
fn check_the_checks(case: &WireCase) -> Result<(), String> {
    let input = &case.json["input"];
    if let Some(check) = broken(case, &input["must_send"]) {
        return Err(format!("{check} does not hold for must_send"));
    }
    let is_rejected = !input["server_rejection"].is_null();
    let rejected = &input["rejected_wire"];
    let holds = broken(case, rejected).is_none() && headers::hold(case, "rejected_headers");
    if is_rejected && holds && !rejected.is_null() {
        let is_silent = case.expected()["wire_checks"] == Value::Array(Vec::new());
        let wants_no_more = is_silent || only_moves(case);
        if !wants_no_more {
            return Err("the rules hold for rejected_wire".to_owned());
        }
    }
    Ok(())
}

/// Whether the bad part of the refused body is in what the rules do not look at.
fn only_moves(case: &WireCase) -> bool {
    case.expected()["wire_checks"]
        .as_array()
        .is_some_and(|checks| checks.iter().all(|check| check["op"] == "absent"))
}

fn options(case: &WireCase) -> AnthropicOptions {
    let betas = case.json["input"]["rejected_headers"]["anthropic-beta"].as_str();
    let options = AnthropicOptions::new()
        .with_api_key("KEY")
        .with_dialect(dialect(case));
    betas.into_iter().fold(options, AnthropicOptions::with_beta)
}

fn build(case: &WireCase, streaming: bool, conflicts: Conflicts) -> Result<Value, Error> {
    let input = &case.json["input"];
    let asked = &input["rejected_wire"];
    let messages = read(asked, &input["must_send"], dialect(case).name());
    let client = options(case)
        .with_streaming(streaming)
        .with_conflicts(conflicts);
    let client = AnthropicChatClient::new(client)?;
    let body = client.request_body(&messages, &read_options(asked))?;
    Ok(serde_json::from_str(&body).expect("the body is JSON"))
}

fn dialect(case: &WireCase) -> Dialect {
    let capability = case.json["capability"].as_str();
    let dialect = of_server(case.server());
    // What a case says of Anthropic among others holds for the common form.
    let dialect = match capability {
        Some(_) => dialect,
        None if case.server().starts_with("Bedrock") => dialect,
        None => dialect.with_endpoint_form(raf_anthropic::EndpointForm::Messages),
    };
    capability.into_iter().fold(dialect, with_capability)
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn read_options(body: &Value) -> ChatClientRunOptions {
    let mut options = ChatClientRunOptions::new().with_model(MODEL);
    options.temperature = body["temperature"].as_f64();
    options.top_p = body["top_p"].as_f64();
    options.max_output_tokens = body["max_tokens"]
        .as_u64()
        .and_then(|limit| limit.try_into().ok());
    options.parallel_tool_calls = body["parallel_tool_calls"].as_bool().or_else(|| {
        let one = body["tool_choice"]["disable_parallel_tool_use"].as_bool();
        one.or_else(|| body["disable_parallel_tool_use"].as_bool())
            .map(|one| !one)
    });
    for member in ["stop_sequences", "stop"] {
        let stop = body[member].as_array().into_iter().flatten();
        options.stop.extend(stop.map(|stop| word(stop).to_owned()));
    }
    options.tool_choice = tool_choice(&body["tool_choice"]);
    let tools = body["tools"].as_array().into_iter().flatten();
    options.tools = tools.clone().map(read_tool).collect();
    options.reasoning_effort = body["output_config"]["effort"]
        .as_str()
        .map(|effort| ReasoningEffort::Other(effort.to_owned()));
    let mut own = AnthropicRunOptions::new();
    own.top_k = body["top_k"]
        .as_u64()
        .and_then(|top_k| top_k.try_into().ok());
    own.thinking = match word(&body["thinking"]["type"]) {
        "enabled" => {
            let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
            Some(Thinking::Budget(budget.try_into().unwrap_or(u32::MAX)))
        }
        "adaptive" => Some(Thinking::Adaptive),
        "disabled" => Some(Thinking::Disabled),
        _ => None,
    };
    let marks: Vec<&Value> = tools.filter_map(|tool| tool.get("cache_control")).collect();
    if let Some(mark) = marks.first() {
        let lifetime = if mark["ttl"] == "1h" {
            CacheLifetime::OneHour
        } else {
            CacheLifetime::FiveMinutes
        };
        let caching = PromptCaching::explicit().with_tools(true);
        own.caching = Some(caching.with_lifetime(lifetime));
    }
    options.with_anthropic(own)
}

fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    let kind = choice.as_str().or_else(|| choice["type"].as_str())?;
    Some(match kind {
        "required" | "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(word(&choice["name"]).to_owned()),
        "function" => ToolChoice::Named(word(&choice["function"]["name"]).to_owned()),
        _ => ToolChoice::Auto,
    })
}

fn read_tool(tool: &Value) -> ToolDeclaration {
    let (tool, schema) = match tool.get("function") {
        Some(function) => (function, "parameters"),
        None => (tool, "input_schema"),
    };
    let declared = ToolDeclaration::new(word(&tool["name"]), word(&tool["description"]));
    match tool.get(schema) {
        Some(schema) => declared.with_parameters(schema),
        None => declared,
    }
}
