//! Events in words, and rules about their order and number.

use std::fmt;

use super::Pattern;

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
