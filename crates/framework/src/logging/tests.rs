//! What is logged at each level, and what is not.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use raf_core::{
    CancellationToken, ChatClientExt, ChatClientRunOptions, ChatMessage, Error, ErrorKind,
    IChatClient, ToolDeclaration,
};
use raf_testing::{Reply, ScriptedChatClient};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use super::LoggingChatClient;

/// What was logged on this thread, line by line.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn at(level: Level) -> (Self, DefaultGuard) {
        let captured = Self::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_max_level(level)
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .finish();
        (captured, tracing::subscriber::set_default(subscriber))
    }

    /// The lines, without padding and with every time as 0.
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| {
            let words = line.split_whitespace().map(|word| {
                if word.starts_with("elapsed_ms=") {
                    "elapsed_ms=0"
                } else {
                    word
                }
            });
            words.collect::<Vec<_>>().join(" ")
        });
        lines.collect()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logging(reply: Reply) -> LoggingChatClient {
    LoggingChatClient::new(Arc::new(ScriptedChatClient::new([reply])))
}

async fn run(client: LoggingChatClient) {
    let options = ChatClientRunOptions::new()
        .with_model("m")
        .with_tools([ToolDeclaration::new("t", "")]);
    let messages = [ChatMessage::user("my secret")];
    let _ = client.get_response(&messages, options).await;
}

async fn check(level: Level, reply: Reply, expect: &[&str]) {
    let (captured, _guard) = Captured::at(level);
    run(logging(reply)).await;
    assert_eq!(captured.lines(), expect, "at {level}");
}

const STARTED: &str = r#"DEBUG started model="m" messages=1 tools=1"#;

#[tokio::test]
async fn a_run_that_ends() {
    let reply = || Reply::text("the answer").usage(12, 3);
    check(Level::INFO, reply(), &[]).await;
    let ended = "DEBUG ended reason=Stop elapsed_ms=0 updates=5 input_tokens=12 output_tokens=3";
    check(Level::DEBUG, reply(), &[STARTED, ended]).await;
    let each = [
        STARTED,
        r#"TRACE update update="message_start""#,
        r#"TRACE update update="text_delta""#,
        r#"TRACE update update="message_end""#,
        r#"TRACE update update="usage""#,
        r#"TRACE update update="finish""#,
        ended,
    ];
    check(Level::TRACE, reply(), &each).await;
}

#[tokio::test]
async fn a_run_that_fails() {
    let fails = |kind| Reply::text("a").error(Error::new(kind, "no luck"));
    let at_start = || Reply::error_at_start(Error::misuse("no luck"));
    let warned =
        r#"WARN failed kind="server_error" error="server_error: no luck" elapsed_ms=0 updates=2"#;
    check(Level::INFO, fails(ErrorKind::Server), &[warned]).await;
    let refused = r#"ERROR failed kind="misuse" error="misuse: no luck" elapsed_ms=0 updates=0"#;
    check(Level::INFO, at_start(), &[refused]).await;
    check(Level::DEBUG, at_start(), &[STARTED, refused]).await;
    check(Level::INFO, fails(ErrorKind::Cancelled), &[]).await;
    let cancelled = "DEBUG cancelled elapsed_ms=0 updates=2";
    check(
        Level::DEBUG,
        fails(ErrorKind::Cancelled),
        &[STARTED, cancelled],
    )
    .await;
}

#[tokio::test]
async fn a_run_that_is_dropped() {
    for polls in 0..3 {
        let (captured, guard) = Captured::at(Level::DEBUG);
        let options = ChatClientRunOptions::new().with_cancellation(CancellationToken::new());
        let messages = [ChatMessage::user("go")];
        let client = logging(Reply::text("a").hang());
        let mut updates = client.run(&messages, options).await.unwrap();
        for _ in 0..polls {
            updates.next().await.unwrap().unwrap();
        }
        drop(updates);
        let dropped = format!("DEBUG dropped elapsed_ms=0 updates={polls}");
        assert_eq!(captured.lines()[1..], [dropped]);
        drop(guard);
    }
}

fn redact(text: &str) -> Cow<'_, str> {
    Cow::Owned(text.replace("secret", "[redacted]"))
}

#[tokio::test]
async fn contents_only_on_request_and_redacted() {
    let reply = || Reply::text("your secret").call("c1", "t", r#"{"key": "secret"}"#);
    let logged = async |level, client: LoggingChatClient| {
        let (captured, _guard) = Captured::at(level);
        run(client).await;
        captured.lines().join("\n")
    };
    let without = logged(Level::TRACE, logging(reply())).await;
    assert!(
        !without.contains("secret") && without.contains("tool_call_end"),
        "{without}"
    );

    let with = logging(reply()).with_contents(true);
    let open = logged(Level::TRACE, with.clone()).await;
    assert!(
        open.contains("my secret") && open.contains("your secret"),
        "{open}"
    );

    let with = logging(reply()).with_contents(true);
    let at_debug = logged(Level::DEBUG, with).await;
    assert!(!at_debug.contains("secret"), "{at_debug}");

    let redacted = logging(reply()).with_contents(true).with_redaction(redact);
    let redacted = logged(Level::TRACE, redacted).await;
    assert!(!redacted.contains("secret"), "{redacted}");
    assert!(redacted.contains("my [redacted]") && redacted.contains("your [redacted]"));

    let failing = Reply::error_at_start(Error::misuse("a secret"));
    let failing = logging(failing).with_redaction(redact);
    assert!(logged(Level::INFO, failing).await.contains("a [redacted]"));
}

#[tokio::test]
async fn nothing_is_formatted_that_no_level_asks_for() {
    let (captured, _guard) = Captured::at(Level::DEBUG);
    let client = logging(Reply::text_pieces(["a", "b", "c"]))
        .with_contents(true)
        .with_redaction(|_| panic!("a text was made at a level that does not show it"));
    run(client).await;
    assert_eq!(captured.lines().len(), 2);
}
