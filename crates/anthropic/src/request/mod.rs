//! From messages and options to the body of a request, by the rules of a dialect.
//!
//! The body is put together from pieces of JSON text: each message's blocks are rendered once per
//! dialect and model and kept with the message, the tools once per set of tools. What depends on the
//! place of a message (merging, breakpoints of the cache, a trimmed end) is done to the pieces.

mod arrange;
mod cache;
mod media;
mod message;
mod render_key;
mod settings;
mod tools;

use bytes::Bytes;
use raf_core::{
    ChatClientRunOptions, ChatMessage, Error, JsonSchemaFormat, ResponseFormat, Result,
    is_valid_history, normalise,
};
use raf_wire::{BodyWriter, Restore, Said, ToolsCache};

use crate::dialect::{Dialect, EndpointForm, SchemaSupport, model_rules};
use crate::options::Conflicts;
use crate::run_options::AnthropicRunOptions;

/// All that a request is made of.
pub(crate) struct Request<'a> {
    pub(crate) messages: &'a [ChatMessage],
    pub(crate) options: &'a ChatClientRunOptions,
    /// What only this provider knows of the run, the client's defaults below it.
    pub(crate) own: &'a AnthropicRunOptions,
    pub(crate) model: &'a str,
    pub(crate) dialect: &'a Dialect,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) betas: &'a [String],
    pub(crate) streaming: bool,
    pub(crate) conflicts: Conflicts,
    /// The last message is a turn that the server paused: it goes back as it came.
    pub(crate) is_continued: bool,
}

/// A request that can be sent.
pub(crate) struct Built {
    pub(crate) body: Bytes,
    /// What the messages said, each as it stands in the body.
    pub(crate) said: Said,
    pub(crate) restore: Restore,
    /// The server has tools of its own, so that it may pause the turn.
    pub(crate) may_pause: bool,
}

/// Writes a request.
///
/// # Errors
/// What is wrong with it by itself: two tools of one name, settings that the API refuses together,
/// media that it has no form for, too many breakpoints.
pub(crate) fn build(request: &Request<'_>, cache: &ToolsCache) -> Result<Built> {
    let rules = &request.dialect.rules;
    let model = model_rules(request.model);
    let normalised;
    let messages = if is_valid_history(request.messages) {
        request.messages
    } else {
        normalised = normalise(request.messages);
        &normalised
    };
    media::check(messages, rules)?;
    let mut arranged = arrange::arrange(
        messages,
        answer_instructions(
            request.options.response_format.as_ref(),
            rules.schema_support,
        ),
        rules,
        request.model,
    );
    let settled = settings::settle(request, &model, arranged.lacks_thinking())?;
    let takes_prefill = rules.takes_prefill(&model) && !settled.thinks;
    if !takes_prefill && !request.is_continued {
        arranged.end_with_user();
    }
    let mut tools = tools::write(request, messages, cache)?;
    cache::mark(&mut arranged, &mut tools.json, messages, request)?;
    // Last, since pieces with breakpoints are written anew. A paused turn goes back as it came.
    if !request.is_continued {
        arranged.trim_end();
    }

    let length = arranged.length() + tools.json.len() + 1024;
    let mut body = BodyWriter::new(length, request.options);
    write_form(&mut body, request)?;
    body.field("max_tokens", &settled.max_tokens)?;
    if !arranged.system.is_empty() {
        body.raw_field("system", |text| arranged.write_system(text));
    }
    body.raw_field("messages", |text| arranged.write_turns(text));
    settled.write(&mut body)?;
    tools.write_to(&mut body, request, settled.thinks)?;
    write_schema(&mut body, request, &settled)?;
    Ok(Built {
        said: Said::from(arranged.into_pieces()),
        body: body.finish()?,
        may_pause: tools.may_pause || has_server_tools(request.options),
        restore: tools.restore,
    })
}

/// Version, model and the wish to stream: where they stand differs by the form of the endpoint.
fn write_form(body: &mut BodyWriter<'_>, request: &Request<'_>) -> Result<()> {
    let rules = &request.dialect.rules;
    let betas = Some(request.betas).filter(|betas| rules.betas && !betas.is_empty());
    match rules.form {
        EndpointForm::Messages => {
            body.field("model", request.model)?;
            body.field("stream", &request.streaming)
        }
        EndpointForm::Vertex => {
            body.field("anthropic_version", "vertex-2023-10-16")?;
            body.field("stream", &request.streaming)
        }
        EndpointForm::Bedrock => {
            body.field("anthropic_version", "bedrock-2023-05-31")?;
            match betas {
                Some(betas) => body.field("anthropic_beta", betas),
                None => Ok(()),
            }
        }
    }
}

/// Whether fields that the caller laid over the body bring tools of the server.
fn has_server_tools(options: &ChatClientRunOptions) -> bool {
    ["tools", "mcp_servers", "container"]
        .iter()
        .any(|name| options.extra_body.contains_key(*name))
}

fn write_schema(
    body: &mut BodyWriter<'_>,
    request: &Request<'_>,
    settled: &settings::Settled,
) -> Result<()> {
    let format = match &request.options.response_format {
        Some(ResponseFormat::JsonSchema(format))
            if request.dialect.rules.schema_support == SchemaSupport::OutputConfig =>
        {
            Some(format)
        }
        _ => None,
    };
    let effort = settled
        .effort
        .as_deref()
        .filter(|_| request.dialect.rules.output_config);
    if format.is_none() && effort.is_none() {
        return Ok(());
    }
    let text = output_config(format, effort)?;
    body.raw_field("output_config", |body| {
        body.extend_from_slice(text.as_bytes());
    });
    Ok(())
}

fn output_config(format: Option<&JsonSchemaFormat>, effort: Option<&str>) -> Result<String> {
    let mut members = Vec::new();
    if let Some(effort) = effort {
        let effort = serde_json::to_string(effort)
            .map_err(|source| Error::misuse("the effort is no text").with_source(source))?;
        members.push(format!(r#""effort":{effort}"#));
    }
    if let Some(format) = format {
        let schema = raf_wire::schema_for_answer(format, raf_wire::SchemaForm::Object);
        members.push(format!(
            r#""format":{{"type":"json_schema","schema":{schema}}}"#
        ));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// What the instructions must say where the wire cannot.
fn answer_instructions(format: Option<&ResponseFormat>, support: SchemaSupport) -> Option<String> {
    match (format?, support) {
        (ResponseFormat::JsonSchema(format), SchemaSupport::Instructions) => Some(format!(
            "Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
            format.schema.get()
        )),
        (ResponseFormat::JsonObject, _) => {
            Some("Answer with one JSON object and nothing else.".to_owned())
        }
        _ => None,
    }
}
