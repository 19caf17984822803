//! The quick reading of an event that is no piece: the members that the reply has no use for are passed
//! over, and an item that came before is not read a second time. What is out of the ordinary is read as
//! a whole.

use std::sync::Arc;

use raf_wire::{Json, JsonScanner};

use super::event::Kept;
use super::item::Items;

/// Whether events of the kind are read so: those of which nothing counts that is passed over here.
fn is_plain(kind: &str) -> bool {
    matches!(
        kind,
        "response.created"
            | "response.in_progress"
            | "response.output_item.added"
            | "response.function_call_arguments.done"
            | "response.output_item.done"
            | "response.output_text.done"
            | "response.content_part.done"
            | "response.completed"
            | "response.incomplete"
    )
}

/// An event without what is not read of it.
#[derive(Debug)]
pub(super) struct PlainEvent<'a> {
    pub(super) value: Json,
    pub(super) kept: Kept<'a>,
}

impl<'a> PlainEvent<'a> {
    /// Reads an event, if it is in its plain form. `known` are the items so far.
    pub(super) fn parse(line: &'a str, known: &Items) -> Option<Self> {
        let mut members = Vec::new();
        let mut kept = Kept::default();
        let mut scanner = JsonScanner::new(line);
        scanner.object(|scanner, name| {
            let value = match name {
                "type" => {
                    let kind = scanner.string()?;
                    is_plain(&kind).then_some(())?;
                    Json::String(kind.into_owned())
                }
                "item" if kept.item.is_none() => {
                    let start = scanner.place();
                    let item = scanner.value().filter(Json::is_object)?;
                    let text = line.get(start..scanner.place())?.trim_start();
                    kept.item = Some((Arc::new(item), text));
                    return Some(());
                }
                "response" if kept.output.is_none() => response(scanner, known, &mut kept)?,
                "item" | "response" => return None,
                "error" => scanner.nothing().map(|()| Json::Null)?,
                "logprobs" | "obfuscation" => return scanner.skip(),
                _ => scanner.value()?,
            };
            members.push((name.to_owned(), value));
            Some(())
        })?;
        let value = Json::Object(members);
        (scanner.is_at_end() && value.get("type").is_some()).then_some(Self { value, kept })
    }
}

/// Reads what counts of a response; its output is kept by itself.
fn response(scanner: &mut JsonScanner<'_>, known: &Items, kept: &mut Kept<'_>) -> Option<Json> {
    let mut members = Vec::new();
    scanner.object(|scanner, name| {
        let value = match name {
            "output" if kept.output.is_none() => {
                let output = kept.output.insert(Vec::new());
                return scanner.array(|scanner| {
                    output.push(item(scanner, known)?);
                    Some(())
                });
            }
            "output" => return None,
            "error" => scanner.nothing().map(|()| Json::Null)?,
            "id" | "model" | "status" | "usage" | "conversation" | "incomplete_details"
            | "output_text" => scanner.value()?,
            // What it repeats of its request, and what it says to nobody.
            _ => return scanner.skip(),
        };
        members.push((name.to_owned(), value));
        Some(())
    })?;
    Some(Json::Object(members))
}

/// An item of the output: the one that was done with the very same text, or a new one.
fn item(scanner: &mut JsonScanner<'_>, known: &Items) -> Option<Arc<Json>> {
    let mut unread = scanner.clone();
    let text = scanner.raw()?;
    let known = known.0.iter().find(|of| of.whole_text == text);
    match known.and_then(|of| of.whole.clone()) {
        Some(whole) => Some(whole),
        None => unread.value().map(Arc::new),
    }
}
