//! One exchange beyond its words: when it starts and stops, what it leaves, where it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use raf_core::{
    AgentResponseUpdate, CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage,
    Error, ErrorKind, IChatClient,
};
use raf_openai::{Dialect, OpenAiChatClient, OpenAiOptions, Timeouts};
use raf_testing::wire::{Cut, End, WireReply, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const HALF: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const WHOLE: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn reply(reads: &[&str], end: End) -> WireReply {
    WireReply {
        status: 200,
        headers: Vec::new(),
        reads: reads.iter().map(|read| read.as_bytes().to_vec()).collect(),
        cut: Cut::AsWritten,
        end,
    }
}

fn client(url: &str, timeouts: Timeouts) -> OpenAiChatClient {
    let options = OpenAiOptions::new()
        .with_base_url(url)
        .with_model("m")
        .with_timeouts(timeouts);
    OpenAiChatClient::new(options).expect("options that work")
}

/// Runs against a reply; returns the text that came and how it ended.
async fn run(
    answer: WireReply,
    timeouts: Timeouts,
    options: ChatClientRunOptions,
) -> (String, Result<(), Error>) {
    let (url, serving) = serve(answer).await;
    let client = client(&url, timeouts);
    let asking = async {
        let mut updates = client
            .run(&[ChatMessage::user("Hello")], options)
            .await
            .expect("a request that is right");
        let mut text = String::new();
        while let Some(update) = updates.next().await {
            match update {
                Ok(AgentResponseUpdate::TextDelta { text: delta }) => text.push_str(&delta),
                Ok(_) => {}
                Err(error) => return (text, Err(error)),
            }
        }
        (text, Ok(()))
    };
    tokio::select! {
        end = asking => end,
        () = serving => unreachable!("the server serves for ever"),
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[tokio::test]
async fn a_server_that_hangs_after_the_end_mark_delays_nothing() {
    let begun = Instant::now();
    let (text, end) = run(
        reply(&[WHOLE, DONE], End::Hang),
        Timeouts::default(),
        ChatClientRunOptions::new(),
    )
    .await;
    assert_eq!((text.as_str(), end.is_ok()), ("Hi", true));
    assert!(begun.elapsed() < ms(1000), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_hangs_after_the_finish_reason_is_waited_for_a_little() {
    let timeouts = Timeouts::default().with_linger(ms(50));
    let (text, end) = run(
        reply(&[WHOLE], End::Hang),
        timeouts,
        ChatClientRunOptions::new(),
    )
    .await;
    assert_eq!((text.as_str(), end.is_ok()), ("Hi", true));
}

#[tokio::test]
async fn timeouts_can_be_endless() {
    let timeouts = Timeouts::default()
        .with_first_byte(Duration::MAX)
        .with_idle(Duration::MAX)
        .with_stall(Duration::MAX)
        .with_linger(Duration::MAX);
    let options = ChatClientRunOptions::new().with_deadline(Duration::MAX);
    let (text, end) = run(reply(&[WHOLE, DONE], End::Eof), timeouts, options).await;
    assert_eq!((text.as_str(), end.is_ok()), ("Hi", true));
}

#[tokio::test]
async fn each_timeout_is_an_error_that_names_it() {
    let long = Timeouts::default();
    for (name, timeouts, answer) in [
        (
            "first_byte",
            long.with_first_byte(ms(50)),
            reply(&[], End::Hang),
        ),
        ("idle", long.with_idle(ms(50)), reply(&[HALF], End::Hang)),
        (
            "stall",
            long.with_stall(ms(50)),
            reply(&[HALF, ": ping\n\n"], End::Hang),
        ),
    ] {
        let (_, end) = run(answer, timeouts, ChatClientRunOptions::new()).await;
        let error = end.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(error.context(), [("timeout".into(), name.to_owned())]);
        assert!(error.is_temporary());
    }
}

#[tokio::test]
async fn token_flag_and_deadline_stop_a_silent_stream() {
    for way in ["deadline", "token", "flag"] {
        let token = CancellationToken::new();
        let flag = Arc::new(AtomicBool::new(false));
        let options = ChatClientRunOptions::new();
        let (options, kind) = match way {
            "deadline" => (options.with_deadline(ms(200)), ErrorKind::Timeout),
            "token" => (
                options.with_cancellation(token.clone()),
                ErrorKind::Cancelled,
            ),
            _ => (
                options.with_cancellation(Arc::clone(&flag)),
                ErrorKind::Cancelled,
            ),
        };
        let later = async {
            tokio::time::sleep(ms(200)).await;
            token.cancel();
            flag.store(true, Ordering::Release);
        };
        let running = run(reply(&[HALF], End::Hang), Timeouts::default(), options);
        let ((text, end), ()) = tokio::join!(running, later);
        assert_eq!(text, "Hi", "{way}");
        assert_eq!(end.unwrap_err().kind(), kind, "{way}");
    }
}

/// Reads one request and returns its head.
async fn read_head(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 4096];
    loop {
        let read = socket.read(&mut buffer).await.expect("a request");
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if read == 0 || text.ends_with('}') || text.starts_with("GET") {
            return text;
        }
    }
}

async fn answer(socket: &mut TcpStream, body: &str) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    socket.write_all(head.as_bytes()).await.expect("a client");
    socket.write_all(body.as_bytes()).await.expect("a client");
}

#[tokio::test]
async fn one_connection_serves_many_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let connections = AtomicUsize::new(0);
    let serve_one = async |mut socket: TcpStream| {
        socket.set_nodelay(true).unwrap();
        while !read_head(&mut socket).await.is_empty() {
            // The end of the body comes behind the end mark, on its own.
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let body = format!("{WHOLE}{DONE}");
            let chunk = format!("{head}{:x}\r\n{body}\r\n", body.len());
            socket.write_all(chunk.as_bytes()).await.unwrap();
            tokio::task::yield_now().await;
            socket.write_all(b"0\r\n\r\n").await.unwrap();
        }
    };
    let serving = async {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    connections.fetch_add(1, Ordering::Relaxed);
                    open.push(serve_one(accepted.unwrap().0));
                }
                Some(()) = open.next() => {}
            }
        }
    };
    let client = client(&url, Timeouts::default());
    let asking = async {
        for _ in 0..20 {
            assert_eq!(client.get_text("Hello").await.unwrap(), "Hi");
        }
    };
    tokio::select! {
        () = asking => {}
        () = serving => unreachable!("the server serves for ever"),
    }
    let connections = connections.into_inner();
    assert!(connections <= 2, "{connections} connections for 20 runs");
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll_and_a_drop_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = client(&url, Timeouts::default());
    let messages = [ChatMessage::user("Hello")];
    let mut updates = client
        .run(&messages, ChatClientRunOptions::new())
        .await
        .unwrap();
    let early = tokio::time::timeout(ms(50), listener.accept()).await;
    assert!(early.is_err(), "connected before the first poll");
    let mut socket = tokio::select! {
        accepted = listener.accept() => accepted.unwrap().0,
        update = updates.next() => panic!("{update:?}"),
    };
    drop(updates);
    let mut buffer = vec![0; 4096];
    let ended = async { while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(ms(2000), ended)
        .await
        .expect("the connection ends");
}

