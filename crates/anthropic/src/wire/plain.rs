//! The quick reading of an event that is no delta: in place, no value built. It takes nothing out of the
//! ordinary, which then is read loosely (`loose.rs`).

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::JsonScanner;

use crate::blocks::kind;
use crate::response::{END_MEMBERS, Reply};
use crate::wire::delta::once;
use crate::wire::usage::Report;

/// An event in its plain form: what it says, whatever its kind has of it.
#[derive(Debug)]
pub(crate) struct PlainEvent<'a> {
    kind: Kind,
    index: Option<u64>,
    block: Option<kind::Kind>,
    message: Option<Begun<'a>>,
    reason: Option<Cow<'a, str>>,
    usage: Option<Report<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    MessageStart,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStop,
    Ping,
}

/// What a message says of itself when it begins.
#[derive(Debug, Default)]
struct Begun<'a> {
    id: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    usage: Option<Report<'a>>,
}

impl<'a> PlainEvent<'a> {
    /// The event that a line is, if it is one in its plain form.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let mut scanner = JsonScanner::new(line);
        let (mut kind, mut index, mut block) = (None, None, None);
        let (mut message, mut reason, mut usage) = (None, None, None);
        scanner.object(|scanner, name| match name {
            "type" => once(&mut kind, Kind::scan(scanner)?),
            "index" => once(&mut index, scanner.count()?),
            "content_block" => once(&mut block, kind::scan(scanner)?),
            "message" => once(&mut message, Begun::scan(scanner)?),
            "delta" => once(&mut reason, end_reason(scanner)?),
            "usage" => once(&mut usage, Report::scan(scanner)?),
            "error" | "context_management" | "amazon-bedrock-invocationMetrics" => {
                scanner.nothing()
            }
            _ => scanner.skip(),
        })?;
        let kind = scanner.is_at_end().then_some(kind)??;
        Some(Self {
            kind,
            index,
            block,
            message,
            reason,
            usage,
        })
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed, or two replies that are mixed up.
    pub(crate) fn apply(self, reply: &mut Reply) -> Result<()> {
        match self.kind {
            Kind::MessageStart => {
                if let Some(Begun { id, model, usage }) = &self.message {
                    let id = id.as_deref().unwrap_or_default();
                    let model = model.as_deref().unwrap_or_default();
                    reply.message_begins(id, model, usage.as_ref())?;
                }
            }
            Kind::BlockStart => {
                if let Some(block) = self.block {
                    reply.block_start(self.index, block)?;
                }
            }
            Kind::BlockStop => reply.block_stop(self.index)?,
            Kind::MessageDelta => {
                reply.stop_reason(self.reason.as_deref().unwrap_or_default());
                reply.counts(self.usage.as_ref());
            }
            Kind::MessageStop => {
                reply.counts(self.usage.as_ref());
                reply.message_stop();
            }
            Kind::Ping => {}
        }
        Ok(())
    }
}

impl Kind {
    fn scan(scanner: &mut JsonScanner<'_>) -> Option<Self> {
        Some(match &*scanner.string()? {
            "message_start" => Self::MessageStart,
            "content_block_start" => Self::BlockStart,
            "content_block_stop" => Self::BlockStop,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::MessageStop,
            "ping" => Self::Ping,
            _ => return None,
        })
    }
}

impl<'a> Begun<'a> {
    /// A message that says nothing yet.
    fn scan(scanner: &mut JsonScanner<'a>) -> Option<Self> {
        let mut begun = Self::default();
        scanner.object(|scanner, name| match name {
            "id" => once(&mut begun.id, scanner.string()?),
            "model" => once(&mut begun.model, scanner.string()?),
            "usage" => once(&mut begun.usage, Report::scan(scanner)?),
            "content" | "stop_reason" => scanner.nothing(),
            name if END_MEMBERS.contains(&name) => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        Some(begun)
    }
}

/// The reason of an end that says nothing else; empty where it is null.
fn end_reason<'a>(scanner: &mut JsonScanner<'a>) -> Option<Cow<'a, str>> {
    let mut reason = None;
    scanner.object(|scanner, name| match name {
        "stop_reason" if scanner.null() => once(&mut reason, Cow::Borrowed("")),
        "stop_reason" => once(&mut reason, scanner.string()?),
        name if END_MEMBERS.contains(&name) => scanner.nothing(),
        _ => scanner.skip(),
    })?;
    Some(reason.unwrap_or_default())
}
