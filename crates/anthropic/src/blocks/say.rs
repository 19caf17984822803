//! From blocks to updates: what can be said now, and what a block says when it ends.

use std::borrow::Cow;

use raf_core::{AgentResponseUpdate, Content, ProviderData, Result};
use raf_wire::{CallPiece, Json, provider_part};
use serde_json::{Map, Value};

use super::Blocks;
use super::kind::{Kind, fold_input};
use crate::parts::CITATIONS;
use crate::said::Said;

impl Blocks {
    /// Says what can be said, block by block.
    pub(super) fn advance(&mut self, said: &mut Said) -> Result<()> {
        while self.next < self.blocks.len() {
            let at = self.next;
            self.enter(at, said)?;
            let is_last = at + 1 == self.blocks.len();
            let block = &self.blocks[at];
            let is_over = block.is_closed
                || match &block.kind {
                    Kind::Call(_) | Kind::Redacted(_) => true,
                    Kind::Text { .. } => !is_last,
                    Kind::Thinking { signature, .. } => !is_last && !signature.is_empty(),
                    Kind::Other { .. } => false,
                };
            if !is_over {
                return Ok(());
            }
            self.leave(at, said);
            self.next += 1;
        }
        Ok(())
    }

    /// Says what a block has held back.
    fn enter(&mut self, at: usize, said: &mut Said) -> Result<()> {
        match &mut self.blocks[at].kind {
            Kind::Text { held, .. } if !held.is_empty() => {
                let held = std::mem::take(held);
                self.say_text(at, &held, said);
            }
            Kind::Thinking { held, .. } if !held.is_empty() => {
                self.last_text = None;
                said.say(reasoning(std::mem::take(held)));
            }
            Kind::Call(call) if !call.is_announced => {
                call.is_announced = true;
                self.last_text = None;
                said.begin();
                let mut extra = Map::new();
                if let Some(caller) = &call.caller {
                    extra.insert("caller".to_owned(), caller.to_value());
                }
                let piece = CallPiece {
                    index: Some(at as u64),
                    id: &call.id,
                    name: &call.name,
                    arguments: Cow::Borrowed(&call.held),
                    extra: (!extra.is_empty()).then_some(extra),
                };
                self.calls.push(piece, &mut said.updates)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Says the end of a block.
    fn leave(&mut self, at: usize, said: &mut Said) {
        let update = match &mut self.blocks[at].kind {
            Kind::Text { citations, .. } if !citations.is_empty() => {
                let part = Json::Object(vec![
                    ("type".to_owned(), CITATIONS.into()),
                    (CITATIONS.to_owned(), Json::Array(std::mem::take(citations))),
                ]);
                content(provider_part(&self.provider, &part))
            }
            Kind::Text { .. } | Kind::Call(_) => return,
            Kind::Thinking {
                says_something,
                signature,
                ..
            } => {
                if !*says_something && signature.is_empty() {
                    return;
                }
                let signature = Some(std::mem::take(signature)).filter(|text| !text.is_empty());
                self.opaque("signature", signature)
            }
            Kind::Redacted(data) => {
                let data = std::mem::take(data);
                self.opaque("data", Some(data))
            }
            Kind::Other { part, input } => {
                fold_input(part, input);
                content(provider_part(&self.provider, part))
            }
        };
        self.last_text = None;
        said.say(update);
    }

    /// Opaque data of a thought, with the model that made it.
    fn opaque(&self, name: &str, value: Option<String>) -> AgentResponseUpdate {
        let mut data = Map::new();
        data.insert("model".to_owned(), Value::String(self.model.clone()));
        if let Some(value) = value {
            data.insert(name.to_owned(), Value::String(value));
        }
        AgentResponseUpdate::ReasoningData {
            data: Box::new(ProviderData::new(&self.provider, Value::Object(data))),
        }
    }

    /// Says text. Two blocks of text behind each other stay two parts.
    pub(super) fn say_text(&mut self, at: usize, piece: &str, said: &mut Said) {
        let is_other = self.last_text.is_some_and(|last| last != at);
        if is_other && !self.blocks[at].is_stray {
            said.say(content(Content::text("")));
        }
        self.last_text = Some(at);
        said.say(AgentResponseUpdate::TextDelta {
            text: piece.to_owned(),
        });
    }

    /// The arguments of a start event count where no others came.
    pub(super) fn use_start(&mut self, at: usize, said: &mut Said) -> Result<()> {
        let Kind::Call(call) = &mut self.blocks[at].kind else {
            return Ok(());
        };
        if call.has_pieces || call.start.is_empty() || !call.is_announced {
            return Ok(());
        }
        call.has_pieces = true;
        let piece = CallPiece {
            index: Some(at as u64),
            arguments: Cow::Borrowed(&call.start),
            ..CallPiece::default()
        };
        self.calls.push(piece, &mut said.updates)
    }
}

fn content(content: Content) -> AgentResponseUpdate {
    AgentResponseUpdate::Content {
        content: Box::new(content),
    }
}

/// A piece of thinking.
pub(super) fn reasoning(text: String) -> AgentResponseUpdate {
    AgentResponseUpdate::ReasoningDelta { text }
}
