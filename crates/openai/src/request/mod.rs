//! From messages and options to the body of a request, by the rules of a dialect.
//!
//! The body is put together from pieces of JSON text: each message's is rendered once per dialect and
//! kept with the message, the tools' once per set of tools. Nothing is built as a generic value, so
//! that a schema's properties reach the wire in the order in which they were written.

mod arrange;
mod message;
mod tools;

pub(crate) use arrange::media_after_results;
use bytes::Bytes;
pub(crate) use message::is_media;
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, Error, JsonSchemaFormat, ResponseFormat, Result,
    ToolChoice, is_valid_history, normalise,
};
use raf_wire::{BodyWriter, Restore, Said, ToolsCache, schema_for_answer, tool_name};
use serde::Serialize;

use crate::Dialect;
use crate::dialect::{ForcedToolChoice, Rules, SchemaSupport, TokenLimitField};

/// A request that can be sent.
pub(crate) struct Built {
    pub(crate) body: Bytes,
    /// What the messages said, each as it stands in the body.
    pub(crate) said: Said,
    pub(crate) restore: Restore,
}

/// Writes a request.
///
/// # Errors
/// What is wrong with it by itself: two tools of one name, a number that is none, media that the wire
/// has no form for.
pub(crate) fn build(
    messages: &[ChatMessage],
    options: &ChatClientRunOptions,
    model: &str,
    dialect: &Dialect,
    streaming: bool,
    cache: &ToolsCache,
) -> Result<Built> {
    let rules = &dialect.rules;
    let normalised;
    let messages = if is_valid_history(messages) {
        messages
    } else {
        normalised = normalise(messages);
        &normalised
    };
    message::check_media(messages)?;
    let instructions = answer_instructions(options.response_format.as_ref(), messages, rules);
    let arranged = arrange::arrange(messages, instructions, rules);
    let pieces: Vec<_> = arranged
        .iter()
        .map(|message| {
            message.rendered(dialect.render_key, |message| {
                message::render(message, rules)
            })
        })
        .collect();
    let length: usize = pieces.iter().map(|piece| piece.len() + 1).sum();

    let tools = tools::rendered(&options.tools, messages, rules, cache)?;
    let mut body = BodyWriter::new(length + tools.json.len() + 512, options);
    body.field("model", model)?;
    body.raw_field("messages", |text| {
        text.push(b'[');
        for (place, piece) in pieces.iter().enumerate() {
            if place > 0 {
                text.push(b',');
            }
            text.extend_from_slice(piece.as_bytes());
        }
        text.push(b']');
    });
    body.field("stream", &streaming)?;
    if streaming && rules.stream_usage {
        body.raw_field("stream_options", |text| {
            text.extend_from_slice(br#"{"include_usage":true}"#);
        });
    }
    write_sampling(&mut body, options, rules)?;
    if tools.is_empty() {
        if options
            .tool_choice
            .as_ref()
            .is_some_and(ToolChoice::is_forced)
        {
            return Err(Error::misuse(
                "a tool call is forced by the tool choice, but the request has no tools",
            ));
        }
    } else {
        body.raw_field("tools", |text| {
            text.extend_from_slice(tools.json.as_bytes());
        });
        write_tool_options(&mut body, options, rules, tools.is_history_only)?;
    }
    if let Some(format) = options.response_format.as_ref() {
        write_response_format(&mut body, format, rules)?;
    }
    Ok(Built {
        said: Said::from(pieces),
        body: body.finish()?,
        restore: tools.restore.clone(),
    })
}

fn write_sampling(
    body: &mut BodyWriter<'_>,
    options: &ChatClientRunOptions,
    rules: &Rules,
) -> Result<()> {
    let floats = [
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("frequency_penalty", options.frequency_penalty),
        ("presence_penalty", options.presence_penalty),
    ];
    for (name, value) in floats {
        let Some(value) = value.filter(|_| rules.sampling) else {
            continue;
        };
        if !value.is_finite() {
            return Err(Error::misuse(format!(
                "the option '{name}' is no finite number"
            )));
        }
        body.field(name, &value)?;
    }
    if let Some(limit) = options.max_output_tokens {
        let name = match rules.token_limit {
            TokenLimitField::MaxCompletionTokens => "max_completion_tokens",
            TokenLimitField::MaxTokens => "max_tokens",
        };
        body.field(name, &limit)?;
    }
    if !options.stop.is_empty() {
        body.field("stop", &options.stop)?;
    }
    if let Some(seed) = options.seed {
        body.field(rules.seed_field, &seed)?;
    }
    if let (Some(effort), true) = (&options.reasoning_effort, rules.reasoning_effort) {
        body.field("reasoning_effort", effort.as_str())?;
    }
    Ok(())
}

fn write_tool_options(
    body: &mut BodyWriter<'_>,
    options: &ChatClientRunOptions,
    rules: &Rules,
    is_history_only: bool,
) -> Result<()> {
    if is_history_only {
        return body.field("tool_choice", "none");
    }
    if let (Some(parallel), true) = (options.parallel_tool_calls, rules.parallel_tool_calls) {
        body.field("parallel_tool_calls", &parallel)?;
    }
    let Some(choice) = &options.tool_choice else {
        return Ok(());
    };
    if choice.is_forced() && rules.forced_tool_choice == ForcedToolChoice::AsAuto {
        tracing::warn!(
            dialect = &*rules.name,
            "this server refuses a forced tool choice when it thinks: 'auto' is sent instead"
        );
        return body.field("tool_choice", "auto");
    }
    match choice {
        ToolChoice::None => body.field("tool_choice", "none"),
        ToolChoice::Required if rules.forced_tool_choice == ForcedToolChoice::AnyWord => {
            body.field("tool_choice", "any")
        }
        ToolChoice::Required => body.field("tool_choice", "required"),
        ToolChoice::Named(name) => {
            #[derive(Serialize)]
            struct Named<'a> {
                r#type: &'static str,
                function: Function<'a>,
            }
            #[derive(Serialize)]
            struct Function<'a> {
                name: &'a str,
            }
            let name = &tool_name(name);
            let r#type = "function";
            let function = Function { name };
            body.field("tool_choice", &Named { r#type, function })
        }
        _ => body.field("tool_choice", "auto"),
    }
}

fn write_response_format(
    body: &mut BodyWriter<'_>,
    format: &ResponseFormat,
    rules: &Rules,
) -> Result<()> {
    let json_object = |text: &mut Vec<u8>| text.extend_from_slice(br#"{"type":"json_object"}"#);
    match (format, rules.response_format) {
        (ResponseFormat::JsonSchema(format), SchemaSupport::JsonSchema) => {
            let schema = schema_for_answer(format, rules.schema);
            let text = json_schema(format, &schema)?;
            body.raw_field("response_format", |body| {
                body.extend_from_slice(text.as_bytes());
            });
        }
        (
            ResponseFormat::JsonSchema(_) | ResponseFormat::JsonObject,
            SchemaSupport::JsonSchema | SchemaSupport::JsonObject,
        ) => {
            body.raw_field("response_format", json_object);
        }
        _ => {}
    }
    Ok(())
}

fn json_schema(format: &JsonSchemaFormat, schema: &str) -> Result<String> {
    let text = |text: &str| serde_json::to_string(text).map_err(unwritable);
    let name = text(&tool_name(&format.name))?;
    let mut json = format!(r#"{{"type":"json_schema","json_schema":{{"name":{name}"#);
    if let Some(description) = &format.description {
        json.push_str(r#","description":"#);
        json.push_str(&text(description)?);
    }
    json.push_str(r#","schema":"#);
    json.push_str(schema);
    if let Some(strict) = format.strict {
        json.push_str(if strict {
            r#","strict":true"#
        } else {
            r#","strict":false"#
        });
    }
    json.push_str("}}");
    Ok(json)
}

/// What the instructions must say where the wire cannot.
fn answer_instructions(
    format: Option<&ResponseFormat>,
    messages: &[ChatMessage],
    rules: &Rules,
) -> Option<String> {
    match (format?, rules.response_format) {
        (
            ResponseFormat::JsonSchema(format),
            SchemaSupport::JsonObject | SchemaSupport::Instructions,
        ) => Some(format!(
            "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
            format.schema.get()
        )),
        // OpenAI, DeepSeek and Qwen refuse the type json_object if no message speaks of JSON.
        (ResponseFormat::JsonObject, support)
            if support == SchemaSupport::Instructions || !speak_of_json(messages) =>
        {
            Some("Answer with one JSON object and nothing else.".to_owned())
        }
        _ => None,
    }
}

pub(crate) fn speak_of_json(messages: &[ChatMessage]) -> bool {
    let speaks = |content: &Content| {
        content
            .as_text()
            .is_some_and(|text| text.to_ascii_lowercase().contains("json"))
    };
    messages.iter().flat_map(ChatMessage::contents).any(speaks)
}

fn unwritable(source: serde_json::Error) -> Error {
    Error::misuse("the request cannot be written as JSON").with_source(source)
}

#[cfg(test)]
mod tests;
