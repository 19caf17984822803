//! The quick reading of an event that is no piece: in place, only what the reply has a use for. What is
//! out of the ordinary is read as a whole (`event.rs`).

use std::borrow::Cow;

use raf_core::{Result, Usage};
use raf_wire::{JsonScanner, WireError};

use super::came::{Came, Final};
use super::delta::{number, text};
use super::ending::Ending;
use super::event::apply_part;
use super::item::{ItemKind, Items, Key};
use super::reply::ResponsesReply;
use crate::wire::usage;

/// The kinds that are read so: those of which nothing counts that is passed over here.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Begins,
    ItemAdded,
    ArgumentsDone,
    ItemDone,
    TextDone,
    PartAdded,
    PartDone,
    /// The response ends, by this word.
    Ends(&'static str),
}

/// An event in its plain form: what it says, whatever its kind has of it.
#[derive(Debug, Default)]
pub(super) struct PlainEvent<'a> {
    kind: Option<Kind>,
    pub(super) sequence: Option<u64>,
    index: Option<u64>,
    item_id: Cow<'a, str>,
    part_number: [Option<u64>; 2],
    text: Cow<'a, str>,
    arguments: Cow<'a, str>,
    name: Cow<'a, str>,
    item: Option<Came<'a>>,
    part: Option<Part<'a>>,
    response: Option<Response<'a>>,
}

/// A content part.
#[derive(Debug, Default)]
struct Part<'a> {
    kind: Cow<'a, str>,
    text: Cow<'a, str>,
    refusal: Cow<'a, str>,
}

/// What counts of a response that has no error.
#[derive(Debug, Default)]
struct Response<'a> {
    id: Cow<'a, str>,
    model: Cow<'a, str>,
    status: Cow<'a, str>,
    usage: Option<Usage>,
    output: Option<Vec<Final<'a>>>,
    /// Its text; empty where it says nothing new.
    source: &'a str,
}

/// What came before of a reply.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) items: &'a Items,
    /// The text of the response as it was when it began last: it is told twice.
    pub(super) begun: &'a str,
}

impl Known<'_> {
    fn says_again(&self, scanner: &mut JsonScanner<'_>) -> bool {
        !self.begun.is_empty() && scanner.take_text(self.begun)
    }
}

impl<'a> PlainEvent<'a> {
    /// Reads an event, if it is in its plain form.
    pub(super) fn parse(line: &'a str, known: &Known<'_>) -> Option<Self> {
        let mut event = Self::default();
        let mut scanner = JsonScanner::new(line);
        scanner.object(|scanner, name| match name {
            "type" if event.kind.is_none() => {
                event.kind = Some(Kind::of(&scanner.string()?)?);
                Some(())
            }
            "sequence_number" => number(scanner, &mut event.sequence),
            "output_index" => number(scanner, &mut event.index),
            "item_id" => text(scanner, &mut event.item_id),
            "content_index" => number(scanner, &mut event.part_number[0]),
            "summary_index" => number(scanner, &mut event.part_number[1]),
            "text" => text(scanner, &mut event.text),
            "arguments" => text(scanner, &mut event.arguments),
            "name" => text(scanner, &mut event.name),
            "item" => once(&mut event.item, Came::scan(scanner)?),
            "part" => once(&mut event.part, Part::scan(scanner)?),
            "response" => {
                let begins = matches!(event.kind, Some(Kind::Begins));
                let response = if begins && known.says_again(scanner) {
                    Response::default()
                } else {
                    Response::scan(scanner, known.items)?
                };
                once(&mut event.response, response)
            }
            "error" => scanner.nothing(),
            "type" => None,
            _ => scanner.skip(),
        })?;
        (scanner.is_at_end() && event.is_whole()).then_some(event)
    }

