//! The server does on the wire what its script says, seen by a plain socket.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{HttpResponse, HttpServer};
use crate::Latch;

const GET: &[u8] = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Thing: One\r\n\r\n";

async fn connect(server: &HttpServer) -> TcpStream {
    let address = server.url().replace("http://", "");
    TcpStream::connect(address).await.unwrap()
}

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with(end) {
        assert_eq!(
            stream.read(&mut byte).await.unwrap(),
            1,
            "closed after {text:?}"
        );
        text.push(char::from(byte[0]));
    }
    text
}

#[tokio::test]
async fn a_whole_body_has_its_length_and_the_connection_stays() {
    let server = HttpServer::start([
        HttpResponse::new(200).body("one"),
        HttpResponse::new(404).body("two"),
    ]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    let first = read_until(&mut stream, "one").await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("content-length: 3"));
    let post = b"POST /p HTTP/1.1\r\ncontent-length: 8\r\n\r\n{\"a\": 1}";
    stream.write_all(post).await.unwrap();
    let second = read_until(&mut stream, "two").await;
    assert!(second.starts_with("HTTP/1.1 404 Not Found\r\n"));
    let requests = server.requests();
    assert_eq!(
        (requests[0].method.as_str(), requests[0].path.as_str()),
        ("GET", "/a?b=c")
    );
    assert_eq!(requests[0].header("X-THING"), Some("One"));
    assert_eq!(requests[1].json(), serde_json::json!({"a": 1}));
    assert_eq!((requests[1].connection, server.connections()), (0, 1));
    server.assert_done();
}

#[tokio::test]
async fn a_chunked_request_is_read() {
    let server = HttpServer::start([HttpResponse::new(200).body("ok")]);
    let mut stream = connect(&server).await;
    let request =
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    stream.write_all(request).await.unwrap();
    read_until(&mut stream, "ok").await;
    assert_eq!(server.requests()[0].text(), "abc");
}

#[tokio::test]
async fn writes_are_chunks_and_a_gate_holds_the_next() {
    let latch = Latch::new();
    let response = HttpResponse::events().write("aü").gate(&latch).write("b");
    let server = HttpServer::start([response.bytes_per_write(2)]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.contains("transfer-encoding: chunked"));
    let mut pieces = [0; 13];
    stream.read_exact(&mut pieces).await.unwrap();
    assert_eq!(&pieces, b"2\r\na\xc3\r\n1\r\n\xbc\r\n");
    latch.open();
    assert_eq!(
        read_until(&mut stream, "0\r\n\r\n").await,
        "1\r\nb\r\n0\r\n\r\n"
    );
}

#[tokio::test]
async fn an_abort_closes_without_the_end() {
    let server = HttpServer::start([HttpResponse::events().write("a").abort()]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert!(all.ends_with("1\r\na\r\n"), "{all:?}");
}

#[tokio::test]
async fn a_reset_is_an_error_at_the_client() {
    let server = HttpServer::start([HttpResponse::events().write("a").reset()]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    let mut all = Vec::new();
    assert!(stream.read_to_end(&mut all).await.is_err());
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let server = HttpServer::start([HttpResponse::events().write("a").hang()]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    read_until(&mut stream, "1\r\na\r\n").await;
    assert_eq!(server.client_left(), 0);
    drop(stream);
    server.wait_for_client_left(1).await;
}

#[tokio::test]
async fn a_request_beyond_the_script_is_reported() {
    let server = HttpServer::start([]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    let text = read_until(&mut stream, "script_exhausted\"}}").await;
    assert!(text.starts_with("HTTP/1.1 500"));
    let caught = std::panic::catch_unwind(|| server.assert_done());
    assert!(caught.is_err());
}

#[tokio::test]
async fn a_refused_url_refuses() {
    let address = HttpServer::refused_url().replace("http://", "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn dropping_the_server_closes_its_connections() {
    let server = HttpServer::start([HttpResponse::events().write("a").hang()]);
    let mut stream = connect(&server).await;
    stream.write_all(GET).await.unwrap();
    read_until(&mut stream, "1\r\na\r\n").await;
    drop(server);
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}
