//! A response as a test scripts it: status, headers, each write, and how it ends.

use serde_json::Value;

use crate::latch::Latch;

/// One response.
///
/// With [`body`](HttpResponse::body) or [`json`](HttpResponse::json) it has a `content-length` and
/// is written at once. With [`write`](HttpResponse::write) it is chunked, and each write is an HTTP
/// chunk of its own, so that a client reads it in just these pieces.
///
/// ```
/// use raf_testing::{HttpResponse, Latch};
///
/// let latch = Latch::new();
/// let response = HttpResponse::new(200)
///     .header("content-type", "text/event-stream")
///     .write("data: 1\n\n")
///     .gate(&latch)
///     .write("data: 2\n\n")
///     .abort();
/// ```
#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) whole: Option<Vec<u8>>,
    pub(super) actions: Vec<Action>,
    pub(super) before_headers: Vec<Action>,
    pub(super) end: End,
    bytes_per_write: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Write(Vec<u8>),
    Gate(Latch),
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Clean,
    CloseAfter,
    Abort,
    Reset,
}

impl HttpResponse {
    /// A response of this status without a body.
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            whole: None,
            actions: Vec::new(),
            before_headers: Vec::new(),
            end: End::Clean,
            bytes_per_write: None,
        }
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status)
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    /// The start of a stream of server-sent events: add [`write`](HttpResponse::write)s or
    /// [`event`](HttpResponse::event)s.
    pub fn events() -> Self {
        Self::new(200).header("content-type", "text/event-stream")
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the whole body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.whole = Some(body.into());
        self
    }

    /// Writes these bytes as one chunk.
    pub fn write(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.actions.push(Action::Write(bytes.into()));
        self
    }

    /// Writes one server-sent event: `data: …` and an empty line.
    pub fn event(self, data: impl AsRef<str>) -> Self {
        self.write(format!("data: {}\n\n", data.as_ref()))
    }

    /// Goes on only when the test opens this latch.
    pub fn gate(mut self, latch: &Latch) -> Self {
        self.actions.push(Action::Gate(latch.clone()));
        self
    }

    /// Sends not even the status line before the test opens this latch.
    pub fn gate_headers(mut self, latch: &Latch) -> Self {
        self.before_headers.push(Action::Gate(latch.clone()));
        self
    }

    /// Sends nothing at all, ever, and keeps the connection open.
    pub fn hang_before_headers(mut self) -> Self {
        self.before_headers.push(Action::Hang);
        self
    }

    /// Never goes on from here, and keeps the connection open.
    pub fn hang(mut self) -> Self {
        self.actions.push(Action::Hang);
        self
    }

    /// Breaks off after the writes: the connection is closed without the body's end.
    pub fn abort(mut self) -> Self {
        self.end = End::Abort;
        self
    }

    /// Breaks off after the writes with a TCP reset.
    pub fn reset(mut self) -> Self {
        self.end = End::Reset;
        self
    }

    /// Ends the body well, then closes the connection.
    pub fn close(mut self) -> Self {
        self.end = End::CloseAfter;
        self.header("connection", "close")
    }

    /// Splits every write into chunks of this many bytes, in the middle of characters too.
    pub fn bytes_per_write(mut self, bytes: usize) -> Self {
        self.bytes_per_write = Some(bytes.max(1));
        self
    }

    pub(super) fn is_chunked(&self) -> bool {
        !self.actions.is_empty() || (self.whole.is_some() && self.bytes_per_write.is_some())
    }

    /// The actions of a chunked body, writes split.
    pub(super) fn chunked_actions(&self) -> Vec<Action> {
        let whole = self.whole.clone().map(Action::Write);
        let all = whole.into_iter().chain(self.actions.iter().cloned());
        let Some(bytes) = self.bytes_per_write else {
            return all.collect();
        };
        all.flat_map(|action| match action {
            Action::Write(data) => data
                .chunks(bytes)
                .map(|piece| Action::Write(piece.to_vec()))
                .collect(),
            other => vec![other],
        })
        .collect()
    }
}
