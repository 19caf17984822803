//! The cases over PostgreSQL, each as a test of its own, so that it is seen to be skipped without a server.

use libtest_mimic::Trial;
use raf_scenarios::{Runner, Scenario};

use crate::floors::over_stores;
use crate::{files, played, stem};

/// The cases of the loop once more, over the PostgreSQL server that `RAF_POSTGRES_URL` names.
pub(crate) fn trials() -> Vec<Trial> {
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if url.is_none() {
        println!("cases on PostgreSQL are skipped: RAF_POSTGRES_URL names no server");
    }
    let skipped = url.is_none();
    let runner = over_postgres_alone(url.unwrap_or_default());
    let trials = files().into_iter().filter_map(|path| {
        // A file that cannot be read fails in its own trial.
        let cases = Scenario::load(&path).ok()?;
        let is_played = |case: &Scenario| !over_stores(&runner, case).is_empty();
        if !cases.iter().any(is_played) {
            return None;
        }
        let runner = runner.clone();
        let name = format!("{}_on_postgres", stem(&path));
        let trial = Trial::test(name, move || played(&runner, &path));
        Some(trial.with_ignored_flag(skipped))
    });
    trials.collect()
}

/// Neither over HTTP nor over the other durable stores: what the own trial of the file does.
fn over_postgres_alone(url: String) -> Runner {
    Runner::new()
        .with_http(false)
        .with_stores(false)
        .with_postgres(url)
}
