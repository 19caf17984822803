//! The argument text of a call, of the up to five texts that a server gives.

use std::borrow::Cow;

use raf_wire::Json;
use raf_wire::arguments::{is_filled_object, is_object};
use serde::de::IgnoredAny;

/// The texts that came, by where they came.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// With `function_call_arguments.done`.
    pub(super) done: String,
    /// With the item that is done.
    pub(super) of_item: String,
    /// With the final output.
    pub(super) of_output: String,
    /// Pieces, joined.
    pub(super) pieces: String,
    /// With the announcement.
    pub(super) announced: String,
}

/// The text that counts, and whether nothing is missing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) text: String,
    pub(super) is_whole: bool,
}

impl Arguments {
    fn texts(&self) -> [&str; 5] {
        [
            &self.done,
            &self.of_item,
            &self.of_output,
            &self.pieces,
            &self.announced,
        ]
    }

    /// Takes in a piece.
    pub(super) fn push(&mut self, piece: &str) {
        if self.pieces.is_empty() {
            // Most texts have no more.
            self.pieces.reserve(piece.len().max(64));
        }
        self.pieces.push_str(piece);
    }

    /// How many bytes are kept.
    pub(super) fn size(&self) -> usize {
        self.texts()
            .iter()
            .map(|text| text.len())
            .max()
            .unwrap_or(0)
    }

    /// The first text that is an object with something in it; else the first that can be read; else
    /// the first, as it came. None, blanks and `null` are `{}`, unless the response was cut.
    pub(super) fn settle(&self, was_cut: bool) -> Settled {
        let texts = self.texts();
        let says = |text: &&&str| !matches!(text.trim(), "" | "null");
        let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
        let said = || texts.iter().filter(says);
        let best = said()
            .find(|text| is_filled_object(text))
            .or_else(|| said().find(|text| is_json(text)))
            .or_else(|| said().next());
        match best {
            Some(text) => Settled {
                text: (*text).to_owned(),
                is_whole: !was_cut || is_object(text),
            },
            None => Settled {
                text: if was_cut {
                    String::new()
                } else {
                    "{}".to_owned()
                },
                is_whole: !was_cut,
            },
        }
    }

    /// The first text: what a custom tool is given is any text.
    pub(super) fn free_text(&self) -> &str {
        let texts = self.texts();
        texts
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("")
    }
}

/// The text of a member that may be an object instead.
pub(super) fn member_text<'a>(item: &'a Json, name: &str) -> Cow<'a, str> {
    match item.present(name) {
        None => Cow::Borrowed(""),
        Some(Json::String(text)) => Cow::Borrowed(text),
        Some(value) => Cow::Owned(value.to_text()),
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn arguments(done: &str, pieces: &str, announced: &str) -> Arguments {
        Arguments {
            done: done.to_owned(),
            pieces: pieces.to_owned(),
            announced: announced.to_owned(),
            ..Arguments::default()
        }
    }

    #[test]
    fn the_first_that_says_something_counts() {
        for (given, counts) in [
            (arguments("", r#"{"a":1}"#, "{}"), r#"{"a":1}"#),
            (arguments(r#"{"a":1}"#, r#"{"a":"#, ""), r#"{"a":1}"#),
            (arguments("{}", "", r#"{"b":2}"#), r#"{"b":2}"#),
            (arguments("{}", "{\"a\"", ""), "{}"),
            (arguments("{city: Paris}", "", ""), "{city: Paris}"),
            (arguments("null", " ", ""), "{}"),
            (arguments("{\"a\": ", "", ""), "{\"a\": "),
        ] {
            let settled = given.settle(false);
            assert_eq!(settled.text, counts, "{given:?}");
            assert!(settled.is_whole);
        }
    }

    #[test]
    fn of_a_response_that_was_cut_only_whole_objects_count() {
        assert!(!arguments("", "{\"ci", "").settle(true).is_whole);
        assert!(!arguments("", "", "").settle(true).is_whole);
        assert!(arguments("", "{}", "").settle(true).is_whole);
    }
}
