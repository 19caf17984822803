//! A text that comes in pieces and again as a whole: each character of it is said once.

/// A text in parts, as far as it has come. Pieces make it; a whole that comes later only fills what is
/// missing at its end.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    /// By the server's number of the part, in order of arrival.
    parts: Vec<(u64, String)>,
    whole: String,
}

impl Spoken {
    pub(super) fn whole(&self) -> &str {
        &self.whole
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Takes a piece in.
    pub(super) fn push(&mut self, part: u64, piece: &str) {
        self.whole.push_str(piece);
        match self.parts.last_mut().filter(|(of, _)| *of == part) {
            Some((_, text)) => text.push_str(piece),
            None => match self.parts.iter_mut().find(|(of, _)| *of == part) {
                Some((_, text)) => text.push_str(piece),
                None => self.parts.push((part, piece.to_owned())),
            },
        }
    }

    /// Whether this part has begun.
    pub(super) fn has_part(&self, part: u64) -> bool {
        self.parts.iter().any(|(of, _)| *of == part)
    }

    /// What a part as a whole adds. vLLM counts the parts up with each token, and gives the whole text
    /// under the last number (vllm-project/vllm#35184).
    pub(super) fn missing_of_part<'a>(&self, part: u64, text: &'a str) -> &'a str {
        if text == self.whole {
            return "";
        }
        let known = self.parts.iter().find(|(of, _)| *of == part);
        match known {
            Some((_, begun)) => text.strip_prefix(begun.as_str()).unwrap_or(""),
            None if self.whole.is_empty() => text,
            None => text.strip_prefix(self.whole.as_str()).unwrap_or(text),
        }
    }

    /// What the item's text as a whole adds. One that ends with what is there was taken up in the
    /// middle, and its beginning is not known as missing.
    pub(super) fn missing_of_whole<'a>(&self, text: &'a str) -> &'a str {
        text.strip_prefix(self.whole.as_str()).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::Spoken;

    #[test]
    fn a_whole_adds_what_is_missing_and_nothing_twice() {
        let mut text = Spoken::default();
        assert_eq!(text.missing_of_part(0, "Hello"), "Hello");
        text.push(0, "Hel");
        assert_eq!(text.missing_of_part(0, "Hello"), "lo");
        assert_eq!(text.missing_of_whole("Hello world"), "lo world");
        text.push(0, "lo");
        assert_eq!(text.missing_of_part(0, "Hello"), "");
        assert_eq!(text.missing_of_part(1, " again"), " again");
        assert_eq!(text.missing_of_whole("Say Hello"), "");
    }

    #[test]
    fn a_number_that_grows_with_each_piece_is_one_text() {
        let mut text = Spoken::default();
        for (part, piece) in (0..).zip(["a", "a", "b"]) {
            text.push(part, piece);
        }
        assert_eq!(text.missing_of_part(3, "aab"), "");
        assert_eq!(text.missing_of_part(2, "aab"), "");
        assert_eq!(text.missing_of_part(3, "aabc"), "c");
    }
}
