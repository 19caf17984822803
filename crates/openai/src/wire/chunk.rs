//! The fast reading of a frame: borrowed, one pass, no value built. It takes nothing out of the
//! ordinary, which then is read loosely (`loose.rs`): a member that is no text where a text belongs,
//! a member that comes twice, any field that holds more than the plain frame does.

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::{CallPiece, Json, JsonScanner};

use crate::response::Reply;
use crate::wire::usage;

/// One `chat.completion.chunk`: of one choice, or of usage alone.
#[derive(Default)]
pub(crate) struct Chunk<'a> {
    pub(super) id: Text<'a>,
    pub(super) model: Text<'a>,
    has_usage: bool,
    usage: Option<&'a str>,
    choice: Option<Choice<'a>>,
}

#[derive(Default)]
struct Choice<'a> {
    index: Option<u64>,
    content: Text<'a>,
    reasoning_content: Text<'a>,
    reasoning: Text<'a>,
    has_calls: bool,
    /// One nearly always.
    call: Option<CallDelta<'a>>,
    other_calls: Vec<CallDelta<'a>>,
    finish_reason: Text<'a>,
}

#[derive(Default)]
struct CallDelta<'a> {
    index: Option<u64>,
    id: Text<'a>,
    name: Text<'a>,
    arguments: Text<'a>,
}

/// How the frames of a reply begin, up to their delta: with the same bytes, nearly always, so that
/// these are read once and compared then.
#[derive(Debug, Default)]
pub(crate) struct FrameHead(String);

impl<'a> Chunk<'a> {
    /// Reads a frame, unless it is out of the ordinary. What it says must be told before the next
    /// frame is read with the same head.
    pub(crate) fn parse(frame: &'a str, head: &mut FrameHead) -> Option<Self> {
        let head = &mut head.0;
        if !head.is_empty()
            && frame.starts_with(head.as_str())
            && let Some(chunk) = Self::parse_behind_head(frame, head.len())
        {
            return Some(chunk);
        }
        let (chunk, delta_at) = Self::parse_whole(frame)?;
        head.clear();
        if let Some(delta_at) = delta_at {
            head.push_str(frame.get(..delta_at)?);
        }
        Some(chunk)
    }

    /// Reads all of a frame; says where its delta begins, if what stands before it says nothing but
    /// whose frame it is, and what stands behind it says nothing of that.
    fn parse_whole(frame: &'a str) -> Option<(Self, Option<usize>)> {
        let mut chunk = Self::default();
        let mut scanner = JsonScanner::new(frame);
        let mut has_choices = false;
        let mut head = None;
        scanner.object(|scanner, name| match name {
            "id" => {
                head = None;
                chunk.id.read(scanner)
            }
            "model" => {
                head = None;
                chunk.model.read(scanner)
            }
            "choices" => {
                first(&mut has_choices)?;
                let is_first = chunk.usage.is_none();
                scanner.array(|scanner| {
                    // Of several choices one counts: which, the loose reading knows.
                    let choice = &mut chunk.choice;
                    let choice = choice.is_none().then(|| choice.get_or_insert_default())?;
                    choice.read(scanner, &mut head)?;
                    head = head.filter(|_| is_first);
                    Some(())
                })
            }
            other => chunk.read_member(other, scanner),
        })?;
        let says_something = chunk.choice.is_some() || has_choices && chunk.usage.is_some();
        (says_something && scanner.is_at_end()).then_some((chunk, head))
    }

    /// Reads a frame on from its delta.
    fn parse_behind_head(frame: &'a str, delta_at: usize) -> Option<Self> {
        let mut scanner = JsonScanner::at(frame, delta_at);
        let mut chunk = Self::default();
        let choice = chunk.choice.insert(Choice::default());
        choice.read_delta(&mut scanner)?;
        scanner.rest_of_object(|scanner, name| match name {
            "index" | "delta" => None,
            other => choice.read_member(other, scanner),
        })?;
        scanner.end_of_array()?;
        scanner.rest_of_object(|scanner, name| match name {
            "id" | "model" | "choices" => None,
            other => chunk.read_member(other, scanner),
        })?;
        scanner.is_at_end().then_some(chunk)
    }

    fn read_member(&mut self, name: &str, scanner: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "usage" => {
                first(&mut self.has_usage)?;
                self.usage = Some(scanner.raw()?).filter(|usage| *usage != "null");
                Some(())
            }
            "error" | "errors" | "x_groq" | "base_resp" => scanner.nothing(),
            // Either may say that the whole frame is an error.
            "object" | "type" => scanner.raw().filter(|of| *of != r#""error""#).map(drop),
            _ => scanner.skip(),
        }
    }

