//! A process is killed at each boundary of a run, and another one finishes it (contract I6, I7, E2, E8).
//!
//! The program is parent and child: `raf_tests::backend` opens the store in both, `agent` is the run, `plan` says it
//! moment by moment, `boundary` says
//! where the child stands, `child` plays, `killed` kills and judges, `race` lets two workers race.

mod agent;
mod boundary;
mod child;
mod killed;
mod plan;
mod race;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use raf_tests::backend::Backend;

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    if let Some(task) = child::Task::from_env() {
        return child::play(task);
    }
    let mut trials = Vec::new();
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if url.is_none() {
        println!("crash tests on PostgreSQL are skipped: RAF_POSTGRES_URL names no server");
    }
    for backend in ["sqlite", "postgres"] {
        let of_server = backend == "postgres";
        let skipped = of_server && url.is_none();
        let url = url.clone().filter(|_| of_server);
        let of_killed = url.clone();
        trials.push(
            Trial::test(format!("crash_at_each_boundary_on_{backend}"), move || {
                killed::at_each_boundary(&Backend::of_test(of_killed.as_deref()));
                Ok(())
            })
            .with_ignored_flag(skipped),
        );
        trials.push(
            Trial::test(
                format!("crash_of_workers_that_race_on_{backend}"),
                move || {
                    race::two_workers(&Backend::of_test(url.as_deref()));
                    Ok(())
                },
            )
            .with_ignored_flag(skipped),
        );
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
