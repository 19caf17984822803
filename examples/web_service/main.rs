//! A web service whose runs survive it: start a run over HTTP, watch it as server-sent events, approve its
//! calls from anywhere, kill the server in the middle and go on.
//!
//! - `cargo run --example web_service` plays the whole of it by itself, without a key: it starts the server,
//!   starts a run, kills the server twice, approves while no server lives, and reads the answer.
//! - `… web_service serve [--listen 127.0.0.1:8080]` is the server alone. `RAF_PROVIDER` and the keys say which
//!   model it asks, as in the other examples.
//! - `… web_service inbox list`, `inbox approve ID`, `inbox deny ID [REASON]`: the person who decides. It opens
//!   the same store, not the server.
//!
//! | variable | what | default |
//! |---|---|---|
//! | `RAF_STORE` | a file of SQLite, or `postgres://user@host/database` | `raf_web_service.db` |
//! | `RAF_SCHEMA` | the schema of the tables in PostgreSQL | `raf` |
//! | `RAF_LEASE_SECONDS` | how long a run of a dead server is left alone | 30 |
//! | `RAF_PAYMENTS` | the file of the bank that pays | `raf_payments.txt` |
//!
//! Reading order: `server` is what lives in the process, `player` plays runs, `routes` are the doors, `events`
//! is what a browser watches, `inbox` the other process, `demonstration` all of them together. Who may knock is
//! not its business: put your own authentication in front of the routes.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program talks to a person at a terminal"
)]

mod agent;
mod command;
mod demonstration;
mod events;
mod failure;
mod http;
mod inbox;
mod player;
mod routes;
mod server;
mod settings;
mod views;

use std::error::Error;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use crate::command::Command;
use crate::settings::Settings;

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let command = Command::from_arguments(std::env::args().skip(1))?;
    let settings = Settings::from_env()?;
    match command {
        Command::Demonstrate => demonstration::play(settings).await,
        Command::Serve { listen } => server::serve(listen, &settings).await,
        Command::Inbox(command) => inbox::run(command, &settings).await,
    }
}
