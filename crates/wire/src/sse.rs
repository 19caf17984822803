//! From bytes to events of an event stream: what the standard says, and what servers do.
//!
//! Lines end in LF, CR or CRLF, mixed and cut anywhere. Where servers leave the standard:
//! - a bare JSON line counts as data, and a field named `error` as an event of that name;
//! - a data line that the sink takes by itself is an event (servers that send one line end between
//!   events instead of two);
//! - the last event needs no blank line if the stream ends cleanly;
//! - field names count in any case.
//!
//! Everything is cut on bytes in place; only the tail of a read is copied.
//!
//! It replaces the crate eventsource-stream, with which it agrees on whatever is common (a property
//! test beside this file says so). That one drops an event that is open when the stream ends, which
//! nearly all servers leave so at some time (wire cases 169, 170); fails on bytes that are no UTF-8
//! (179); passes over fields named `error` (134) and bare JSON (135); holds back the last event where
//! lines end in CR alone; has no bound on what it keeps; and costs more than the rest of the decoding.

use memchr::memchr2;

use crate::limits::{Limits, exceeded};

/// What takes the events.
pub trait EventSink {
    /// Takes a data line that could stand for a whole event. `false` if it is not whole: it is kept
    /// and comes again with the rest of its event.
    fn line(&mut self, name: &[u8], data: &[u8]) -> raf_core::Result<bool>;

    /// Takes an event: its name, empty if it has none, and its data lines joined by LF.
    fn event(&mut self, name: &[u8], data: &[u8]) -> raf_core::Result<()>;
}

/// Cuts bytes into events.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says what has come so far"
)]
pub struct EventDecoder {
    line_bytes: usize,
    event_bytes: usize,
    /// The start of a line whose end has not come.
    rest: Vec<u8>,
    /// The last byte was CR: an LF that follows belongs to it.
    after_return: bool,
    first_line: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    saw_noise: bool,
}

impl EventDecoder {
    /// A decoder of a stream that has not begun.
    pub fn new(limits: &Limits) -> Self {
        Self {
            line_bytes: limits.line_bytes,
            event_bytes: limits.event_bytes,
            rest: Vec::new(),
            after_return: false,
            first_line: true,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            saw_noise: false,
        }
    }

    /// Whether there were lines that no event stream has.
    pub fn saw_noise(&self) -> bool {
        self.saw_noise
    }

    /// Takes the next bytes in.
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut impl EventSink) -> raf_core::Result<()> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            if self.rest.is_empty() {
                self.check_line(end)?;
                self.line(&bytes[..end], sink)?;
            } else {
                self.check_line(self.rest.len() + end)?;
                let mut line = std::mem::take(&mut self.rest);
                line.extend_from_slice(&bytes[..end]);
                self.line(&line, sink)?;
                line.clear();
                self.rest = line;
            }
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_return {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
        }
        self.check_line(self.rest.len() + bytes.len())?;
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes in that the stream has ended cleanly.
    pub fn finish(&mut self, sink: &mut impl EventSink) -> raf_core::Result<()> {
        let line = std::mem::take(&mut self.rest);
        if !line.is_empty() {
            self.line(&line, sink)?;
        }
        self.dispatch(sink)
    }

    fn check_line(&self, length: usize) -> raf_core::Result<()> {
        if length > self.line_bytes {
            return Err(exceeded("line_bytes", self.line_bytes));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], sink: &mut impl EventSink) -> raf_core::Result<()> {
        let mut line = line;
        if self.first_line {
            self.first_line = false;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            return self.data_line(without_space(value), sink);
        }
        if let Some(value) = line.strip_prefix(b"event:") {
            self.is_named(without_space(value));
            return Ok(());
        }
        match line.first() {
            None => return self.dispatch(sink),
            Some(b':') => return Ok(()),
            Some(b'{' | b'[') => return self.data_line(line, sink),
            Some(_) => {}
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], without_space(&line[colon + 1..])),
            None => (line, &line[line.len()..]),
        };
        match field.to_ascii_lowercase().as_slice() {
            b"data" => self.data_line(value, sink),
            b"event" => {
                self.is_named(value);
                Ok(())
            }
            b"error" => sink.event(b"error", value),
            b"id" | b"retry" => Ok(()),
            _ => {
                self.saw_noise = true;
                Ok(())
            }
        }
    }

    /// The name of the event that follows.
    fn is_named(&mut self, name: &[u8]) {
        self.name.clear();
        self.name.extend_from_slice(name);
    }

    fn data_line(&mut self, data: &[u8], sink: &mut impl EventSink) -> raf_core::Result<()> {
        if self.has_data {
            self.data.push(b'\n');
        } else if sink.line(&self.name, data)? {
            return Ok(());
        }
        if self.data.len() + data.len() > self.event_bytes {
            return Err(exceeded("event_bytes", self.event_bytes));
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut impl EventSink) -> raf_core::Result<()> {
        if self.has_data {
            self.has_data = false;
            sink.event(&self.name, &self.data)?;
            self.data.clear();
        }
        self.name.clear();
        Ok(())
    }
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

#[cfg(test)]
mod tests;
