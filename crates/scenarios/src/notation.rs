//! The words that expectations are written in: patterns of texts, message lines, events and ends.

use std::fmt;

use raf_core::{ChatMessage, MessageRole};
use raf_testing::outcome_word;

/// A text in which `*` stands for any characters; `\*` is the character itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether a text fits.
    pub fn fits(&self, text: &str) -> bool {
        let mut pieces = vec![String::new()];
        let mut characters = self.0.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek() == Some(&'*') => {
                    characters.next();
                    pieces.last_mut().expect("one at least").push('*');
                }
                '*' => pieces.push(String::new()),
                other => pieces.last_mut().expect("one at least").push(other),
            }
        }
        let last = pieces.pop().expect("one at least");
        let mut pieces = pieces.iter();
        let Some(first) = pieces.next() else {
            return text == last;
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for piece in pieces {
            match rest.find(piece.as_str()) {
                Some(place) => rest = &rest[place + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(&last)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

/// The words that events begin with.
pub const EVENTS: &[&str] = &[
    "message_start",
    "message_end",
    "message",
    "text",
    "reasoning",
    "reasoning_data",
    "content",
    "call_start",
    "call_args",
    "call_ready",
    "tool_start",
    "progress",
    "tool_end",
    "approval_requested",
    "approval_refused",
    "approval_closed",
    "interrupted",
    "usage",
    "metadata",
    "attempt_reset",
    "nested",
    "error",
    "run_end",
];

/// One event in its words: `tool_end`, `c1`, `ok`.
pub type Event = Vec<String>;

/// An event in one line.
pub fn show(event: &[String]) -> String {
    let mut words = event.iter();
    let mut line = words.next().cloned().unwrap_or_default();
    for word in words {
        line.push(' ');
        if word.is_empty() || word.contains(' ') {
            line.push('\'');
            line.push_str(word);
            line.push('\'');
        } else {
            line.push_str(word);
        }
    }
    line
}

/// An event as it is expected: the first words of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPattern {
    words: Vec<Vec<Pattern>>,
    text: String,
}

impl EventPattern {
    /// Reads an event: `tool_end c1 ok`, `tool_end(c1, ok)`, `text 'Let me '`; `a|b` is one of both.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = words_of(text)?;
        let Some((first, _)) = words.first() else {
            return Err("an event is missing here".to_owned());
        };
        if !EVENTS.contains(&first.as_str()) {
            return Err(format!(
                "'{first}' is no event; expected one of {}",
                EVENTS.join(", ")
            ));
        }
        let words = words.into_iter().map(|(word, quoted)| {
            if quoted {
                return vec![Pattern::new(word)];
            }
            word.split('|').map(Pattern::new).collect()
        });
        Ok(Self {
            words: words.collect(),
            text: text.trim().to_owned(),
        })
    }

    /// Whether an event is this one.
    pub fn fits(&self, event: &[String]) -> bool {
        self.words.len() <= event.len()
            && self
                .words
                .iter()
                .zip(event)
                .all(|(wanted, word)| wanted.iter().any(|one| one.fits(word)))
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is said of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRule {
    /// Each is there exactly once, in this order.
    Order(Vec<EventPattern>),
    /// It is there so often.
    Count(EventPattern, usize),
    /// It is there so often at least.
    AtLeast(EventPattern, usize),
}

impl EventRule {
    /// Reads `a < b < c`, `a == 2`, `a >= 1`, `no a`, or `a` alone.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(never) = text.strip_prefix("no ") {
            return Ok(Self::Count(EventPattern::parse(never)?, 0));
        }
        let number = |text: &str| {
            text.trim()
                .parse()
                .map_err(|_| format!("'{}' is no number", text.trim()))
        };
        if let [event, count] = &*split_outside_quotes(text, "==") {
            return Ok(Self::Count(EventPattern::parse(event)?, number(count)?));
        }
        if let [event, count] = &*split_outside_quotes(text, ">=") {
            return Ok(Self::AtLeast(EventPattern::parse(event)?, number(count)?));
        }
        let chain = split_outside_quotes(text, "<");
        let chain: Result<_, _> = chain.iter().map(|one| EventPattern::parse(one)).collect();
        chain.map(Self::Order)
    }

    /// What is wrong with these events; nothing if all is well.
    pub fn fault(&self, events: &[Event]) -> Option<String> {
        let count = |wanted: &EventPattern| events.iter().filter(|e| wanted.fits(e)).count();
        match self {
            Self::Count(wanted, expected) => {
                let is = count(wanted);
                (is != *expected)
                    .then(|| format!("`{wanted}` is there {is} times, expected {expected}"))
            }
            Self::AtLeast(wanted, least) => {
                let is = count(wanted);
                (is < *least)
                    .then(|| format!("`{wanted}` is there {is} times, expected {least} at least"))
            }
            Self::Order(chain) => {
                let mut last: Option<(usize, &EventPattern)> = None;
                for wanted in chain {
                    let is = count(wanted);
                    if is != 1 {
                        return Some(format!("`{wanted}` is there {is} times, expected once"));
                    }
                    let place = events.iter().position(|event| wanted.fits(event))?;
                    if let Some((before, earlier)) = last
                        && place <= before
                    {
                        return Some(format!("`{wanted}` comes before `{earlier}`"));
                    }
                    last = Some((place, wanted));
                }
                None
            }
        }
    }
}

fn split_outside_quotes(text: &str, separator: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if character == '\'' {
            quoted = !quoted;
        }
        if !quoted && rest.starts_with(separator) {
            parts.push(String::new());
            rest = &rest[separator.len()..];
            continue;
        }
        parts.last_mut().expect("one at least").push(character);
        rest = &rest[character.len_utf8()..];
    }
    parts
}

/// The words of a text; those in quotes are one word each.
fn words_of(text: &str) -> Result<Vec<(String, bool)>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            let Some(end) = rest[1..].find('\'') else {
                return Err(format!("a quote is not closed: {text}"));
            };
            words.push((rest[1..=end].to_owned(), true));
            rest = &rest[end + 2..];
        } else {
            let end = rest.find([' ', '(', ')', ',']).unwrap_or(rest.len());
            words.push((rest[..end].to_owned(), false));
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches([' ', '(', ')', ',']);
    }
    Ok(words)
}

