//! How much a server may send, and how long it may take.

use std::time::Duration;

use raf_core::{Error, ErrorKind};

/// How much of a reply is taken in. Whatever goes beyond ends the stream with an error of kind
/// [`ErrorKind::Protocol`](raf_core::ErrorKind::Protocol) that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one line of an event stream. 8 MiB by default.
    pub line_bytes: usize,
    /// Bytes of one event, all its data lines together. 16 MiB by default.
    pub event_bytes: usize,
    /// Events of one reply. 4,000,000 by default.
    pub events: u64,
    /// Bytes of a body that is no event stream. 64 MiB by default.
    pub body_bytes: usize,
    /// Bytes of all events of one reply together. 512 MiB by default.
    pub stream_bytes: u64,
    /// Tool calls of one reply. 128 by default.
    pub calls: usize,
    /// Bytes of the argument text of one call. 4 MiB by default.
    pub argument_bytes: usize,
}

const MIB: usize = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 8 * MIB,
            event_bytes: 16 * MIB,
            events: 4_000_000,
            body_bytes: 64 * MIB,
            stream_bytes: 512 * MIB as u64,
            calls: 128,
            argument_bytes: 4 * MIB,
        }
    }
}

impl Limits {
    /// Sets the most bytes of one line.
    pub fn with_line_bytes(mut self, bytes: usize) -> Self {
        self.line_bytes = bytes;
        self
    }

    /// Sets the most bytes of one event.
    pub fn with_event_bytes(mut self, bytes: usize) -> Self {
        self.event_bytes = bytes;
        self
    }

    /// Sets the most events of one reply.
    pub fn with_events(mut self, events: u64) -> Self {
        self.events = events;
        self
    }

    /// Sets the most bytes of a body that is no event stream.
    pub fn with_body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Sets the most bytes of all events together.
    pub fn with_stream_bytes(mut self, bytes: u64) -> Self {
        self.stream_bytes = bytes;
        self
    }

    /// Sets the most tool calls of one reply.
    pub fn with_calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the most bytes of the argument text of one call.
    pub fn with_argument_bytes(mut self, bytes: usize) -> Self {
        self.argument_bytes = bytes;
        self
    }
}

/// The error of a limit that was passed.
pub fn exceeded(limit: &'static str, most: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the reply is larger than the limit '{limit}' ({most}) allows; raise it in Limits if the server is right"),
    )
    .with_context("limit", limit)
}

/// How long the parts of an exchange may take. There is no limit on a stream as a whole: a reply may
/// take as long as it moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// To make the connection. 15 s by default. Has no effect with a `reqwest::Client` of the
    /// caller's own, which brings its own setting.
    pub connect: Duration,
    /// From the request to the first byte of the reply's body: includes the time in which a model
    /// reasons in silence, and all of it when the reply is not streamed. 10 minutes by default.
    pub first_byte: Duration,
    /// Between two reads. 5 minutes by default.
    pub idle: Duration,
    /// Between two events, where a server sends nothing but comments and pings. 10 minutes by
    /// default, the longest that DeepSeek documents for its `: keep-alive`.
    pub stall: Duration,
    /// After the finish reason, for the usage and the end mark that follow. 5 s by default; when it
    /// has passed, the reply ends well.
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            stall: Duration::from_secs(600),
            linger: Duration::from_secs(5),
        }
    }
}

impl Timeouts {
    /// Sets how long making the connection may take.
    pub fn with_connect(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// Sets how long the first byte may take.
    pub fn with_first_byte(mut self, limit: Duration) -> Self {
        self.first_byte = limit;
        self
    }

    /// Sets how long may pass between two reads.
    pub fn with_idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// Sets how long may pass between two events.
    pub fn with_stall(mut self, limit: Duration) -> Self {
        self.stall = limit;
        self
    }

    /// Sets how long is waited after the finish reason.
    pub fn with_linger(mut self, limit: Duration) -> Self {
        self.linger = limit;
        self
    }
}
