//! The fast reading of a piece: borrowed, one pass, no value built. What is out of the ordinary is read
//! loosely (`event.rs`).

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::JsonScanner;

use super::item::{ItemKind, Key, ThoughtKind};
use super::reply::ResponsesReply;

/// A piece of text, reasoning or arguments.
#[derive(Default)]
pub(super) struct Delta<'a> {
    kind: Cow<'a, str>,
    index: Option<u64>,
    part: Option<u64>,
    item_id: Cow<'a, str>,
    delta: Cow<'a, str>,
    pub(super) sequence: Option<u64>,
}

impl<'a> Delta<'a> {
    /// Reads an event, if it is a piece in its plain form.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let mut delta = Self::default();
        let mut scanner = JsonScanner::new(line);
        let mut has_delta = false;
        scanner.object(|scanner, name| match name {
            "type" => text(scanner, &mut delta.kind),
            "item_id" => text(scanner, &mut delta.item_id),
            "delta" => {
                has_delta = true;
                text(scanner, &mut delta.delta)
            }
            "output_index" => number(scanner, &mut delta.index),
            "content_index" | "summary_index" => number(scanner, &mut delta.part),
            "sequence_number" => number(scanner, &mut delta.sequence),
            "response" | "error" | "item" | "part" => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        (has_delta && scanner.is_at_end()).then_some(delta)
    }

    /// Tells the reply; `false` if the kind is none of a piece.
    pub(super) fn apply(&self, reply: &mut ResponsesReply) -> Result<bool> {
        let key = Key {
            index: self.index,
            id: &self.item_id,
        };
        let part = self.part.unwrap_or(0);
        match &*self.kind {
            "response.output_text.delta" => reply.text_piece(key, part, &self.delta),
            "response.function_call_arguments.delta" => {
                reply.argument_piece(ItemKind::Function, key, &self.delta)?;
            }
            "response.custom_tool_call_input.delta" => {
                reply.argument_piece(ItemKind::Custom, key, &self.delta)?;
            }
            "response.reasoning_summary_text.delta" => {
                reply.thought_piece(key, ThoughtKind::Summary, part, &self.delta);
            }
            "response.reasoning_text.delta" => {
                reply.thought_piece(key, ThoughtKind::Text, part, &self.delta);
            }
            _ => return Ok(false),
        }
        reply.sequence(self.sequence);
        Ok(true)
    }
}

fn text<'a>(scanner: &mut JsonScanner<'a>, into: &mut Cow<'a, str>) -> Option<()> {
    if into.is_empty() {
        *into = scanner.string()?;
        return Some(());
    }
    None
}

fn number(scanner: &mut JsonScanner<'_>, into: &mut Option<u64>) -> Option<()> {
    if into.is_none() {
        *into = Some(scanner.count()?);
        return Some(());
    }
    None
}
