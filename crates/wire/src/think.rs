//! Splits `<think>` blocks off the text, for servers that leave a model's thoughts in it.
//!
//! Only a block at the very start of a reply counts (blanks before it are allowed): a tag further on
//! is text that talks about tags.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// What a piece of text turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkPart {
    /// Text of the answer.
    Text,
    /// A thought.
    Thought,
}

/// Splits the text of one reply, however it is cut.
#[derive(Debug)]
pub struct ThinkTags {
    place: Place,
    /// What may yet become a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    /// Behind the block: blank space between thoughts and answer is dropped.
    Behind,
    Answer,
}

impl ThinkTags {
    /// A text that has not begun.
    pub fn new() -> Self {
        Self {
            place: Place::Before,
            held: String::new(),
        }
    }

    /// Takes text in, and says what it is as soon as that is known.
    pub fn push(&mut self, text: &str, mut out: impl FnMut(ThinkPart, &str)) {
        if self.place == Place::Answer {
            out(ThinkPart::Text, text);
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.push_str(text);
        let mut rest = held.as_str();
        if self.place == Place::Before {
            let start = rest.trim_start();
            if let Some(behind) = start.strip_prefix(OPEN) {
                self.place = Place::Inside;
                rest = behind;
            } else if OPEN.starts_with(start) {
                self.held = held;
                return;
            } else {
                self.place = Place::Answer;
            }
        }
        if self.place == Place::Inside {
            if let Some(end) = rest.find(CLOSE) {
                emit(ThinkPart::Thought, &rest[..end], &mut out);
                self.place = Place::Behind;
                rest = &rest[end + CLOSE.len()..];
            } else {
                let keep = overlap(rest);
                emit(ThinkPart::Thought, &rest[..rest.len() - keep], &mut out);
                self.held = rest[rest.len() - keep..].to_owned();
                return;
            }
        }
        if self.place == Place::Behind {
            rest = rest.trim_start();
            if rest.is_empty() {
                return;
            }
            self.place = Place::Answer;
        }
        emit(ThinkPart::Text, rest, &mut out);
    }

    /// Gives out what was held back for a tag that did not come.
    pub fn finish(&mut self, mut out: impl FnMut(ThinkPart, &str)) {
        let part = match self.place {
            Place::Inside => ThinkPart::Thought,
            _ => ThinkPart::Text,
        };
        emit(part, &std::mem::take(&mut self.held), &mut out);
    }
}

impl Default for ThinkTags {
    fn default() -> Self {
        Self::new()
    }
}

fn emit(part: ThinkPart, text: &str, out: &mut impl FnMut(ThinkPart, &str)) {
    if !text.is_empty() {
        out(part, text);
    }
}

/// How many bytes at the end may be the start of the closing tag.
fn overlap(text: &str) -> usize {
    (1..CLOSE.len())
        .rev()
        .find(|&length| text.ends_with(&CLOSE[..length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{ThinkPart, ThinkTags};

    fn split(pieces: &[&str]) -> (String, String) {
        let (mut text, mut thought) = (String::new(), String::new());
        let mut out = |part, piece: &str| match part {
            ThinkPart::Text => text.push_str(piece),
            ThinkPart::Thought => thought.push_str(piece),
        };
        let mut tags = ThinkTags::new();
        for piece in pieces {
            tags.push(piece, &mut out);
        }
        tags.finish(&mut out);
        (text, thought)
    }

    #[test]
    fn a_block_at_the_start_is_a_thought_in_every_cut() {
        let whole = "\n<think>a <b> </thin </think>\n\nHi <think>";
        let pieces: Vec<String> = whole.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let expected = ("Hi <think>".to_owned(), "a <b> </thin ".to_owned());
        assert_eq!(split(&[whole]), expected);
        assert_eq!(split(&pieces), expected);
    }

    #[test]
    fn what_only_looks_like_a_tag_is_text() {
        for text in ["a <think>b</think>", "<thin", " ", "<thinker>"] {
            assert_eq!(split(&[text]), (text.to_owned(), String::new()));
        }
    }
}
