//! A client of the service, as a browser is one: requests, and events until it has seen enough.

use std::error::Error;
use std::net::SocketAddr;
use std::ops::ControlFlow;

use bytes::Bytes;
use eventsource_stream::{Event, Eventsource};
use futures::StreamExt;
use http_body_util::{BodyDataStream, BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Sends a JSON document, null for none; gives the status and the JSON document of the answer, null if it is
/// none.
pub(crate) async fn ask(
    server: SocketAddr,
    method: Method,
    path: &str,
    document: &Value,
) -> Outcome<(StatusCode, Value)> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, server.to_string())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(document.to_string())))?;
    exchange(server, request, async |response| {
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    })
    .await
}

/// Reads events behind the one of this id until `see` breaks off, with its value; `None` if they end before.
pub(crate) async fn events<T>(
    server: SocketAddr,
    path: &str,
    last_event_id: &str,
    mut see: impl FnMut(&Event) -> ControlFlow<T>,
) -> Outcome<Option<T>> {
    let request = Request::get(path)
        .header(HOST, server.to_string())
        .header("last-event-id", last_event_id)
        .body(Full::default())?;
    exchange(server, request, async |response| {
        if response.status() != StatusCode::OK {
            return Err(format!("{path}: {}", response.status()).into());
        }
        let mut events = BodyDataStream::new(response.into_body()).eventsource();
        while let Some(event) = events.next().await {
            if let ControlFlow::Break(value) = see(&event?) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    })
    .await
}

/// One request on a connection of its own.
async fn exchange<T>(
    server: SocketAddr,
    request: Request<Full<Bytes>>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Outcome<T>,
) -> Outcome<T> {
    let io = TokioIo::new(TcpStream::connect(server).await?);
    let (mut sender, connection) = http1::handshake(io).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        read(response).await
    };
    tokio::pin!(exchange);
    tokio::select! {
        biased;
        done = &mut exchange => done,
        // The server closed it; what it sent can be read still.
        _ = connection => exchange.await,
    }
}