    /// Tells the reply what the frame says.
    pub(crate) fn apply(&self, reply: &mut Reply) -> Result<()> {
        reply.identify(&self.id, &self.model);
        if let Some(raw) = self.usage
            && let Ok(value) = Json::parse(raw)
            && let Some(reported) = usage::read(&value)
        {
            reply.usage(reported);
        }
        match &self.choice {
            Some(choice) if choice.index.unwrap_or(0) == 0 => choice.apply(reply),
            _ => Ok(()),
        }
    }
}

impl<'a> Choice<'a> {
    /// Reads it; `head` is where the delta begins, if it may be begun there (`Chunk::parse_whole`).
    fn read(&mut self, scanner: &mut JsonScanner<'a>, head: &mut Option<usize>) -> Option<()> {
        let mut has_delta = false;
        scanner.object(|scanner, name| match name {
            "index" => {
                *head = None;
                read_index(&mut self.index, scanner)
            }
            "delta" => {
                first(&mut has_delta)?;
                let is_plain = self.index.unwrap_or(0) == 0 && self.finish_reason.is_empty();
                *head = is_plain.then(|| scanner.place());
                self.read_delta(scanner)
            }
            other => self.read_member(other, scanner),
        })?;
        has_delta.then_some(())
    }

    fn read_member(&mut self, name: &str, scanner: &mut JsonScanner<'a>) -> Option<()> {
        match name {
            "finish_reason" => self.finish_reason.read(scanner),
            "message" | "text" | "usage" | "error" => scanner.nothing(),
            _ => scanner.skip(),
        }
    }

    fn read_delta(&mut self, scanner: &mut JsonScanner<'a>) -> Option<()> {
        scanner.object(|scanner, name| match name {
            "content" => self.content.read(scanner),
            "reasoning_content" => self.reasoning_content.read(scanner),
            "reasoning" => self.reasoning.read(scanner),
            "tool_calls" => {
                first(&mut self.has_calls)?;
                if scanner.null() {
                    return Some(());
                }
                scanner.array(|scanner| {
                    if self.call.is_none() {
                        return self.call.get_or_insert_default().read(scanner);
                    }
                    let mut call = CallDelta::default();
                    call.read(scanner)?;
                    self.other_calls.push(call);
                    Some(())
                })
            }
            "refusal" | "function_call" | "reasoning_details" | "reasoning_text" | "thinking"
            | "images" | "audio" => scanner.nothing(),
            _ => scanner.skip(),
        })
    }

    fn apply(&self, reply: &mut Reply) -> Result<()> {
        reply.delta_begins();
        let reasoning = if self.reasoning_content.is_empty() {
            &self.reasoning
        } else {
            &self.reasoning_content
        };
        reply.reasoning(reasoning);
        reply.text(&self.content);
        if let Some(call) = &self.call {
            reply.calls_begin();
            reply.call(call.piece())?;
            for call in &self.other_calls {
                reply.call(call.piece())?;
            }
        }
        reply.finish_reason(&self.finish_reason);
        Ok(())
    }
}

impl<'a> CallDelta<'a> {
    fn read(&mut self, scanner: &mut JsonScanner<'a>) -> Option<()> {
        let mut has_function = false;
        scanner.object(|scanner, name| match name {
            "index" => read_index(&mut self.index, scanner),
            "id" => self.id.read(scanner),
            "function" => {
                first(&mut has_function)?;
                if scanner.null() {
                    return Some(());
                }
                scanner.object(|scanner, name| match name {
                    "name" => self.name.read(scanner),
                    "arguments" => self.arguments.read(scanner),
                    _ => scanner.skip(),
                })
            }
            // Servers that leave the wrapper out.
            "name" | "arguments" => None,
            "extra_content" => scanner.nothing(),
            _ => scanner.skip(),
        })
    }

    fn piece(&self) -> CallPiece<'_> {
        CallPiece {
            index: self.index,
            id: &self.id,
            name: &self.name,
            arguments: Cow::Borrowed(&self.arguments),
            extra: None,
        }
    }
}

/// Marks that a member has come, unless it had.
fn first(has_come: &mut bool) -> Option<()> {
    (!std::mem::replace(has_come, true)).then_some(())
}

fn read_index(index: &mut Option<u64>, scanner: &mut JsonScanner<'_>) -> Option<()> {
    index.is_none().then_some(())?;
    if scanner.null() {
        return Some(());
    }
    *index = Some(scanner.count()?);
    Some(())
}

/// A text that is copied only if it has escapes; empty if it is null or missing.
#[derive(Default)]
pub(super) struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Reads it, unless it has come before.
    #[inline]
    fn read(&mut self, scanner: &mut JsonScanner<'a>) -> Option<()> {
        if scanner.null() {
            return self.0.is_none().then_some(());
        }
        self.0.is_none().then_some(())?;
        self.0 = Some(scanner.string()?);
        Some(())
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}
