//! The fast reading of a delta: borrowed, one pass, no value built. It takes nothing out of the ordinary,
//! which then is read loosely (`loose.rs`).

use std::borrow::Cow;
use std::ops::Range;

use raf_core::Result;
use raf_wire::{JsonScanner, Outline};

use crate::response::Reply;

/// One `content_block_delta` of text, thinking or arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeltaEvent<'a> {
    index: u64,
    kind: Kind,
    piece: Cow<'a, str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Arguments,
}

/// What the deltas of a reply have in common.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Up to their piece, their index apart.
    before: Outline,
    behind: String,
    kind: Option<Kind>,
}

impl<'a> DeltaEvent<'a> {
    /// The delta that a line is, if it is one of those.
    #[inline]
    pub(crate) fn parse(line: &'a str, surroundings: &mut Surroundings) -> Option<Self> {
        if let Some(delta) = Self::parse_within(line, surroundings) {
            return Some(delta);
        }
        let (delta, index, piece) = Self::parse_whole(line)?;
        let Surroundings {
            before,
            behind,
            kind,
        } = surroundings;
        *kind = Some(delta.kind);
        behind.clear();
        behind.push_str(line.get(piece.end..)?);
        before.learn(line, [index, piece]);
        Some(delta)
    }

    /// Reads what a line has that others have not.
    fn parse_within(line: &'a str, surroundings: &Surroundings) -> Option<Self> {
        let (mut index, mut piece) = (None, None);
        let scanner = surroundings.before.follow(line, |number, scanner| {
            if number == 0 {
                index = Some(scanner.count()?);
            } else {
                piece = Some(scanner.string()?);
            }
            Some(())
        })?;
        if line.get(scanner.place()..) != Some(surroundings.behind.as_str()) {
            return None;
        }
        Some(Self {
            index: index?,
            kind: surroundings.kind?,
            piece: piece?,
        })
    }

    /// Reads all of a line; says where its index and its piece are.
    fn parse_whole(line: &'a str) -> Option<(Self, Range<usize>, Range<usize>)> {
        let mut scanner = JsonScanner::new(line);
        let mut is_delta = false;
        let mut index = None;
        let mut delta = None;
        scanner.object(|scanner, name| match name {
            "type" => {
                is_delta = !is_delta && scanner.string()? == "content_block_delta";
                is_delta.then_some(())
            }
            "index" => {
                let start = scanner.place();
                let number = scanner.count()?;
                once(&mut index, (number, start..scanner.place()))
            }
            "delta" => once(&mut delta, read(scanner)?),
            "error" => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        let Found { kind, piece, place } = delta?;
        let (index, index_place) = index?;
        (is_delta && scanner.is_at_end()).then_some((
            Self { index, kind, piece },
            index_place,
            place,
        ))
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed.
    #[inline]
    pub(crate) fn apply(self, reply: &mut Reply) -> Result<()> {
        let index = Some(self.index);
        match self.kind {
            Kind::Text => reply.text(index, &self.piece),
            Kind::Thinking => reply.thinking(index, &self.piece),
            Kind::Arguments => reply.arguments(index, self.piece),
        }
    }
}

/// A member that comes twice is out of the ordinary.
pub(super) fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

/// The piece of a delta, and where it is.
struct Found<'a> {
    kind: Kind,
    piece: Cow<'a, str>,
    place: Range<usize>,
}

fn read<'a>(scanner: &mut JsonScanner<'a>) -> Option<Found<'a>> {
    let mut of_type = None;
    let mut found = None;
    scanner.object(|scanner, name| {
        let kind = match name {
            "type" => {
                let kind = match &*scanner.string()? {
                    "text_delta" => Kind::Text,
                    "thinking_delta" => Kind::Thinking,
                    "input_json_delta" => Kind::Arguments,
                    _ => return None,
                };
                return once(&mut of_type, kind);
            }
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "partial_json" => Kind::Arguments,
            _ => return scanner.skip(),
        };
        let start = scanner.place();
        let piece = scanner.string()?;
        let place = start..scanner.place();
        once(&mut found, Found { kind, piece, place })
    })?;
    found.filter(|found| of_type == Some(found.kind))
}

#[cfg(test)]
mod tests {
    use super::{DeltaEvent, Surroundings};

    #[test]
    fn plain_deltas_are_read_and_all_else_is_left_to_the_loose_reading() {
        let plain = |delta: &str| {
            let line = format!(r#"{{"type":"content_block_delta","index":1,"delta":{delta}}}"#);
            let event = DeltaEvent::parse(&line, &mut Surroundings::default());
            event.map(|event| event.piece.into_owned())
        };
        for (delta, piece) in [
            (r#"{"type":"text_delta","text":"a\n\u00e4"}"#, Some("a\nä")),
            (r#"{"thinking":"Hm","type":"thinking_delta"}"#, Some("Hm")),
            (
                r#"{"type":"input_json_delta","partial_json":"{\"a\""}"#,
                Some("{\"a\""),
            ),
            (
                r#"{"type":"text_delta","text":"a","new":{"b":[1]}}"#,
                Some("a"),
            ),
            (r#"{"type":"text_delta"}"#, None),
            (r#"{"type":"text_delta","partial_json":"a"}"#, None),
            (r#"{"type":"text_delta","text":null}"#, None),
            (r#"{"type":"text_delta","text":"a","text":"b"}"#, None),
            (r#"{"type":"signature_delta","signature":"a"}"#, None),
            (r#"{"text":"a"}"#, None),
        ] {
            assert_eq!(plain(delta).as_deref(), piece, "{delta}");
        }
        for line in [
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"error":{"a":1},"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}"#,
        ] {
            let mut surroundings = Surroundings::default();
            assert_eq!(DeltaEvent::parse(line, &mut surroundings), None, "{line}");
        }
    }
}
