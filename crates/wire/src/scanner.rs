//! Reads JSON text in place, value by value, building only what is asked for: for frames that come by
//! the thousand and of which a few members count.
//!
//! It is as strict as a parser: what it takes is JSON, whether it is read or passed over. Whatever it
//! does not take (`None`) may still be JSON of an unusual form; [`Json`](crate::Json) says so.

mod strings;

use std::borrow::Cow;

use crate::json::Json;
use strings::escape;
pub(crate) use strings::{escaped_unit, string_end};

/// How deep values may nest that are read as a tree or passed over.
const DEPTH: usize = 64;

/// A place in a JSON text. Each method reads one value and stands behind it then; after `None` the
/// place means nothing.
#[derive(Clone, Debug)]
pub struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonScanner<'a> {
    /// At the start of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// At a place in a text that a scanner of a text with the same beginning has stood at.
    pub fn at(text: &'a str, place: usize) -> Self {
        Self { text, at: place }
    }

    /// Where it stands.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Passes over a text that is a whole value which was read before, if it comes.
    #[inline]
    pub fn take_text(&mut self, value: &str) -> bool {
        self.peek().is_some() && self.word(value).is_some()
    }

    /// The text from where another scanner of it stands, without blanks before it.
    pub fn text_since(&self, earlier: &Self) -> Option<&'a str> {
        Some(self.text.get(earlier.at..self.at)?.trim_start())
    }

    /// Whether nothing follows but blanks.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Reads an object: each member's value must be read by `member`. A name with escapes is not
    /// taken.
    #[inline]
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Some(());
        }
        loop {
            let name = self.plain_string()?;
            self.expect(b':')?;
            member(self, name)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Reads an object on from behind the value of a member.
    #[inline]
    pub fn rest_of_object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        while self.take(b',') {
            let name = self.plain_string()?;
            self.expect(b':')?;
            member(self, name)?;
        }
        self.expect(b'}')
    }

    /// Reads a list: each item must be read by `item`.
    #[inline]
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Some(());
        }
        loop {
            item(self)?;
            if !self.take(b',') {
                return self.end_of_array();
            }
        }
    }

    /// Reads the end of a list, behind its last item.
    #[inline]
    pub fn end_of_array(&mut self) -> Option<()> {
        self.expect(b']')
    }

    /// Reads a string; copied only if it has escapes.
    #[inline]
    pub fn string(&mut self) -> Option<Cow<'a, str>> {
        self.expect(b'"')?;
        let end = string_end(self.text.as_bytes(), self.at);
        match self.text.as_bytes().get(end)? {
            b'"' => {
                let plain = self.text.get(self.at..end)?;
                self.at = end + 1;
                Some(Cow::Borrowed(plain))
            }
            b'\\' => self.escaped_string(end).map(Cow::Owned),
            _ => None,
        }
    }

    /// Reads a whole number that is not negative.
    #[inline]
    pub fn count(&mut self) -> Option<u64> {
        self.peek()?;
        let digits = self.text.as_bytes().get(self.at..)?;
        let mut count: u64 = 0;
        let mut length = 0;
        while let Some(digit) = digits.get(length).filter(|byte| byte.is_ascii_digit()) {
            count = count
                .checked_mul(10)?
                .checked_add(u64::from(digit - b'0'))?;
            length += 1;
        }
        let has_leading_zero = length > 1 && digits[0] == b'0';
        let goes_on = matches!(digits.get(length), Some(b'.' | b'e' | b'E'));
        if length == 0 || has_leading_zero || goes_on {
            return None;
        }
        self.at += length;
        Some(count)
    }

    /// Reads `null`, if that is what comes.
    #[inline]
    pub fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word("null").is_some()
    }

    /// Reads a value that says nothing: `null`, `false`, or an empty text, list or object.
    #[inline]
    pub fn nothing(&mut self) -> Option<()> {
        match self.peek()? {
            b'n' => self.word("null"),
            b'f' => self.word("false"),
            b'"' => self.word("\"\""),
            b'[' => self.array(|_| None),
            _ => self.object(|_, _| None),
        }
    }

    /// Reads any value; its text.
    #[inline]
    pub fn raw(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// Reads any value as a tree: the same as [`Json::parse`] makes of its text.
    pub fn value(&mut self) -> Option<Json> {
        self.value_within(DEPTH)
    }

    fn value_within(&mut self, depth: usize) -> Option<Json> {
        Some(match self.peek()? {
            b'"' => Json::String(self.string()?.into_owned()),
            b'n' => self.word("null").map(|()| Json::Null)?,
            b't' => self.word("true").map(|()| Json::Bool(true))?,
            b'f' => self.word("false").map(|()| Json::Bool(false))?,
            b'{' => {
                let depth = depth.checked_sub(1)?;
                let mut members = Vec::new();
                self.object(|scanner, name| {
                    let value = scanner.value_within(depth)?;
                    members.push((name.to_owned(), value));
                    Some(())
                })?;
                Json::Object(members)
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                let mut items = Vec::new();
                self.array(|scanner| {
                    items.push(scanner.value_within(depth)?);
                    Some(())
                })?;
                Json::Array(items)
            }
            _ => {
                let start = self.at;
                self.number()?;
                let digits = self.text.get(start..self.at)?;
                Json::Number(match digits.parse::<u64>() {
                    Ok(count) => count.into(),
                    Err(_) => digits.parse().ok()?,
                })
            }
        })
    }

    /// Passes over any value.
    #[inline]
    pub fn skip(&mut self) -> Option<()> {
        self.skip_within(DEPTH)
    }

    fn skip_within(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'{' => {
                let depth = depth.checked_sub(1)?;
                self.object(|scanner, _| scanner.skip_within(depth))
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                self.array(|scanner| scanner.skip_within(depth))
            }
            _ => self.number(),
        }
    }

    /// The next byte that is no blank.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    #[inline]
    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        rest.starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
        })
    }

    #[inline]
    fn plain_string(&mut self) -> Option<&'a str> {
        match self.string()? {
            Cow::Borrowed(plain) => Some(plain),
            Cow::Owned(_) => None,
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        let bytes = self.text.as_bytes();
        loop {
            let end = string_end(bytes, self.at);
            match bytes.get(end)? {
                b'"' => {
                    self.at = end + 1;
                    return Some(());
                }
                b'\\' => self.at = escape(bytes, end)?.1,
                _ => return None,
            }
        }
    }

    /// Reads a string on from its first escape.
    fn escaped_string(&mut self, mut end: usize) -> Option<String> {
        let bytes = self.text.as_bytes();
        let mut string = String::with_capacity(end - self.at + 32);
        loop {
            string.push_str(self.text.get(self.at..end)?);
            match bytes.get(end)? {
                b'"' => {
                    self.at = end + 1;
                    return Some(string);
                }
                b'\\' => {
                    let (meant, behind) = escape(bytes, end)?;
                    string.push(meant);
                    self.at = behind;
                }
                _ => return None,
            }
            end = string_end(bytes, self.at);
        }
    }

    fn number(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let digits = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            from + count
        };
        let start = self.at + usize::from(bytes.get(self.at) == Some(&b'-'));
        let mut end = digits(start);
        let has_leading_zero = bytes.get(start) == Some(&b'0') && end > start + 1;
        if end == start || has_leading_zero {
            return None;
        }
        if bytes.get(end) == Some(&b'.') {
            let start = end + 1;
            end = digits(start);
            (end > start).then_some(())?;
        }
        let has_exponent = matches!(bytes.get(end), Some(b'e' | b'E'));
        if has_exponent {
            let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
            let start = end + 1 + usize::from(sign);
            end = digits(start);
            (end > start).then_some(())?;
        }
        // What is beyond a double's range is no number for the parser either; short ones are within.
        if has_exponent || end - self.at > 300 {
            let number: f64 = self.text.get(self.at..end)?.parse().ok()?;
            number.is_finite().then_some(())?;
        }
        self.at = end;
        Some(())
    }
}

#[cfg(test)]
mod tests;
