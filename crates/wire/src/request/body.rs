//! The body of a request as JSON text that grows field by field.

use bytes::Bytes;
use raf_core::{ChatClientRunOptions, Error, Result};
use serde::Serialize;

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

/// Appends a JSON string.
pub fn push_string(json: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(escaped) => json.push_str(&escaped),
        Err(_) => json.push_str("\"\""),
    }
}

/// Appends a member whose value is a string, behind others.
pub fn push_member(json: &mut String, name: &str, value: &str) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
    push_string(json, value);
}
