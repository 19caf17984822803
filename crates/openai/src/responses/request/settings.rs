//! The fields of a request beside its input and its tools.

use raf_core::{ChatClientRunOptions, Error, JsonSchemaFormat, ResponseFormat, Result};
use raf_wire::{BodyWriter, push_string, schema_for_answer, tool_name};
use serde_json::json;

use super::Writer;
use crate::responses::dialect::{ReasoningReplay, Rules};
use crate::responses::run_options::ResponsesRunOptions;

/// Whether the server keeps the response, as asked and as far as it can.
///
/// # Errors
/// It is needed, and the server keeps none.
pub(super) fn keeps_state(own: &ResponsesRunOptions, rules: &Rules) -> Result<bool> {
    if rules.server_state || !own.keeps_state() {
        return Ok(own.keeps_state());
    }
    let needed = match own {
        _ if own.conversation.is_some() => "a conversation id",
        _ if own.previous.is_some() => "a previous response id",
        _ if own.background => "a background run",
        _ => {
            tracing::warn!(
                dialect = &*rules.name,
                "this server keeps no responses: the whole conversation is sent with each request"
            );
            return Ok(false);
        }
    };
    Err(Error::misuse(format!(
        "{needed} was given, but a server of the dialect '{}' keeps no responses: leave it out and \
         give the whole conversation, or set ResponsesDialect::with_server_state_support",
        rules.name
    )))
}

pub(super) fn write(
    body: &mut BodyWriter<'_>,
    options: &ChatClientRunOptions,
    own: &ResponsesRunOptions,
    writer: &Writer<'_>,
    keeps_state: bool,
) -> Result<()> {
    let Writer { rules, model, .. } = *writer;
    body.field("stream", &writer.streaming)?;
    body.field("store", &keeps_state)?;
    if own.background {
        body.field("background", &true)?;
    }
    let reasons = rules.reasons(model);
    let replays = rules.reasoning_replay == ReasoningReplay::Encrypted;
    if !keeps_state && replays && reasons != Some(false) {
        body.field("include", &["reasoning.encrypted_content"])?;
    }
    write_sampling(body, options, rules, reasons)?;
    if let (Some(effort), true) = (&options.reasoning_effort, reasons != Some(false)) {
        body.field("reasoning", &json!({"effort": effort.as_str()}))?;
    }
    match &options.response_format {
        Some(ResponseFormat::JsonSchema(format)) => {
            let format = json_schema(format, rules);
            body.raw_field("text", |text| text.extend_from_slice(format.as_bytes()));
        }
        Some(ResponseFormat::JsonObject) => {
            body.field("text", &json!({"format": {"type": "json_object"}}))?;
        }
        _ => {}
    }
    Ok(())
}

fn write_sampling(
    body: &mut BodyWriter<'_>,
    options: &ChatClientRunOptions,
    rules: &Rules,
    reasons: Option<bool>,
) -> Result<()> {
    let takes_sampling = rules.sampling && reasons != Some(true);
    for (name, value) in [
        ("temperature", options.temperature),
        ("top_p", options.top_p),
    ] {
        let Some(value) = value.filter(|_| takes_sampling) else {
            continue;
        };
        if !value.is_finite() {
            return Err(Error::misuse(format!(
                "the option '{name}' is no finite number"
            )));
        }
        body.field(name, &value)?;
    }
    if let (Some(limit), true) = (options.max_output_tokens, rules.token_limit) {
        body.field("max_output_tokens", &limit.max(rules.least_tokens))?;
    }
    let unknown = !options.stop.is_empty()
        || options.seed.is_some()
        || options.frequency_penalty.is_some()
        || options.presence_penalty.is_some();
    if unknown {
        tracing::warn!(
            "the Responses API has no stop texts, seed and penalties: they are not sent"
        );
    }
    Ok(())
}

fn json_schema(format: &JsonSchemaFormat, rules: &Rules) -> String {
    let name = match format.name.as_str() {
        "" => "response".into(),
        name => tool_name(name),
    };
    let mut json = String::from(r#"{"format":{"type":"json_schema","name":"#);
    push_string(&mut json, &name);
    if let Some(description) = &format.description {
        json.push_str(r#","description":"#);
        push_string(&mut json, description);
    }
    json.push_str(r#","schema":"#);
    json.push_str(&schema_for_answer(format, rules.schema));
    json.push_str(match format.strict {
        Some(true) => r#","strict":true}}"#,
        // Left out, it is taken for true.
        _ => r#","strict":false}}"#,
    });
    json
}
