//! Patterns of texts.

use std::fmt;

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
