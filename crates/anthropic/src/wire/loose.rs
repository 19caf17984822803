//! The loose reading of an event or body: every form that a server has been seen to send.

use raf_core::Result;
use raf_wire::{Json, in_band, read_error};

use crate::blocks::kind;
use crate::response::Reply;
use crate::wire::usage::Report;

/// The types of events. What is of none of them is nothing, since new ones may come at any time.
const EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
];

/// Whether a line by itself is an event.
pub(crate) fn is_event(line: &Json) -> bool {
    let kind = line.get("type").and_then(Json::as_str);
    kind.is_some_and(|kind| EVENTS.contains(&kind))
        || kind == Some("error")
        || line.filled("error").is_some()
}

/// Whether a body that begins with this line is a stream of such lines, and no whole message.
pub(crate) fn begins_stream(line: &Json) -> bool {
    let kind = line.get("type").and_then(Json::as_str);
    kind.is_some_and(|kind| EVENTS.contains(&kind))
}

/// Tells the reply what an event or a whole body says. Its kind is its `type`, else the event's name.
///
/// # Errors
/// The error that it holds.
pub(crate) fn apply(name: &str, frame: &Json, reply: &mut Reply) -> Result<()> {
    let own = frame.get("type").and_then(Json::as_str).unwrap_or("");
    let kind = if own.is_empty() { name } else { own };
    if kind == "error" || frame.filled("error").is_some() {
        return Err(reply.error_of(&read_error(frame)));
    }
    let index = frame.get("index").and_then(Json::as_count);
    match kind {
        "message_start" => match frame.present("message") {
            Some(message) => reply.message_start(message),
            None => Ok(()),
        },
        "content_block_start" => match frame.present("content_block") {
            Some(block) => reply.block_start(index, kind::of(block)),
            None => Ok(()),
        },
        "content_block_delta" => match frame.present("delta") {
            Some(delta) => apply_delta(index, delta, reply),
            None => Ok(()),
        },
        "content_block_stop" => reply.block_stop(index),
        "message_delta" => {
            reply.message_delta(frame);
            Ok(())
        }
        "message_stop" => {
            let metrics = frame.get("amazon-bedrock-invocationMetrics");
            reply.counts(metrics.map(Report::of).as_ref());
            reply.counts(frame.get("usage").map(Report::of).as_ref());
            reply.message_stop();
            Ok(())
        }
        _ if kind == "message" || frame.get("content").is_some_and(|of| !of.is_object()) => {
            reply.whole_message(frame)
        }
        "" => match in_band(frame) {
            Some(found) => Err(reply.error_of(&found)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A delta by its type, or by its member where it has none. Those that are not known are nothing.
fn apply_delta(index: Option<u64>, delta: &Json, reply: &mut Reply) -> Result<()> {
    let text = |name: &str| delta.get(name).and_then(Json::as_str).unwrap_or("");
    let kind = match text("type") {
        "" => by_member(delta),
        kind => kind,
    };
    match kind {
        "text_delta" => return reply.text(index, text("text")),
        "thinking_delta" => return reply.thinking(index, text("thinking")),
        "signature_delta" => reply.signature(index, text("signature")),
        "compaction_delta" => reply.summary(index, text("content")),
        "citations_delta" => {
            if let Some(citation) = delta.filled("citation") {
                reply.citation(index, citation);
            }
        }
        "input_json_delta" => {
            return match delta.present("partial_json") {
                Some(Json::String(piece)) => reply.arguments(index, piece.into()),
                Some(value) => reply.arguments(index, value.to_text().into()),
                None => Ok(()),
            };
        }
        _ => {}
    }
    Ok(())
}

fn by_member(delta: &Json) -> &'static str {
    const MEMBERS: &[(&str, &str)] = &[
        ("text", "text_delta"),
        ("partial_json", "input_json_delta"),
        ("thinking", "thinking_delta"),
        ("signature", "signature_delta"),
        ("citation", "citations_delta"),
    ];
    MEMBERS
        .iter()
        .find(|(member, _)| delta.present(member).is_some())
        .map_or("", |(_, kind)| kind)
}
