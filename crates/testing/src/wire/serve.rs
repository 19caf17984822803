//! A loopback server with control of each read: what a case says is sent, chunk by chunk.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last chunk, then a clean close.
    Eof,
    /// The connection is dropped in the middle of the body.
    Abort,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

/// How a body is cut into chunks, each of which is one read of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// As the case has it: at the ends of events, mostly.
    AsWritten,
    /// All at once.
    Whole,
    /// So many bytes each.
    Bytes(usize),
    /// Pieces of 1 to 64 bytes, as this number says.
    Random(u64),
}

impl Cut {
    /// Every cut in which a case must give the same.
    pub const ALL: [Self; 5] = [
        Self::AsWritten,
        Self::Whole,
        Self::Bytes(7),
        Self::Bytes(1),
        Self::Random(0x9e37_79b9_7f4a_7c15),
    ];

    /// The lengths of the pieces, without end.
    fn lengths(self) -> impl Iterator<Item = usize> {
        let mut state = match self {
            Self::Random(seed) => seed | 1,
            _ => 1,
        };
        std::iter::repeat_with(move || match self {
            Self::AsWritten | Self::Whole => usize::MAX,
            Self::Bytes(length) => length.max(1),
            Self::Random(_) => {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state % 64).unwrap_or(0) + 1
            }
        })
    }
}

/// One reply.
#[derive(Clone, Debug)]
pub struct WireReply {
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// The body, read by read.
    pub reads: Vec<Vec<u8>>,
    /// How it is cut anew.
    pub cut: Cut,
    /// How it ends.
    pub end: End,
}

/// Serves one connection after the other with the reply; returns the base URL, which ends in `/v1`, and
/// the future that serves, which the caller polls beside its client.
///
/// # Panics
/// No port is free on loopback.
pub async fn serve(reply: WireReply) -> (String, impl Future<Output = ()>) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let serving = async move {
        loop {
            let Ok((mut socket, _)) = listener.accept().await else {
                return;
            };
            let _ = answer(&mut socket, &reply).await;
        }
    };
    (format!("http://{address}/v1"), serving)
}

async fn answer(socket: &mut TcpStream, reply: &WireReply) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    read_request(socket).await?;
    let mut bytes = format!("HTTP/1.1 {} Case\r\n", reply.status).into_bytes();
    for (name, value) in &reply.headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    let joined = (reply.cut != Cut::AsWritten).then(|| vec![reply.reads.concat()]);
    let mut lengths = reply.cut.lengths();
    for read in joined.as_ref().unwrap_or(&reply.reads) {
        let mut rest = read.as_slice();
        while !rest.is_empty() {
            let length = lengths.next().unwrap_or(1).min(rest.len());
            let (chunk, behind) = rest.split_at(length);
            rest = behind;
            bytes.extend_from_slice(format!("{length:x}\r\n").as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
            if bytes.len() > 64 * 1024 {
                socket.write_all(&bytes).await?;
                bytes.clear();
            }
        }
    }
    if reply.end == End::Eof {
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    socket.write_all(&bytes).await?;
    if reply.end == End::Hang {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    }
    socket.shutdown().await
}

/// Reads the request to its end, so that closing the connection does not reset it.
async fn read_request(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = socket.read(&mut buffer).await?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, value)| value.trim().parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Ok(());
            }
        }
        if read == 0 {
            return Ok(());
        }
    }
}
