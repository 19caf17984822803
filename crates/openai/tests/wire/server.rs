//! A loopback server with control of each read: what a case says is sent, chunk by chunk.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The last chunk, then a clean close.
    Eof,
    /// The connection is dropped in the middle of the body.
    Abort,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Each is one chunk of the body, and so one read of the client.
    pub(crate) reads: Vec<Vec<u8>>,
    /// Joins the reads and cuts them anew into this many bytes.
    pub(crate) cut: Option<usize>,
    pub(crate) end: End,
}

/// Serves one connection after the other with the reply; returns the base URL and the future that
/// serves, which the caller polls beside its client.
pub(crate) async fn serve(reply: Reply) -> (String, impl Future<Output = ()>) {
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

async fn answer(socket: &mut TcpStream, reply: &Reply) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    read_request(socket).await?;
    let mut bytes = format!("HTTP/1.1 {} Case\r\n", reply.status).into_bytes();
    for (name, value) in &reply.headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    let joined = reply.cut.map(|_| vec![reply.reads.concat()]);
    for read in joined.as_ref().unwrap_or(&reply.reads) {
        for chunk in read.chunks(reply.cut.unwrap_or(usize::MAX)) {
            bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
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