#[tokio::test]
async fn azure_has_its_own_address_and_header() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let resource = format!("http://{}", listener.local_addr().unwrap());
    let options = OpenAiOptions::azure(&resource, "2024-10-21")
        .with_api_key("azure-key")
        .with_header("x-team", "blue")
        .with_model("my-deployment");
    let client = OpenAiChatClient::new(options).unwrap();
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let head = read_head(&mut socket).await;
        answer(&mut socket, &format!("{WHOLE}{DONE}")).await;
        head
    };
    let (text, head) = tokio::join!(client.get_text("Hello"), serving);
    assert_eq!(text.unwrap(), "Hi");
    let head = head.to_lowercase();
    let line =
        "post /openai/deployments/my-deployment/chat/completions?api-version=2024-10-21 http/1.1";
    assert!(head.starts_with(line), "{head}");
    assert!(
        head.contains("api-key: azure-key") && head.contains("x-team: blue"),
        "{head}"
    );
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn models_are_listed_and_the_endpoint_is_checked_in_words() {
    let listed = r#"{"data":[{"id":"big","owned_by":"x","max_model_len":4096},{"id":"small"}]}"#;
    for (body, model, good, words) in [
        (listed, "small", true, "offers 2 models"),
        (
            listed,
            "tiny",
            false,
            "does not list the model 'tiny'; it offers big, small",
        ),
        (
            r#"{"models":[{"name":"models/tiny"}]}"#,
            "tiny",
            true,
            "offers 1 model",
        ),
        (r#"{"data":[]}"#, "tiny", false, "no model at all"),
    ] {
        let (url, serving) = serve(reply(&[body], End::Eof)).await;
        let options = OpenAiOptions::new().with_base_url(&url).with_model(model);
        let client = OpenAiChatClient::new(options.with_dialect(Dialect::compatible())).unwrap();
        let health = tokio::select! {
            health = client.check() => health.unwrap(),
            () = serving => unreachable!("the server serves for ever"),
        };
        assert_eq!(health.is_good(), good, "{health}");
        assert!(health.to_string().contains(words), "{health}");
    }
    let mut missing = reply(&["{}"], End::Eof);
    missing.status = 404;
    let (url, serving) = serve(missing).await;
    let client = client(&url, Timeouts::default());
    let health = tokio::select! {
        health = client.check() => health.unwrap(),
        () = serving => unreachable!("the server serves for ever"),
    };
    assert_eq!(health.models, None);
    assert!(
        health.to_string().contains("usually ends in /v1"),
        "{health}"
    );
}
