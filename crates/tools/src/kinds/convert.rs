//! Whole to stream and back: a whole value is a stream of one, a stream is joined by part kind.

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use raf_core::Content;
use serde_json::Value;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::{ITool, ToolArguments};

/// Calls a tool and joins what it streams: the parts of its output.
///
/// Nothing is empty; text pieces that follow one another are joined, other parts keep their order.
/// Arguments are not validated: that is the registry's and the executor's work.
///
/// # Errors
/// The tool's own; an error in the middle of a stream discards the pieces before it.
pub async fn call_whole(
    tool: &dyn ITool,
    context: ToolContext,
    arguments: ToolArguments,
) -> Result<Vec<Content>, ToolError> {
    match tool.call(context, arguments).await? {
        ToolOutput::Stream(pieces) => join(pieces, |_| {}).await,
        output => Ok(whole_parts(output)),
    }
}

/// Calls a tool as a stream: a whole output is a stream of one piece, nothing is a stream of none.
///
/// # Errors
/// As a first and last item: the tool's own. A stream's own errors come where they happen.
pub async fn call_stream(
    tool: &dyn ITool,
    context: ToolContext,
    arguments: ToolArguments,
) -> BoxStream<'static, Result<Content, ToolError>> {
    match tool.call(context, arguments).await {
        Ok(ToolOutput::Stream(pieces)) => pieces,
        Ok(output) => stream::iter(whole_parts(output).into_iter().map(Ok)).boxed(),
        Err(error) => stream::iter([Err(error)]).boxed(),
    }
}

/// The parts of an output that is no stream.
fn whole_parts(output: ToolOutput) -> Vec<Content> {
    match output {
        ToolOutput::Void | ToolOutput::Stream(_) => Vec::new(),
        ToolOutput::Text(text) | ToolOutput::Json(Value::String(text)) => {
            vec![Content::text(text)]
        }
        ToolOutput::Json(value) => vec![Content::text(value.to_string())],
        ToolOutput::Parts(parts) => parts,
    }
}

/// Joins the pieces of a stream; each is shown as it comes.
pub(crate) async fn join(
    mut pieces: BoxStream<'static, Result<Content, ToolError>>,
    mut show: impl FnMut(&Content),
) -> Result<Vec<Content>, ToolError> {
    let mut parts: Vec<Content> = Vec::new();
    while let Some(piece) = pieces.try_next().await? {
        show(&piece);
        match (parts.last_mut(), piece) {
            (Some(Content::Text(last)), Content::Text(text))
                if last.extra.is_empty() && text.extra.is_empty() =>
            {
                last.text.push_str(&text.text);
            }
            (_, piece) => parts.push(piece),
        }
    }
    Ok(parts)
}
