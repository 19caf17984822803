//! Processes of the example around one store: servers, the inbox, and a browser.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use hyper::{Method, StatusCode};
use raf_core::RunId;
use serde_json::Value;
use tempfile::TempDir;

use crate::http;

/// A store of its own, and a bank.
pub(crate) struct Stage {
    folder: TempDir,
    /// The server and the schema; else SQLite.
    database: Option<(String, String)>,
}

impl Stage {
    pub(crate) fn new(url: Option<String>) -> Self {
        let schema = || format!("raf_web_{}", RunId::random());
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            database: url.map(|url| (url, schema())),
        }
    }

    /// The example that `cargo test` has built beside these tests, in a clean environment.
    pub(crate) fn command_of_example() -> Command {
        let tests = std::env::current_exe().expect("a test knows where it is");
        let built = tests
            .parent()
            .and_then(Path::parent)
            .expect("it is in deps");
        let name = format!("web_service{}", std::env::consts::EXE_SUFFIX);
        let example = built.join("examples").join(name);
        assert!(
            example.is_file(),
            "the examples are not built: run `cargo test -p raf-examples`, without `--test`"
        );
        let mut command = Command::new(example);
        for name in [
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "RAF_PROVIDER",
        ] {
            command.env_remove(name);
        }
        for name in [
            "RAF_STORE",
            "RAF_SCHEMA",
            "RAF_LEASE_SECONDS",
            "RAF_PAYMENTS",
        ] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    fn command(&self) -> Command {
        let mut command = Self::command_of_example();
        command
            .env("RAF_STORE", self.folder.path().join("runs.db"))
            .env("RAF_LEASE_SECONDS", "1")
            .env("RAF_PAYMENTS", self.bank());
        if let Some((url, schema)) = &self.database {
            command.env("RAF_STORE", url).env("RAF_SCHEMA", schema);
        }
        command
    }

    /// Starts a server; returns when it listens.
    pub(crate) fn server(&self) -> Server {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a server");
        let mut said = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            let read = said.read_line(&mut line).expect("a line");
            assert_ne!(read, 0, "the server does not start");
            if let Some(address) = line.strip_prefix("Listening on http://") {
                break address.trim().parse().expect("an address");
            }
        };
        Server {
            child,
            address,
            _said: said,
        }
    }

    /// What the inbox says, well or not.
    pub(crate) fn inbox(&self, arguments: &[&str]) -> String {
        let mut command = self.command();
        let output = command.arg("inbox").args(arguments).output();
        let output = output.expect("it can be run");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("text")
    }

    /// What the bank was told to pay.
    pub(crate) fn payments(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.bank()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn bank(&self) -> PathBuf {
        self.folder.path().join("payments.txt")
    }

    /// Drops what was made on the server.
    pub(crate) async fn clean(&self) {
        let Some((url, schema)) = &self.database else {
            return;
        };
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the server");
        let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        tokio::select! {
            done = client.batch_execute(&sql) => done.expect("the schema"),
            _ = connection => panic!("the connection has ended"),
        }
    }
}

/// A server that lives until it is killed.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open: the server says more.
    _said: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        document: &Value,
    ) -> (StatusCode, Value) {
        let asked = http::ask(self.address, method, path, document).await;
        asked.expect("an answer")
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it lives");
        self.child.wait().expect("its end");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A test that failed leaves no process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser that connects again: it knows the last id, and keeps every message that it is told of.
pub(crate) struct Watcher {
    path: String,
    last_event_id: String,
    pub(crate) messages: Vec<Value>,
}

impl Watcher {
    pub(crate) fn of(run: &str) -> Self {
        Self {
            path: format!("/runs/{run}/events"),
            last_event_id: String::new(),
            messages: Vec::new(),
        }
    }

    /// Reads events until one is the one; gives what it says.
    pub(crate) async fn until(
        &mut self,
        server: &Server,
        is_it: impl Fn(&str, &Value) -> bool,
    ) -> Value {
        let seen = self.last_event_id.clone();
        let found = http::events(server.address, &self.path, &seen, |event| {
            let data: Value = serde_json::from_str(&event.data).expect("JSON");
            if event.event == "message" {
                self.last_event_id.clone_from(&event.id);
                self.messages.push(data.clone());
                assert_eq!(event.id, self.messages.len().to_string());
            }
            if is_it(&event.event, &data) {
                ControlFlow::Break(data)
            } else {
                ControlFlow::Continue(())
            }
        });
        found.await.expect("events").expect("it comes")
    }
}
