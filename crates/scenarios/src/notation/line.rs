//! Messages and results, each in one line, and what they are expected to be.

use std::fmt;

use raf_core::{ChatMessage, MessageRole};
use raf_testing::outcome_word;

use super::Pattern;

/// One message, or one result, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A message that is no tool's.
    Message {
        /// `S`, `D`, `U` or `A`.
        letter: char,
        /// Its text.
        text: String,
        /// The ids of its calls.
        calls: Vec<String>,
    },
    /// A result.
    Result {
        /// The id of its call.
        id: String,
        /// Its outcome: `ok`, `error failed`, …
        outcome: String,
        /// Its text.
        text: String,
    },
}

impl Line {
    /// The lines of messages.
    pub fn of(messages: &[ChatMessage]) -> Vec<Self> {
        let mut lines = Vec::with_capacity(messages.len());
        for message in messages {
            let letter = match message.role() {
                MessageRole::System => 'S',
                MessageRole::Developer => 'D',
                MessageRole::User => 'U',
                MessageRole::Assistant => 'A',
                _ => {
                    lines.extend(message.tool_results().map(|result| Self::Result {
                        id: result.call_id().to_owned(),
                        outcome: outcome_word(result.outcome()),
                        text: result.text(),
                    }));
                    continue;
                }
            };
            let calls = message.tool_calls().map(|call| call.id().to_owned());
            lines.push(Self::Message {
                letter,
                text: message.text(),
                calls: calls.collect(),
            });
        }
        lines
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message {
                letter,
                text,
                calls,
            } => {
                write!(f, "{letter}:{text}")?;
                if calls.is_empty() {
                    return Ok(());
                }
                let space = if text.is_empty() { "" } else { " " };
                write!(f, "{space}[{}]", calls.join(","))
            }
            Self::Result { id, outcome, text } => write!(f, "R({id}, {outcome} '{text}')"),
        }
    }
}

/// A line as it is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinePattern {
    /// A message: `U:text`, `A:'text' [c1,c2]`.
    Message {
        /// `S`, `D`, `U` or `A`.
        letter: char,
        /// Its text.
        text: Pattern,
        /// The ids of its calls.
        calls: Vec<String>,
    },
    /// A result: `R(c1, ok 'text')`.
    Result {
        /// The id of its call.
        id: Pattern,
        /// The first words of its outcome.
        outcome: Vec<String>,
        /// Its text; any without it.
        text: Option<Pattern>,
    },
}

/// What a line must look like.
pub const LINE_FORMS: &str = "`S:text`, `D:text`, `U:text`, `A:text [c1,c2]` or \
    `R(c1, outcome 'text')`; `*` stands for any text";

impl LinePattern {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, String> {
        let wrong = || format!("'{line}' is no line of a conversation; expected {LINE_FORMS}");
        if let Some(inner) = line.strip_prefix("R(") {
            let inner = inner.strip_suffix(')').ok_or_else(wrong)?;
            let (id, rest) = inner.split_once(',').ok_or_else(wrong)?;
            let (words, text) = match rest.split_once('\'') {
                Some((words, text)) => {
                    let text = text.trim_end().strip_suffix('\'').ok_or_else(wrong)?;
                    (words, Some(Pattern::new(text)))
                }
                None => (rest, None),
            };
            let words = words.trim().trim_end_matches(':');
            let outcome = outcome_words(words).ok_or_else(|| {
                format!(
                    "'{words}' is no outcome; expected one of {}",
                    OUTCOMES.join(", ")
                )
            })?;
            return Ok(Self::Result {
                id: Pattern::new(id.trim()),
                outcome,
                text,
            });
        }
        let (letter, rest) = line.split_once(':').ok_or_else(wrong)?;
        let letter = match letter {
            "S" | "D" | "U" | "A" => letter.chars().next().ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        let mut rest = rest.trim();
        let mut calls = Vec::new();
        if letter == 'A'
            && let Some(open) = rest.rfind('[')
            && let Some(ids) = rest[open + 1..].strip_suffix(']')
        {
            calls = ids.split(',').map(|id| id.trim().to_owned()).collect();
            rest = rest[..open].trim_end();
        }
        let unquoted = rest.strip_prefix('\'');
        let text = unquoted.and_then(|rest| rest.strip_suffix('\''));
        Ok(Self::Message {
            letter,
            text: Pattern::new(text.unwrap_or(rest)),
            calls,
        })
    }

    /// Whether a line is this one.
    pub fn fits(&self, line: &Line) -> bool {
        match (self, line) {
            (
                Self::Message {
                    letter,
                    text,
                    calls,
                },
                Line::Message {
                    letter: own,
                    text: said,
                    calls: asked,
                },
            ) => {
                letter == own
                    && (text.fits(said) || text.fits(said.trim()))
                    && calls.len() == asked.len()
                    && calls
                        .iter()
                        .zip(asked)
                        .all(|(pattern, id)| Pattern::new(pattern).fits(id))
            }
            (
                Self::Result { id, outcome, text },
                Line::Result {
                    id: own,
                    outcome: is,
                    text: said,
                },
            ) => {
                id.fits(own)
                    && is_outcome(is, outcome)
                    && text.as_ref().is_none_or(|text| text.fits(said))
            }
            _ => false,
        }
    }
}

/// The words for outcomes; those of errors and skips may stand alone.
pub const OUTCOMES: &[&str] = &[
    "ok",
    "error",
    "error invalid_arguments",
    "error unknown_tool",
    "error permission_denied",
    "error failed",
    "error panicked",
    "error timed_out",
    "denied",
    "cancelled",
    "skipped",
    "skipped limit",
    "skipped terminated",
    "skipped superseded",
    "skipped truncated",
    "unknown",
];

/// An outcome in its words, if it is one.
pub fn outcome_words(text: &str) -> Option<Vec<String>> {
    let found = OUTCOMES.iter().find(|known| **known == text).or_else(|| {
        OUTCOMES
            .iter()
            .find(|known| known.ends_with(&format!(" {text}")))
    })?;
    Some(found.split(' ').map(str::to_owned).collect())
}

/// Whether an outcome begins with these words.
pub fn is_outcome(outcome: &str, words: &[String]) -> bool {
    let mut own = outcome.split(' ');
    words.iter().all(|word| own.next() == Some(word))
}
