//! The fast reading of a piece: borrowed, one pass, no value built. What is out of the ordinary is read
//! loosely (`event.rs`).

use std::borrow::Cow;
use std::ops::Range;

use raf_core::Result;
use raf_wire::{JsonScanner, Outline};

use super::item::{ItemKind, Key, ThoughtKind};
use super::reply::ResponsesReply;

/// A piece of text, reasoning or arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delta<'a> {
    kind: Option<Kind>,
    index: Option<u64>,
    part: Option<u64>,
    item_id: Cow<'a, str>,
    delta: Cow<'a, str>,
    pub(super) sequence: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Arguments,
    Input,
    Summary,
    Thought,
}

/// What the events of a reply have in common, up to their piece.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    before: Outline,
    /// What is between, in the order in which it stands there.
    holes: Vec<Hole>,
    kind: Option<Kind>,
    part: Option<u64>,
}

/// What an event does not have in common with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Sequence,
    ItemId,
    Index,
    Piece,
}

impl<'a> Delta<'a> {
    /// Reads an event, if it is a piece in its plain form.
    pub(super) fn parse(line: &'a str, surroundings: &mut Surroundings) -> Option<Self> {
        if let Some(delta) = Self::parse_within(line, surroundings) {
            return Some(delta);
        }
        let mut holes = Vec::with_capacity(4);
        let delta = Self::parse_whole(line, &mut holes)?;
        surroundings.holes.clear();
        surroundings.before.forget();
        // All that it tells must stand before its piece.
        if let Some((Hole::Piece, _)) = holes.last() {
            surroundings
                .holes
                .extend(holes.iter().map(|(hole, _)| *hole));
            let places = holes.into_iter().map(|(_, place)| place);
            surroundings.before.learn(line, places);
        }
        surroundings.kind = delta.kind;
        surroundings.part = delta.part;
        Some(delta)
    }

    /// Reads what an event has that others have not.
    fn parse_within(line: &'a str, surroundings: &Surroundings) -> Option<Self> {
        let mut delta = Self {
            kind: surroundings.kind,
            part: surroundings.part,
            ..Self::default()
        };
        let mut scanner = surroundings.before.follow(line, |number, scanner| {
            match surroundings.holes.get(number)? {
                Hole::Sequence => delta.sequence = Some(scanner.count()?),
                Hole::ItemId => delta.item_id = scanner.string()?,
                Hole::Index => delta.index = Some(scanner.count()?),
                Hole::Piece => delta.delta = scanner.string()?,
            }
            Some(())
        })?;
        scanner.rest_of_object(|scanner, name| match name {
            "type" | "item_id" | "delta" | "output_index" | "content_index" | "summary_index"
            | "sequence_number" => None,
            "response" | "error" | "item" | "part" => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        scanner.is_at_end().then_some(delta)
    }

    /// Reads all of an event; says where it has what others have not. Its last place is that of the piece
    /// only if nothing that is read stands behind it.
    fn parse_whole(line: &'a str, holes: &mut Vec<(Hole, Range<usize>)>) -> Option<Self> {
        let mut delta = Self::default();
        let mut has_delta = false;
        let mut scanner = JsonScanner::new(line);
        scanner.object(|scanner, name| {
            let start = scanner.place();
            let hole = match name {
                "type" if delta.kind.is_none() => {
                    delta.kind = Some(Kind::of(&scanner.string()?)?);
                    None
                }
                "type" => return None,
                "item_id" => {
                    text(scanner, &mut delta.item_id)?;
                    Some(Hole::ItemId)
                }
                "delta" => {
                    has_delta = true;
                    text(scanner, &mut delta.delta)?;
                    Some(Hole::Piece)
                }
                "output_index" => {
                    number(scanner, &mut delta.index)?;
                    Some(Hole::Index)
                }
                "sequence_number" => {
                    number(scanner, &mut delta.sequence)?;
                    Some(Hole::Sequence)
                }
                "content_index" | "summary_index" => {
                    number(scanner, &mut delta.part)?;
                    None
                }
                "response" | "error" | "item" | "part" => return scanner.nothing(),
                _ => return scanner.skip(),
            };
            match hole {
                // Which of two counts, the loose reading knows.
                Some(hole) if holes.iter().any(|(of, _)| *of == hole) => return None,
                Some(hole) => holes.push((hole, start..scanner.place())),
                // Told without a place of its own, so that nothing is learned of it behind the piece.
                None => holes.retain(|(hole, _)| *hole != Hole::Piece),
            }
            Some(())
        })?;
        (has_delta && delta.kind.is_some() && scanner.is_at_end()).then_some(delta)
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(super) fn apply(self, reply: &mut ResponsesReply) -> Result<()> {
        let key = Key {
            index: self.index,
            id: &self.item_id,
        };
        let part = self.part.unwrap_or(0);
        match self.kind {
            Some(Kind::Text) => reply.text_piece(key, part, &self.delta),
            Some(Kind::Arguments) => reply.argument_piece(ItemKind::Function, key, self.delta)?,
            Some(Kind::Input) => reply.argument_piece(ItemKind::Custom, key, self.delta)?,
            Some(Kind::Summary) => {
                reply.thought_piece(key, ThoughtKind::Summary, part, &self.delta);
            }
            Some(Kind::Thought) => reply.thought_piece(key, ThoughtKind::Text, part, &self.delta),
            None => {}
        }
        reply.sequence(self.sequence);
        Ok(())
    }
}

impl Kind {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "response.output_text.delta" => Self::Text,
            "response.function_call_arguments.delta" => Self::Arguments,
            "response.custom_tool_call_input.delta" => Self::Input,
            "response.reasoning_summary_text.delta" => Self::Summary,
            "response.reasoning_text.delta" => Self::Thought,
            _ => return None,
        })
    }
}

pub(super) fn text<'a>(scanner: &mut JsonScanner<'a>, into: &mut Cow<'a, str>) -> Option<()> {
    if into.is_empty() {
        *into = scanner.string()?;
        return Some(());
    }
    None
}

pub(super) fn number(scanner: &mut JsonScanner<'_>, into: &mut Option<u64>) -> Option<()> {
    if into.is_none() {
        *into = Some(scanner.count()?);
        return Some(());
    }
    None
}
