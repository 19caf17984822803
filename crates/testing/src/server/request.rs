//! A request as the server read it.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

/// One request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpRequest {
    /// Which connection it came over, from 0.
    pub connection: usize,
    /// `POST`, say.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as text, byte for byte where it is UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Reads the next request; nothing if the client closed the connection or speaks no HTTP.
///
/// What was read beyond the request stays in `buffer`.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    connection: usize,
) -> Option<HttpRequest> {
    let head_end = read_until(stream, buffer, b"\r\n\r\n").await?;
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    buffer.drain(..head_end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let mut request = HttpRequest {
        connection,
        method: first.next()?.to_owned(),
        path: first.next()?.to_owned(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: Vec::new(),
    };
    let is_chunked = request
        .header("transfer-encoding")
        .is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    request.body = if is_chunked {
        read_chunks(stream, buffer).await?
    } else {
        let length = request.header("content-length").unwrap_or("0");
        take(stream, buffer, length.parse().ok()?).await?
    };
    Some(request)
}

async fn read_chunks(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line_end = read_until(stream, buffer, b"\r\n").await?;
        let line = String::from_utf8_lossy(&buffer[..line_end]).into_owned();
        buffer.drain(..line_end + 2);
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        body.extend(take(stream, buffer, size).await?);
        take(stream, buffer, 2).await?;
        if size == 0 {
            return Some(body);
        }
    }
}

async fn take(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    length: usize,
) -> Option<Vec<u8>> {
    if length > MOST_BYTES {
        return None;
    }
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    Some(buffer.drain(..length).collect())
}

async fn read_until(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    end: &[u8],
) -> Option<usize> {
    loop {
        let found = buffer.windows(end.len()).position(|window| window == end);
        if found.is_some() {
            return found;
        }
        more(stream, buffer).await?;
    }
}

async fn more(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(count) if count > 0 && buffer.len() <= MOST_BYTES => Some(()),
        _ => None,
    }
}
