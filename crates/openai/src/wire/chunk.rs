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
    id: Text<'a>,
    model: Text<'a>,
    usage: Option<&'a str>,
    choice: Option<Choice<'a>>,
}

#[derive(Default)]
struct Choice<'a> {
    index: Option<u64>,
    has_delta: bool,
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

impl<'a> Chunk<'a> {
    /// Reads a frame, unless it is out of the ordinary.
    pub(crate) fn parse(frame: &'a str) -> Option<Self> {
        let mut chunk = Self::default();
        let mut scanner = JsonScanner::new(frame);
        let (mut has_choices, mut has_usage) = (false, false);
        scanner.object(|scanner, name| match name {
            "id" => chunk.id.read(scanner),
            "model" => chunk.model.read(scanner),
            "choices" => {
                first(&mut has_choices)?;
                scanner.array(|scanner| {
                    // Of several choices one counts: which, the loose reading knows.
                    let choice = &mut chunk.choice;
                    let choice = choice.is_none().then(|| choice.get_or_insert_default())?;
                    choice.read(scanner)
                })
            }
            "usage" => {
                first(&mut has_usage)?;
                chunk.usage = Some(scanner.raw()?).filter(|usage| *usage != "null");
                Some(())
            }
            "error" | "errors" | "x_groq" | "base_resp" => scanner.nothing(),
            // Either may say that the whole frame is an error.
            "object" | "type" => scanner.raw().filter(|of| *of != r#""error""#).map(drop),
            _ => scanner.skip(),
        })?;
        let says_something = chunk.choice.is_some() || has_choices && chunk.usage.is_some();
        (says_something && scanner.is_at_end()).then_some(chunk)
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
    fn read(&mut self, scanner: &mut JsonScanner<'a>) -> Option<()> {
        scanner.object(|scanner, name| match name {
            "index" => read_index(&mut self.index, scanner),
            "delta" => {
                first(&mut self.has_delta)?;
                self.read_delta(scanner)
            }
            "finish_reason" => self.finish_reason.read(scanner),
            "message" | "text" | "usage" | "error" => scanner.nothing(),
            _ => scanner.skip(),
        })?;
        self.has_delta.then_some(())
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
            arguments: &self.arguments,
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
struct Text<'a>(Option<Cow<'a, str>>);

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
