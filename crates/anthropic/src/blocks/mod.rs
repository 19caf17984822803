//! The blocks of a reply, from their starts, deltas and stops to updates in the order of the blocks.
//!
//! An index is a key and never a position: a start at a used index is a new block, a delta without
//! index belongs to the block opened last, one of the wrong kind makes a block of its own. A block
//! that may yet get a signature or input holds back what comes behind it; text and calls do not.

pub(crate) mod kind;
mod say;

use std::borrow::Cow;

use raf_core::Result;
use raf_wire::{CallAssembler, CallPiece, Json, Limits};

use crate::said::Said;
use kind::{Block, Kind, text_block, thinking_block};

/// The blocks so far.
#[derive(Debug)]
pub(crate) struct Blocks {
    provider: String,
    model: String,
    blocks: Vec<Block>,
    /// The first block that is not wholly said.
    next: usize,
    calls: CallAssembler,
    /// The part said last was text of this block.
    last_text: Option<usize>,
}

impl Blocks {
    /// No block. `provider` and `model` say whose opaque data they hold.
    pub(crate) fn new(provider: &str, model: &str, limits: &Limits) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            blocks: Vec::new(),
            next: 0,
            calls: CallAssembler::new(limits),
            last_text: None,
        }
    }

    /// Whether a call for the client is among them.
    pub(crate) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// A block begins; it may hold all it will ever hold.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn start(&mut self, index: Option<u64>, kind: Kind, said: &mut Said) -> Result<()> {
        self.blocks.push(Block::new(index, kind));
        self.advance(said)
    }

    /// A block ends; an index that is not known ends none.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn stop(&mut self, index: Option<u64>, said: &mut Said) -> Result<()> {
        let known = self.find(index);
        if let Some(at) = known {
            self.blocks[at].is_closed = true;
        }
        self.advance(said)?;
        match known {
            Some(at) => self.use_start(at, said),
            None => Ok(()),
        }
    }

    /// All blocks end.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn close(&mut self, said: &mut Said) -> Result<()> {
        for block in &mut self.blocks {
            block.is_closed = true;
        }
        self.advance(said)?;
        (0..self.blocks.len()).try_for_each(|at| self.use_start(at, said))
    }

    /// The next message of the same turn begins: its indexes are its own.
    pub(crate) fn next_message(&mut self) {
        for block in &mut self.blocks {
            block.is_stray = true;
        }
    }

    /// Ends the calls; returns whether there are any.
    pub(crate) fn finish_calls(&mut self, was_cut: bool, said: &mut Said) -> bool {
        self.calls
            .finish(was_cut, &self.provider, &mut said.updates)
    }

    /// A piece of text.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn text(&mut self, index: Option<u64>, piece: &str, said: &mut Said) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let at = match self.find(index) {
            Some(at) if matches!(self.blocks[at].kind, Kind::Text { .. }) => at,
            _ => self.stray(|kind| matches!(kind, Kind::Text { .. }), text_block),
        };
        self.advance(said)?;
        if at <= self.next {
            self.say_text(at, piece, said);
        } else if let Kind::Text { held, .. } = &mut self.blocks[at].kind {
            held.push_str(piece);
        }
        Ok(())
    }

    /// A piece of thinking.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn thinking(
        &mut self,
        index: Option<u64>,
        piece: &str,
        said: &mut Said,
    ) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let at = match self.find(index) {
            Some(at) if matches!(self.blocks[at].kind, Kind::Thinking { .. }) => at,
            _ => self.stray(|kind| matches!(kind, Kind::Thinking { .. }), thinking_block),
        };
        self.advance(said)?;
        let is_now = at <= self.next;
        if let Kind::Thinking {
            held,
            says_something,
            ..
        } = &mut self.blocks[at].kind
        {
            *says_something = true;
            if is_now {
                self.last_text = None;
                said.say(say::reasoning(piece.to_owned()));
            } else {
                held.push_str(piece);
            }
        }
        Ok(())
    }

    /// A signature replaces what is there where it is the same or goes on with it, else it is a piece
    /// more. On other blocks it is nothing.
    pub(crate) fn signature(&mut self, index: Option<u64>, piece: &str) {
        let Some(at) = self.find(index) else { return };
        if let Kind::Thinking { signature, .. } = &mut self.blocks[at].kind {
            if piece.starts_with(signature.as_str()) {
                signature.clear();
            }
            signature.push_str(piece);
        }
    }

    pub(crate) fn citation(&mut self, index: Option<u64>, citation: &Json) {
        let Some(at) = self.find(index) else { return };
        if let Kind::Text { citations, .. } = &mut self.blocks[at].kind {
            citations.push(citation.clone());
        }
    }

    /// A piece of the summary of a `compaction` block.
    pub(crate) fn summary(&mut self, index: Option<u64>, piece: &str) {
        let Some(at) = self.find(index) else { return };
        if let Kind::Other { part, .. } = &mut self.blocks[at].kind {
            let mut text = part
                .get("content")
                .and_then(Json::as_str)
                .unwrap_or("")
                .to_owned();
            text.push_str(piece);
            part.set("content", Json::String(text));
        }
    }

    /// A piece of the input of a call, or of a tool that the server runs.
    ///
    /// # Errors
    /// A limit that is passed.
    pub(crate) fn arguments(
        &mut self,
        index: Option<u64>,
        piece: Cow<'_, str>,
        said: &mut Said,
    ) -> Result<()> {
        let Some(at) = self.find(index) else {
            return Ok(());
        };
        match &mut self.blocks[at].kind {
            Kind::Other { input, .. } => input.push_str(&piece),
            Kind::Call(call) => {
                call.has_pieces |= !piece.trim().is_empty();
                if !call.is_announced {
                    call.held.push_str(&piece);
                } else if !piece.is_empty() {
                    let piece = CallPiece {
                        index: Some(at as u64),
                        arguments: piece,
                        ..CallPiece::default()
                    };
                    self.calls.push(piece, &mut said.updates)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The block last opened at an index; without one the block last opened.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        self.blocks.iter().rposition(|block| {
            !block.is_stray && (index.is_none() || block.index.is_none() || block.index == index)
        })
    }

    /// The block of a delta that has none of its kind: the one made for the delta before, or a new one.
    fn stray(&mut self, fits: impl Fn(&Kind) -> bool, make: impl FnOnce() -> Kind) -> usize {
        let last = self.blocks.last();
        if !last.is_some_and(|last| last.is_stray && !last.is_closed && fits(&last.kind)) {
            let mut block = Block::new(None, make());
            block.is_stray = true;
            self.blocks.push(block);
        }
        self.blocks.len() - 1
    }
}

#[cfg(test)]
mod tests;
