//! The fast reading of a delta: borrowed, one pass, no value built. It takes nothing out of the ordinary,
//! which then is read loosely (`loose.rs`).

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::JsonScanner;

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

impl<'a> DeltaEvent<'a> {
    /// The delta that a line is, if it is one of those.
    #[inline]
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let mut scanner = JsonScanner::new(line);
        let mut is_delta = false;
        let mut index = None;
        let mut delta = None;
        scanner.object(|scanner, name| match name {
            "type" => {
                is_delta = !is_delta && scanner.string()? == "content_block_delta";
                is_delta.then_some(())
            }
            "index" => once(&mut index, scanner.count()?),
            "delta" => once(&mut delta, read(scanner)?),
            "error" => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        let (kind, piece) = delta?;
        (is_delta && scanner.is_at_end()).then_some(Self {
            index: index?,
            kind,
            piece,
        })
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed.
    #[inline]
    pub(crate) fn apply(&self, reply: &mut Reply) -> Result<()> {
        let index = Some(self.index);
        match self.kind {
            Kind::Text => reply.text(index, &self.piece),
            Kind::Thinking => reply.thinking(index, &self.piece),
            Kind::Arguments => reply.arguments(index, &self.piece),
        }
    }
}

/// A member that comes twice is out of the ordinary.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

fn read<'a>(scanner: &mut JsonScanner<'a>) -> Option<(Kind, Cow<'a, str>)> {
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
        once(&mut found, (kind, scanner.string()?))
    })?;
    found.filter(|(kind, _)| of_type == Some(*kind))
}

#[cfg(test)]
mod tests {
    use super::DeltaEvent;

    #[test]
    fn plain_deltas_are_read_and_all_else_is_left_to_the_loose_reading() {
        let plain = |delta: &str| {
            let line = format!(r#"{{"type":"content_block_delta","index":1,"delta":{delta}}}"#);
            DeltaEvent::parse(&line).map(|event| event.piece.into_owned())
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
            assert_eq!(DeltaEvent::parse(line), None, "{line}");
        }
    }
}
