//! The body of a request as JSON text that grows field by field.

use bytes::Bytes;
use raf_core::{ChatClientRunOptions, Error, Result};
use serde::Serialize;

use crate::scanner::string_end;

/// The JSON text of an object that grows field by field, so that nothing is built as a generic value
/// and pieces that were rendered before are taken as they are. Fields that the run's `extra_body` has
/// are left to it.
#[derive(Debug)]
pub struct BodyWriter<'a> {
    text: Vec<u8>,
    options: &'a ChatClientRunOptions,
}

impl<'a> BodyWriter<'a> {
    /// An object without fields, with room for about so many bytes.
    pub fn new(capacity: usize, options: &'a ChatClientRunOptions) -> Self {
        let mut text = Vec::with_capacity(capacity);
        text.push(b'{');
        Self { text, options }
    }

    /// How many bytes there are so far.
    pub fn position(&self) -> usize {
        self.text.len()
    }

    /// Writes a field.
    ///
    /// # Errors
    /// A value that is no JSON.
    pub fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        if self.options.extra_body.contains_key(name) {
            return Ok(());
        }
        self.key(name);
        serde_json::to_writer(&mut self.text, value).map_err(unwritable)
    }

    /// Writes a field of ready JSON; returns where its value begins.
    pub fn raw_field(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if !self.options.extra_body.contains_key(name) {
            self.key(name);
            let start = self.text.len();
            write(&mut self.text);
            return start;
        }
        self.text.len()
    }

    /// A name that needs no escaping.
    fn key(&mut self, name: &str) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
    }

    /// Adds the fields of `extra_body`, and ends the object.
    ///
    /// # Errors
    /// A value that is no JSON.
    pub fn finish(mut self) -> Result<Bytes> {
        for (name, value) in &self.options.extra_body {
            if self.text.len() > 1 {
                self.text.push(b',');
            }
            serde_json::to_writer(&mut self.text, name).map_err(unwritable)?;
            self.text.push(b':');
            serde_json::to_writer(&mut self.text, value).map_err(unwritable)?;
        }
        self.text.push(b'}');
        Ok(Bytes::from(self.text))
    }
}

fn unwritable(source: serde_json::Error) -> Error {
    Error::misuse("the request cannot be written as JSON").with_source(source)
}

/// Appends a JSON string, escaped as `serde_json` escapes.
pub fn push_string(json: &mut String, text: &str) {
    json.reserve(text.len() + 2);
    json.push('"');
    let mut from = 0;
    loop {
        let end = string_end(text.as_bytes(), from);
        json.push_str(text.get(from..end).unwrap_or_default());
        let Some(byte) = text.as_bytes().get(end) else {
            break;
        };
        from = end + 1;
        json.push_str(match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            control => {
                json.push_str("\\u00");
                let digit = |four_bits: u8| char::from_digit(four_bits.into(), 16);
                json.extend([control >> 4, control & 0xf].into_iter().filter_map(digit));
                continue;
            }
        });
    }
    json.push('"');
}

/// Appends a member whose value is a string, behind others.
pub fn push_member(json: &mut String, name: &str, value: &str) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
    push_string(json, value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::push_string;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn strings_are_escaped_as_serde_json_escapes(
            text in prop_oneof![any::<String>(), "[\u{0}-\u{24}\\\\\u{7f}é𝄞]{0,40}"]
        ) {
            let mut json = String::new();
            push_string(&mut json, &text);
            prop_assert_eq!(json, serde_json::to_string(&text).unwrap());
        }
    }
}
