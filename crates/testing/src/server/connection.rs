//! One connection: reads a request, writes its response, goes on while both keep it alive.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::request::read;
use super::response::{Action, End, HttpResponse};
use super::{HttpRequest, Shared};

/// Serves a connection until one side closes it.
pub(super) async fn serve(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let (mut reading, mut writing) = stream.into_split();
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut reading, &mut buffer, number).await {
        let keep_alive = keeps_alive(&request);
        let response = shared.answer(&request);
        let written = tokio::select! {
            biased;
            written = write(&response, &mut writing) => written,
            () = client_leaves(&mut reading) => {
                shared.count(|counts| counts.client_left += 1);
                return;
            }
        };
        if written.is_err() {
            shared.count(|counts| counts.client_left += 1);
            return;
        }
        if response.end == End::Reset {
            // Dropping the halves apart would send an orderly end first.
            if let Ok(stream) = reading.reunite(writing) {
                let _ = stream.set_zero_linger();
            }
            return;
        }
        if response.end != End::Clean || !keep_alive {
            return;
        }
    }
}

fn keeps_alive(request: &HttpRequest) -> bool {
    !request
        .header("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

/// Completes when the client closes its side; never, if it sends more instead.
async fn client_leaves(reading: &mut OwnedReadHalf) {
    match reading.peek(&mut [0]).await {
        Ok(0) | Err(_) => {}
        Ok(_) => std::future::pending().await,
    }
}

async fn write(response: &HttpResponse, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    for action in &response.before_headers {
        perform(action, out).await?;
    }
    out.write_all(head(response).as_bytes()).await?;
    if response.is_chunked() {
        for action in response.chunked_actions() {
            perform(&action, out).await?;
        }
        if matches!(response.end, End::Clean | End::CloseAfter) {
            out.write_all(b"0\r\n\r\n").await?;
        }
    } else if let Some(body) = &response.whole {
        let cut = if matches!(response.end, End::Abort | End::Reset) {
            body.len() / 2
        } else {
            body.len()
        };
        out.write_all(&body[..cut]).await?;
    }
    out.flush().await
}

async fn perform(action: &Action, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    match action {
        Action::Write(bytes) if bytes.is_empty() => {}
        Action::Write(bytes) => {
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend_from_slice(bytes);
            chunk.extend_from_slice(b"\r\n");
            out.write_all(&chunk).await?;
            out.flush().await?;
            tokio::task::yield_now().await;
        }
        Action::Gate(latch) => latch.wait().await,
        Action::Hang => std::future::pending().await,
    }
    Ok(())
}

fn head(response: &HttpResponse) -> String {
    let status = response.status;
    let mut lines = vec![format!("HTTP/1.1 {status} {}", reason(status))];
    let headers = response.headers.iter();
    lines.extend(headers.map(|(name, value)| format!("{name}: {value}")));
    if response.is_chunked() {
        lines.push("transfer-encoding: chunked".to_owned());
    } else {
        let length = response.whole.as_ref().map_or(0, Vec::len);
        lines.push(format!("content-length: {length}"));
    }
    lines.join("\r\n") + "\r\n\r\n"
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Scripted",
    }
}
