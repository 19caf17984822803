//! From the bytes of a body to what they say: an event stream, frames of AWS, or JSON, told apart by the
//! first bytes and not by what the headers claim.

use raf_core::Result;
use serde_json::Deserializer;

use crate::aws_events::{Frame, FrameDecoder, begins_frame};
use crate::error::read_body;
use crate::json::{Json, repair};
use crate::limits::{Limits, exceeded};
use crate::reply::WireReply;
use crate::sse::{EventDecoder, EventSink};

/// Decodes one body: an event stream, frames of AWS, JSON lines, or JSON, told apart by the first bytes and not by
/// what the headers claim.
#[derive(Debug)]
pub struct Decoder {
    form: Form,
    events: EventDecoder,
    frames: FrameDecoder,
    limits: Limits,
    event_count: u64,
    byte_count: u64,
    /// Bytes of which the form is not known, or a JSON body.
    body: Vec<u8>,
    /// The first line of a JSON body has been looked at.
    saw_first_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Events,
    Frames,
    Json,
}

impl Decoder {
    /// A decoder of a body that has not begun.
    pub fn new(limits: &Limits) -> Self {
        Self {
            form: Form::Unknown,
            events: EventDecoder::new(limits),
            frames: FrameDecoder::new(limits),
            limits: *limits,
            event_count: 0,
            byte_count: 0,
            body: Vec::new(),
            saw_first_line: false,
        }
    }

    /// Takes the next bytes in; returns whether an event was among them.
    pub fn push<R: WireReply>(&mut self, bytes: &[u8], reply: &mut R) -> Result<bool> {
        self.byte_count += bytes.len() as u64;
        if self.byte_count > self.limits.stream_bytes {
            return Err(exceeded("stream_bytes", self.limits.stream_bytes));
        }
        match self.form {
            Form::Events => return self.push_events(bytes, reply),
            Form::Frames => return self.push_frames(bytes, reply),
            Form::Unknown | Form::Json => {}
        }
        if self.body.len() + bytes.len() > self.limits.body_bytes {
            return Err(exceeded("body_bytes", self.limits.body_bytes));
        }
        self.body.extend_from_slice(bytes);
        if self.form == Form::Unknown {
            self.form = form_of(&self.body, reply)?;
        }
        if self.form == Form::Json && self.is_json_lines::<R>() {
            self.form = Form::Events;
        }
        match self.form {
            Form::Events => {
                let body = std::mem::take(&mut self.body);
                self.push_events(&body, reply)
            }
            Form::Frames => {
                let body = std::mem::take(&mut self.body);
                self.push_frames(&body, reply)
            }
            Form::Unknown | Form::Json => Ok(false),
        }
    }

    /// Whether the body is a stream whose events are bare JSON lines: told by its first line, once.
    fn is_json_lines<R: WireReply>(&mut self) -> bool {
        if self.saw_first_line {
            return false;
        }
        let start = self
            .body
            .iter()
            .position(|byte| matches!(byte, b'{' | b'['));
        let Some(line) = start.map(|start| &self.body[start..]) else {
            return false;
        };
        let Some(end) = memchr::memchr2(b'\n', b'\r', line) else {
            return false;
        };
        self.saw_first_line = true;
        let line = String::from_utf8_lossy(&line[..end]);
        Json::parse_repaired(line.trim()).is_ok_and(|value| R::begins_stream(&value))
    }

    /// Takes in that the body has ended cleanly.
    pub fn finish(&mut self, reply: &mut impl WireReply) -> Result<()> {
        match self.form {
            Form::Unknown if self.body.iter().all(u8::is_ascii_whitespace) => {
                Err(reply.reporter().empty())
            }
            Form::Unknown | Form::Events => {
                let body = std::mem::take(&mut self.body);
                self.push_events(&body, reply)?;
                let mut sink = FrameSink { reply, events: 0 };
                self.events.finish(&mut sink)?;
                self.event_count += sink.events;
                if self.event_count == 0 && !reply.has_ended() {
                    return Err(if self.events.saw_noise() {
                        reply
                            .reporter()
                            .protocol("answered with neither an event stream nor JSON")
                    } else {
                        reply.reporter().empty()
                    });
                }
                Ok(())
            }
            Form::Frames => Ok(()),
            Form::Json => self.finish_json(reply),
        }
    }

    fn push_events(&mut self, bytes: &[u8], reply: &mut impl WireReply) -> Result<bool> {
        let mut sink = FrameSink { reply, events: 0 };
        self.events.push(bytes, &mut sink)?;
        self.event_count += sink.events;
        if self.event_count > self.limits.events {
            return Err(exceeded("events", self.limits.events));
        }
        Ok(sink.events > 0)
    }

    fn push_frames(&mut self, bytes: &[u8], reply: &mut impl WireReply) -> Result<bool> {
        self.frames.push(bytes);
        let mut sink = FrameSink { reply, events: 0 };
        while let Some(frame) = self.frames.next()? {
            match frame {
                Frame::Event(text) => sink.event(b"", text.as_bytes())?,
                Frame::Exception { kind, payload } => {
                    let mut found = read_body(&payload);
                    found.codes.insert(0, kind);
                    return Err(sink.reply.in_band_error(&found));
                }
                Frame::Garbled => return Err(sink.reply.reporter().garbled()),
            }
        }
        self.event_count += sink.events;
        Ok(sink.events > 0)
    }