/// The words for how a leg ends; `error` may have a kind and a code behind it.
pub const STOPS: &[&str] = &[
    "stop",
    "length",
    "content_filter",
    "awaiting_approval",
    "awaiting_tool_results",
    "max_rounds",
    "tool_retry_limit",
    "budget calls",
    "budget wall_time",
    "budget deadline",
    "no_progress",
    "empty_response",
    "terminated fatal_error",
    "terminated fail_fast",
    "terminated unknown_tool",
    "terminated middleware",
    "terminated hook",
    "error cancelled",
    "error model",
    "error store",
    "error approval_refused",
    "error misuse",
];

/// An expected end in its words.
pub fn stop_words(text: &str) -> Result<Vec<String>, String> {
    let canonical = match text {
        "completed" => "stop",
        "paused" => "awaiting_approval",
        "truncated" => "length",
        "cancelled" => "error cancelled",
        "model_error" => "error model",
        other => other,
    };
    let known = STOPS.contains(&canonical) || canonical.starts_with("error ");
    if !known {
        return Err(format!(
            "'{text}' is no end of a leg; expected one of {}",
            STOPS.join(", ")
        ));
    }
    Ok(canonical.split(' ').map(str::to_owned).collect())
}

/// Whether a leg ended as expected; `error model` is any failure of the model.
pub fn is_stop(event: &[String], expected: &[String], is_model_error: bool) -> bool {
    if is_model_error && expected == ["error", "model"] {
        return true;
    }
    event.len() >= expected.len() && event.iter().zip(expected).all(|(is, wanted)| is == wanted)
}

#[cfg(test)]
mod tests;