    /// Whether it has what its kind is about. What stands for it elsewhere, the loose reading knows.
    fn is_whole(&self) -> bool {
        match self.kind {
            Some(Kind::Begins | Kind::Ends(_)) => self.response.is_some(),
            Some(Kind::ItemAdded | Kind::ItemDone) => self.item.is_some(),
            Some(Kind::PartDone) => self.part.is_some(),
            Some(_) => true,
            None => false,
        }
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(super) fn apply(self, reply: &mut ResponsesReply) -> Result<()> {
        reply.sequence(self.sequence);
        let index = self.index;
        let key = Key {
            index,
            id: &self.item_id,
        };
        let [of_content, of_summary] = self.part_number;
        let part_number = of_content.or(of_summary).unwrap_or(0);
        match self.kind {
            Some(Kind::Begins) => {
                if let Some(mut response) = self.response {
                    response.identify(reply);
                    reply.begins_as(response.source);
                }
            }
            Some(Kind::ItemAdded) => {
                if let Some(item) = &self.item {
                    reply.item_announced(item, index)?;
                }
            }
            Some(Kind::ItemDone) => {
                if let Some(item) = &self.item {
                    reply.item_done(item, index)?;
                }
            }
            Some(Kind::ArgumentsDone) => {
                let kind = ItemKind::Function;
                reply.arguments_done(kind, key, self.arguments, &self.name);
            }
            Some(Kind::TextDone) => reply.text_whole(key, part_number, &self.text),
            Some(Kind::PartDone) => {
                if let Some(Part {
                    kind,
                    text,
                    refusal,
                }) = &self.part
                {
                    apply_part(kind, text, refusal, key, part_number, reply);
                }
            }
            Some(Kind::Ends(word)) => {
                if let Some(response) = self.response {
                    return response.ends(word, reply);
                }
            }
            Some(Kind::PartAdded) | None => {}
        }
        Ok(())
    }
}

impl Kind {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "response.created" | "response.in_progress" => Self::Begins,
            "response.output_item.added" => Self::ItemAdded,
            "response.function_call_arguments.done" => Self::ArgumentsDone,
            "response.output_item.done" => Self::ItemDone,
            "response.output_text.done" => Self::TextDone,
            "response.content_part.added" => Self::PartAdded,
            "response.content_part.done" => Self::PartDone,
            "response.completed" => Self::Ends("completed"),
            "response.incomplete" => Self::Ends("incomplete"),
            _ => return None,
        })
    }
}

impl<'a> Part<'a> {
    fn scan(scanner: &mut JsonScanner<'a>) -> Option<Self> {
        let mut part = Self::default();
        scanner.object(|scanner, name| match name {
            "type" => text(scanner, &mut part.kind),
            "text" => text(scanner, &mut part.text),
            "refusal" => text(scanner, &mut part.refusal),
            _ => scanner.skip(),
        })?;
        Some(part)
    }
}

impl<'a> Response<'a> {
    /// Reads what counts: not what it repeats of its request, and what it says to nobody.
    fn scan(scanner: &mut JsonScanner<'a>, known: &Items) -> Option<Self> {
        let unread = scanner.clone();
        let mut response = Self::default();
        scanner.object(|scanner, name| match name {
            "id" => text(scanner, &mut response.id),
            "model" => text(scanner, &mut response.model),
            "status" => text(scanner, &mut response.status),
            "usage" if response.usage.is_none() => usage::scan(scanner, &mut response.usage),
            "usage" => None,
            "output" => {
                let mut output = Vec::new();
                scanner.array(|scanner| {
                    output.push(Final::scan(scanner, known)?);
                    Some(())
                })?;
                once(&mut response.output, output)
            }
            "error" | "conversation" | "output_text" => scanner.nothing(),
            // Also an empty one says that the response is not whole.
            "incomplete_details" => scanner.null().then_some(()),
            _ => scanner.skip(),
        })?;
        response.source = scanner.text_since(&unread)?;
        Some(response)
    }

    fn identify(&mut self, reply: &mut ResponsesReply) {
        reply.identify(&self.id, &self.model, None);
        reply.usage_is(self.usage.take());
    }

    fn ends(mut self, word: &str, reply: &mut ResponsesReply) -> Result<()> {
        self.identify(reply);
        reply.confirm_all(self.output.into_iter().flatten())?;
        match Ending::of(word, &self.status, None) {
            Some(ending) => reply.ending = Some(ending),
            None => reply.fails(WireError::default())?,
        }
        Ok(())
    }
}

/// A member that comes twice is out of the ordinary.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}