    /// One JSON document, or several; perhaps with events behind it.
    fn finish_json(&mut self, reply: &mut impl WireReply) -> Result<()> {
        let body = std::mem::take(&mut self.body);
        let text = String::from_utf8_lossy(&body);
        let text = text.trim_start_matches('\u{feff}');
        let (values, rest, fault) = documents(text);
        let (values, rest, fault) = match fault {
            Some(_) if values.is_empty() => {
                let repaired = repair(text).into_owned();
                let (values, rest, fault) = documents(&repaired);
                (values, rest.to_owned(), fault)
            }
            fault => (values, rest.to_owned(), fault),
        };
        if values.is_empty() {
            return Err(match fault {
                Some(error) if error.is_eof() => reply.reporter().truncated(),
                _ => reply
                    .reporter()
                    .protocol("answered with something that is no JSON"),
            });
        }
        for value in &values {
            apply_frame("", value, reply)?;
            reply.document_ends(value);
        }
        let rest = rest.trim_start();
        if is_end_mark(rest) {
            reply.end_mark();
        }
        if rest.starts_with("data:") || rest.starts_with("event:") {
            self.push_events(rest.as_bytes(), reply)?;
            let mut sink = FrameSink { reply, events: 0 };
            self.events.finish(&mut sink)?;
        }
        reply.body_ends(&values)
    }
}

/// What kind of body begins so, as far as that can be told.
fn form_of(body: &[u8], reply: &impl WireReply) -> Result<Form> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if body.len() < MARK.len() && MARK.starts_with(body) {
        return Ok(Form::Unknown);
    }
    let start = body.strip_prefix(MARK).unwrap_or(body);
    let Some(at) = start.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return Ok(Form::Unknown);
    };
    match start[at] {
        0 => Ok(match begins_frame(&start[at..]) {
            None => Form::Unknown,
            Some(true) => Form::Frames,
            Some(false) => Form::Events,
        }),
        b'{' | b'[' => Ok(Form::Json),
        b'<' => Err(reply.reporter().html_page()),
        0x1f => Err(reply
            .reporter()
            .protocol("answered with compressed bytes, though none were asked for")),
        _ => Ok(Form::Events),
    }
}

/// The JSON documents at the start of a text, what follows them, and the fault that ended them.
fn documents(text: &str) -> (Vec<Json>, &str, Option<serde_json::Error>) {
    let mut values = Vec::new();
    let mut stream = Deserializer::from_str(text).into_iter::<Json>();
    let mut end = 0;
    loop {
        match stream.next() {
            Some(Ok(value)) => {
                values.push(value);
                end = stream.byte_offset();
            }
            Some(Err(error)) => return (values, &text[end..], Some(error)),
            None => return (values, "", None),
        }
    }
}

/// Takes a frame in, whatever its form.
fn apply_frame(name: &str, value: &Json, reply: &mut impl WireReply) -> Result<()> {
    match value {
        Json::Object(_) => reply.frame(name, value),
        Json::Array(items) => items
            .iter()
            .try_for_each(|item| apply_frame(name, item, reply)),
        Json::Null => Ok(()),
        _ if reply.has_ended() => Ok(()),
        _ => Err(reply
            .reporter()
            .protocol("sent an event that is JSON, but no object")),
    }
}

struct FrameSink<'a, R> {
    reply: &'a mut R,
    events: u64,
}

impl<R: WireReply> EventSink for FrameSink<'_, R> {
    #[inline]
    fn line(&mut self, name: &[u8], data: &[u8]) -> Result<bool> {
        if self.reply.is_done() {
            return Ok(true);
        }
        if name == b"error" {
            return Ok(false);
        }
        let Ok(text) = std::str::from_utf8(data) else {
            return Ok(false);
        };
        if self.reply.line(name, text)? {
            self.events += 1;
            return Ok(true);
        }
        if is_end_mark(text) {
            self.events += 1;
            self.reply.end_mark();
            return Ok(true);
        }
        let text = text.trim();
        if text.starts_with('{')
            && text.ends_with('}')
            && let Ok(value) = Json::parse_repaired(text)
            && self.reply.is_frame(&value)
        {
            self.events += 1;
            self.reply.frame(&String::from_utf8_lossy(name), &value)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn event(&mut self, name: &[u8], data: &[u8]) -> Result<()> {
        if self.reply.is_done() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(data);
        let text = payload(&text);
        // A comment that was wrapped in a data line once more says nothing, and so does a blank.
        if name != b"error" && (text.is_empty() || text.starts_with(':')) {
            return Ok(());
        }
        self.events += 1;
        if name == b"error" {
            return self.reply.error_event(text);
        }
        if is_end_mark(text) {
            self.reply.end_mark();
            return Ok(());
        }
        let event = String::from_utf8_lossy(name);
        if let Ok(value) = Json::parse_repaired(text) {
            return apply_frame(&event, &value, self.reply);
        }
        let lines: Vec<&str> = text
            .lines()
            .map(payload)
            .filter(|line| !line.is_empty())
            .collect();
        let is_frame = |line: &&str| {
            is_end_mark(line) || line.starts_with(':') || Json::parse_repaired(line).is_ok()
        };
        if lines.len() > 1 && lines.iter().all(is_frame) {
            return lines
                .iter()
                .try_for_each(|line| self.event(b"", line.as_bytes()));
        }
        if self.reply.has_ended() {
            return Ok(());
        }
        Err(self.reply.reporter().garbled())
    }
}

/// The payload of a data line: some relays add the prefix twice, or blanks around it.
fn payload(data: &str) -> &str {
    let mut text = data.trim();
    while let Some(inner) = text.strip_prefix("data:") {
        text = inner.trim_start();
    }
    text
}

/// `[DONE]`, in whatever case, bare or as a JSON string.
fn is_end_mark(text: &str) -> bool {
    let text = text.trim();
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    text.eq_ignore_ascii_case("[DONE]")
}
