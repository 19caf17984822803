//! From bytes to the events of an AWS event stream: frames of a length, headers, a payload and two check
//! sums, as Bedrock sends them instead of server-sent events.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::json::Json;
use crate::limits::{Limits, exceeded};

/// Total length, length of the headers, check sum of both.
const PRELUDE: usize = 12;

/// The check sum behind the payload.
const TRAILER: usize = 4;

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// An event, as text.
    Event(String),
    /// The stream failed: the kind of the exception, and its payload.
    Exception {
        /// `throttlingException`, say.
        kind: String,
        /// Mostly `{"message": …}`.
        payload: Vec<u8>,
    },
    /// Bytes that no frame has.
    Garbled,
}

/// Cuts bytes into frames.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    rest: Vec<u8>,
    frame_bytes: usize,
}

/// Whether a body begins as a frame does; nothing as long as that cannot be told.
pub(crate) fn begins_frame(body: &[u8]) -> Option<bool> {
    if body.first().is_some_and(|first| *first != 0) {
        return Some(false);
    }
    let prelude = body.get(..PRELUDE)?;
    Some(check_sum(&prelude[..8]) == number(&prelude[8..]))
}

impl FrameDecoder {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            rest: Vec::new(),
            frame_bytes: limits.event_bytes,
        }
    }

    /// Takes the next bytes in.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// It is larger than the limit allows.
    pub(crate) fn next(&mut self) -> raf_core::Result<Option<Frame>> {
        let Some(length) = self.rest.get(..4).map(number) else {
            return Ok(None);
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > self.frame_bytes {
            return Err(exceeded("event_bytes", self.frame_bytes));
        }
        if length < PRELUDE + TRAILER {
            return Ok(Some(Frame::Garbled));
        }
        if self.rest.len() < length {
            return Ok(None);
        }
        let frame: Vec<u8> = self.rest.drain(..length).collect();
        Ok(Some(read(&frame).unwrap_or(Frame::Garbled)))
    }
}

fn read(frame: &[u8]) -> Option<Frame> {
    let (checked, sum) = frame.split_at_checked(frame.len() - TRAILER)?;
    if check_sum(checked) != number(sum) {
        return None;
    }
    let headers = usize::try_from(number(checked.get(4..8)?)).ok()?;
    let (headers, payload) = checked.get(PRELUDE..)?.split_at_checked(headers)?;
    let headers = read_headers(headers)?;
    let header = |name: &str| {
        let found = headers.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.as_str())
    };
    if let Some("exception" | "error") = header(":message-type") {
        let kind = header(":exception-type").or_else(|| header(":error-code"));
        let payload = match header(":error-message") {
            Some(message) if payload.is_empty() => message.as_bytes(),
            _ => payload,
        };
        return Some(Frame::Exception {
            kind: kind.unwrap_or_default().to_owned(),
            payload: payload.to_vec(),
        });
    }
    let text = std::str::from_utf8(payload).ok()?;
    // Bedrock wraps each event once more.
    let wrapped = Json::parse(text)
        .ok()
        .and_then(|payload| STANDARD.decode(payload.get("bytes")?.as_str()?).ok());
    match wrapped {
        Some(bytes) => String::from_utf8(bytes).ok().map(Frame::Event),
        None => Some(Frame::Event(text.to_owned())),
    }
}

/// The headers whose values are texts.
fn read_headers(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let (length, rest) = match kind {
            0 | 1 => (0, rest),
            2 => (1, rest),
            3 => (2, rest),
            4 => (4, rest),
            5 | 8 => (8, rest),
            6 | 7 => {
                let (length, rest) = rest.split_at_checked(2)?;
                (
                    usize::from(u16::from_be_bytes([length[0], length[1]])),
                    rest,
                )
            }
            9 => (16, rest),
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        if *kind == 7 {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            headers.push((text(name), text(value)));
        }
        bytes = rest;
    }
    Some(headers)
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |number, byte| (number << 8) | u32::from(*byte))
}

/// CRC-32 as in zlib.
fn check_sum(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::{Frame, FrameDecoder, begins_frame, check_sum};
    use crate::limits::Limits;

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut names = Vec::new();
        for (name, value) in headers {
            names.push(u8::try_from(name.len()).unwrap());
            names.extend_from_slice(name.as_bytes());
            names.push(7);
            names.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            names.extend_from_slice(value.as_bytes());
        }
        let total = u32::try_from(16 + names.len() + payload.len()).unwrap();
        let mut bytes = total.to_be_bytes().to_vec();
        bytes.extend_from_slice(&u32::try_from(names.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(&check_sum(&bytes).to_be_bytes());
        bytes.extend_from_slice(&names);
        bytes.extend_from_slice(payload.as_bytes());
        bytes.extend_from_slice(&check_sum(&bytes).to_be_bytes());
        bytes
    }

    #[test]
    fn the_check_sum_is_the_common_one() {
        assert_eq!(check_sum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn frames_are_cut_wherever_the_reads_are() {
        let mut bytes = frame(&[(":message-type", "event")], r#"{"bytes":"eyJhIjoxfQ=="}"#);
        bytes.extend(frame(&[], r#"{"b":2}"#));
        let failed = [(":message-type", "exception"), (":exception-type", "x")];
        bytes.extend(frame(&failed, "{}"));
        for size in [1, 7, bytes.len()] {
            let mut decoder = FrameDecoder::new(&Limits::default());
            let mut frames = Vec::new();
            for read in bytes.chunks(size) {
                decoder.push(read);
                while let Some(frame) = decoder.next().unwrap() {
                    frames.push(frame);
                }
            }
            let failure = Frame::Exception {
                kind: "x".to_owned(),
                payload: b"{}".to_vec(),
            };
            let event = |text: &str| Frame::Event(text.to_owned());
            assert_eq!(frames, [event(r#"{"a":1}"#), event(r#"{"b":2}"#), failure]);
        }
    }

    #[test]
    fn what_was_changed_on_the_way_is_no_frame() {
        let mut bytes = frame(&[], "{}");
        assert_eq!(begins_frame(&bytes), Some(true));
        assert_eq!(begins_frame(b"data: {}"), Some(false));
        assert_eq!(begins_frame(&bytes[..7]), None);
        bytes[13] ^= 1;
        let mut decoder = FrameDecoder::new(&Limits::default());
        decoder.push(&bytes);
        assert_eq!(decoder.next().unwrap(), Some(Frame::Garbled));
    }
}
