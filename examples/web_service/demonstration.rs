//! Everything together: a server that is killed twice, and a run that does not notice.

use std::error::Error;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::process::Stdio;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::http;
use crate::settings::Settings;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Plays it in a folder of its own, with the store that the environment names, if it names one.
pub(crate) async fn play(mut settings: Settings) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("raf_web_service_{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = |name: &str| folder.join(name).display().to_string();
    settings.store.get_or_insert_with(|| path("runs.db"));
    settings.lease.get_or_insert(Duration::from_secs(1));
    settings.payments = folder.join("payments.txt");
    let played = Demonstration { settings }.play().await;
    std::fs::remove_dir_all(&folder)?;
    played
}

struct Demonstration {
    settings: Settings,
}

/// A server that lives until it is killed.
struct Server {
    child: Child,
    address: SocketAddr,
    /// Kept open: the server says more.
    _said: Lines<BufReader<ChildStdout>>,
}

impl Demonstration {
    async fn play(&self) -> Outcome<()> {
        let server = self.start_server().await?;
        println!("\n> Pay the rent.");
        let new = json!({"message": "Pay the rent."});
        let (status, run) = http::ask(server.address, Method::POST, "/runs", &new)
            .await
            .map_err(plain)?;
        let events = run["events"].as_str().ok_or(format!("{status}: {run}"))?;

        // The result of its first call is there, and the next reply on its way: in the middle of the run.
        let mut watcher = Watcher::default();
        watcher
            .until(&server, events, |name, data| {
                name == "message" && data["role"] == "tool"
            })
            .await?;
        server.kill().await?;

        let server = self.start_server().await?;
        let approval = watcher
            .until(&server, events, |name, _| name == "approval")
            .await?;
        server.kill().await?;

        println!("\nNo server lives. A person decides:");
        self.run(&["inbox", "list"]).await?;
        let request_id = approval["request_id"].as_str().unwrap_or_default();
        self.run(&["inbox", "approve", request_id]).await?;

        let server = self.start_server().await?;
        let end = watcher
            .until(&server, events, |name, _| name == "end")
            .await?;
        server.kill().await?;
        println!("\nThe answer: {}", end["answer"].as_str().unwrap_or("none"));
        let payments = std::fs::read_to_string(&self.settings.payments)?;
        println!("Payments at the bank: {}", payments.lines().count());
        Ok(())
    }

    async fn start_server(&self) -> Outcome<Server> {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"])?;
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut said = BufReader::new(stdout).lines();
        while let Some(line) = said.next_line().await? {
            println!("  [server] {line}");
            if let Some(address) = line.strip_prefix("Listening on http://") {
                return Ok(Server {
                    child,
                    address: address.parse()?,
                    _said: said,
                });
            }
        }
        Err("the server does not start".into())
    }

    /// Runs this program as another process, to its end.
    async fn run(&self, arguments: &[&str]) -> Outcome<()> {
        let status = self.command(arguments)?.status().await?;
        if !status.success() {
            return Err(format!("{} failed", arguments.join(" ")).into());
        }
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Outcome<Command> {
        println!("\n$ web_service {}", arguments.join(" "));
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(arguments)
            .env(Settings::PAYMENTS, &self.settings.payments);
        if let Some(store) = &self.settings.store {
            command.env(Settings::STORE, store);
        }
        if let Some(lease) = self.settings.lease {
            command.env(Settings::LEASE, lease.as_secs().to_string());
        }
        Ok(command)
    }
}

impl Server {
    async fn kill(mut self) -> Outcome<()> {
        self.child.kill().await?;
        println!("  [server] killed");
        Ok(())
    }
}

/// A browser: it remembers the last id that it saw.
#[derive(Default)]
struct Watcher {
    last_event_id: String,
}

impl Watcher {
    /// Shows events until one is the one; gives what it says.
    async fn until(
        &mut self,
        server: &Server,
        path: &str,
        is_it: impl Fn(&str, &Value) -> bool,
    ) -> Outcome<Value> {
        let seen = std::mem::take(&mut self.last_event_id);
        self.last_event_id.clone_from(&seen);
        let found = http::events(server.address, path, &seen, |event| {
            if !event.id.is_empty() {
                self.last_event_id.clone_from(&event.id);
            }
            let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            println!("  {:<12} {data}", event.event);
            if is_it(&event.event, &data) {
                ControlFlow::Break(data)
            } else {
                ControlFlow::Continue(())
            }
        });
        let found = found.await.map_err(plain)?;
        found.ok_or_else(|| "the events ended too early".into())
    }
}

fn plain(error: Box<dyn Error + Send + Sync>) -> Box<dyn Error> {
    error
}
