//! The PostgreSQL store holds the contract of stores, on the server that `RAF_POSTGRES_URL` names.
//! Without one the laws are listed as ignored, with the reason.

#[path = "fixtures/postgres.rs"]
mod fixture;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use fixture::PostgresFixture;
use libtest_mimic::{Arguments, Failed, Trial};
use raf_store::PostgresStore;
use raf_testing::contract::{run_store, session_store};

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    let mut trials = Vec::new();
    for (name, law) in run_store::laws() {
        let url = url.clone();
        trials.push(Trial::test(format!("postgres_runs::{name}"), move || {
            play(async {
                let fixture = Arc::new(PostgresFixture::new(url.as_deref()));
                law(&*fixture).await;
                run_store::IRunStoreFixture::clean(&*fixture).await;
            })
        }));
    }
    for (name, law) in session_store::laws() {
        let url = url.clone();
        trials.push(Trial::test(
            format!("postgres_sessions::{name}"),
            move || {
                play(async {
                    let fixture = Arc::new(PostgresFixture::new(url.as_deref()));
                    law(&*fixture).await;
                    session_store::ISessionStoreFixture::clean(&*fixture).await;
                })
            },
        ));
    }
    let named = url.clone();
    trials.push(Trial::test("many_open_one_schema_at_once", move || {
        play(async {
            let fixture = PostgresFixture::new(named.as_deref());
            futures::future::join_all((0..8).map(|_| run_store::IRunStoreFixture::open(&fixture)))
                .await;
            run_store::IRunStoreFixture::clean(&fixture).await;
        })
    }));
    if url.is_none() {
        println!(
            "{} laws of the PostgreSQL store are skipped: RAF_POSTGRES_URL names no server",
            trials.len()
        );
        trials = trials
            .into_iter()
            .map(|trial| trial.with_ignored_flag(true))
            .collect();
    }
    trials.push(Trial::test("j1_no_secret_is_told", || {
        play(no_secret_is_told())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Needs no server.
async fn no_secret_is_told() {
    for url in [
        "postgres://ada:hunter2-secret@127.0.0.1:1/db",
        "postgres://ada:hunter2-secret@:x/db",
        "host=127.0.0.1 port=1 user=ada password=hunter2-secret",
    ] {
        let error = PostgresStore::open(url).await.expect_err("no server");
        let told = format!("{error} {error:?} {error:#?}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

fn play(law: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(law);
    Ok(())
}
