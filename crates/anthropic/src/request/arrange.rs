//! Which blocks are sent in which turn: instructions apart, roles in turn, the user's first.

use std::ops::Range;
use std::sync::Arc;

use raf_core::{ChatMessage, MessageRole};

use super::cache::given;
use super::message::{Marks, render};
use super::render_key::render_key;
use crate::dialect::Rules;

/// A turn of the user that says nothing: the API wants one before the assistant's first.
const SILENT: &str = r#"{"type":"text","text":"…"}"#;

/// A turn of the user behind the assistant's last, where it may not be gone on with.
const GO_ON: &str = r#"{"type":"text","text":"Continue."}"#;

/// A conversation as it goes over the wire.
#[derive(Debug)]
pub(super) struct Arranged {
    /// The instructions: one piece per message.
    pub(super) system: Vec<Piece>,
    /// What the turns say, in order.
    pub(super) pieces: Vec<Piece>,
    turns: Vec<Turn>,
    /// Breakpoints of the cache stand with some of the parts.
    pub(super) has_given_marks: bool,
}

/// Messages of one role in a row: their pieces, up to those of the next turn.
#[derive(Debug)]
struct Turn {
    is_user: bool,
    start: usize,
    has_calls: bool,
}

/// The blocks of one message, joined by commas.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) json: Arc<str>,
    /// Which message it is; none where it was put in.
    pub(super) message: Option<usize>,
}

/// Puts the messages in order. `instructions` are added to the caller's own.
pub(super) fn arrange(
    messages: &[ChatMessage],
    instructions: Option<String>,
    rules: &Rules,
    model: &str,
) -> Arranged {
    let key = render_key(rules, model);
    let mut arranged = Arranged {
        system: Vec::new(),
        pieces: Vec::with_capacity(messages.len() + 1),
        turns: Vec::with_capacity(messages.len() + 1),
        has_given_marks: false,
    };
    for (place, message) in messages.iter().enumerate() {
        let piece = message.rendered(key, |message| {
            render(message, rules, model, Marks::Off).into()
        });
        if piece.is_empty() {
            continue;
        }
        arranged.has_given_marks |= message
            .contents()
            .iter()
            .any(|content| given(content).is_some());
        let piece = Piece {
            json: piece,
            message: Some(place),
        };
        match message.role() {
            MessageRole::System | MessageRole::Developer => arranged.system.push(piece),
            role => {
                let is_user = role != MessageRole::Assistant;
                let has_calls = !message.is_plain_text() && message.tool_calls().next().is_some();
                if arranged.turns.is_empty() && !is_user {
                    arranged.push(true, Piece::added(SILENT), false);
                }
                arranged.push(is_user, piece, has_calls);
            }
        }
    }
    if let Some(instructions) = instructions {
        let message = ChatMessage::system(instructions);
        arranged.system.push(Piece {
            json: render(&message, rules, model, Marks::Off).into(),
            message: None,
        });
    }
    if arranged.turns.is_empty() {
        arranged.push(true, Piece::added(SILENT), false);
    }
    arranged
}

impl Arranged {
    fn push(&mut self, is_user: bool, piece: Piece, has_calls: bool) {
        match self.turns.last_mut().filter(|last| last.is_user == is_user) {
            Some(last) => last.has_calls |= has_calls,
            None => self.turns.push(Turn {
                is_user,
                start: self.pieces.len(),
                has_calls,
            }),
        }
        self.pieces.push(piece);
    }

    /// The turns: whether each is the user's, and which pieces it has. None is without any.
    pub(super) fn turns(&self) -> impl DoubleEndedIterator<Item = (bool, Range<usize>)> {
        self.turns.iter().enumerate().map(|(at, turn)| {
            let next = self.turns.get(at + 1);
            let end = next.map_or(self.pieces.len(), |next| next.start);
            (turn.is_user, turn.start..end)
        })
    }

    /// Whether the assistant's last turn asks for calls, and does not begin with a thought of its own:
    /// the API refuses to think on from there.
    pub(super) fn lacks_thinking(&self) -> bool {
        let last = self.turns.iter().rev().find(|turn| !turn.is_user);
        last.is_some_and(|turn| {
            let thinks = |piece: &Piece| {
                [r#"{"type":"thinking""#, r#"{"type":"redacted_thinking""#]
                    .iter()
                    .any(|start| piece.json.starts_with(start))
            };
            turn.has_calls && !self.pieces.get(turn.start).is_some_and(thinks)
        })
    }

    /// Puts a turn of the user behind the assistant's last, where that may not be gone on with.
    pub(super) fn end_with_user(&mut self) {
        if self.turns.last().is_some_and(|last| !last.is_user) {
            self.push(true, Piece::added(GO_ON), false);
        }
    }

    /// Takes the blanks off the end of a conversation that ends with the assistant.
    pub(super) fn trim_end(&mut self) {
        let last = self.turns.last().filter(|last| !last.is_user);
        if let Some(piece) = last.and(self.pieces.last_mut())
            && let Some(trimmed) = without_blanks_at_end(&piece.json)
        {
            piece.json = trimmed.into();
        }
    }

    /// About how many bytes it is.
    pub(super) fn length(&self) -> usize {
        let pieces = self.pieces.iter();
        let turns: usize = pieces.map(|piece| piece.json.len() + 40).sum();
        let system = self.system.iter().map(|piece| piece.json.len() + 1);
        system.sum::<usize>() + turns
    }

    /// What it says, message by message.
    pub(super) fn into_pieces(self) -> Vec<Arc<str>> {
        let pieces = self.system.into_iter().chain(self.pieces);
        pieces.map(|piece| piece.json).collect()
    }

    /// Writes the list of instructions.
    pub(super) fn write_system(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        join(text, self.system.iter().map(|piece| &*piece.json));
        text.push(b']');
    }

    /// Writes the list of turns.
    pub(super) fn write_turns(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        for (is_user, pieces) in self.turns() {
            if pieces.start > 0 {
                text.push(b',');
            }
            let head: &[u8] = if is_user {
                br#"{"role":"user","content":["#
            } else {
                br#"{"role":"assistant","content":["#
            };
            text.extend_from_slice(head);
            let pieces = self.pieces[pieces].iter();
            join(text, pieces.map(|piece| &*piece.json));
            text.extend_from_slice(b"]}");
        }
        text.push(b']');
    }
}

impl Piece {
    /// One that stands for no message.
    fn added(json: &str) -> Self {
        Self {
            json: json.into(),
            message: None,
        }
    }
}

fn join<'a>(text: &mut Vec<u8>, pieces: impl Iterator<Item = &'a str>) {
    for (place, piece) in pieces.enumerate() {
        if place > 0 {
            text.push(b',');
        }
        text.extend_from_slice(piece.as_bytes());
    }
}

/// The blocks without blanks at the end of their last text, if the last block is a plain one.
fn without_blanks_at_end(blocks: &str) -> Option<String> {
    let start = blocks.rfind(r#"{"type":"text","text":""#)?;
    let block: serde_json::Value = serde_json::from_str(&blocks[start..]).ok()?;
    let text = block["text"].as_str()?;
    let trimmed = text.trim_end();
    if trimmed.len() == text.len() {
        return None;
    }
    let mut changed = block.clone();
    changed["text"] = trimmed.into();
    Some(format!("{}{changed}", &blocks[..start]))
}
