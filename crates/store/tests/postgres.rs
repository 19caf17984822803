//! The PostgreSQL store holds the contract of stores, on the server that `RAF_POSTGRES_URL` names.
//! Without one the laws are listed as ignored, with the reason.

#[path = "fixtures/postgres.rs"]
mod fixture;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use fixture::PostgresFixture;
use libtest_mimic::{Arguments, Failed, Trial};
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
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn play(law: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(law);
    Ok(())
}
