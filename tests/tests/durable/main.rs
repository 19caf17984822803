//! What must hold of runs around a real store: workers, one session, failing writes, approvals that expire,
//! and what a step costs. On SQLite, and on the PostgreSQL server that `RAF_POSTGRES_URL` names.

mod bytes;
mod dropped;
mod expiry;
mod failing;
mod sessions;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Trial};
use raf_core::{BusyPolicy, IRunStore, InMemoryRunStore};

use raf_tests::backend::Backend;

type Test = fn(&Backend) -> LocalBoxFuture<'_, ()>;

const TESTS: [(&str, Test); 21] = [
    ("i8_two_open_runs_of_one_session_are_refused", |backend| {
        Box::pin(sessions::two_runs_of_one(backend, BusyPolicy::Refuse))
    }),
    ("i8_two_open_runs_of_one_session_queue", |backend| {
        Box::pin(sessions::two_runs_of_one(backend, BusyPolicy::Queue))
    }),
    ("i8_a_new_run_beside_a_worker_is_refused", |backend| {
        Box::pin(sessions::a_new_run_beside_a_worker(
            backend,
            BusyPolicy::Refuse,
        ))
    }),
    ("i8_a_new_run_beside_a_worker_queues", |backend| {
        Box::pin(sessions::a_new_run_beside_a_worker(
            backend,
            BusyPolicy::Queue,
        ))
    }),
    ("i8_a_question_of_a_newer_run_stays_open", |backend| {
        Box::pin(sessions::a_question_of_a_newer_run(backend))
    }),
    ("i8_another_conversation_under_one_session", |backend| {
        Box::pin(sessions::another_conversation(backend))
    }),
    ("e3_a_yes_given_again_to_a_dead_run_is_refused", |backend| {
        Box::pin(sessions::a_yes_given_again_to_a_dead_run(backend))
    }),
    ("i7_a_session_s_run_dies_behind_each_update", |backend| {
        Box::pin(dropped::behind_each_update(backend))
    }),
    (
        "i7_a_session_s_gated_run_dies_behind_each_update",
        |backend| Box::pin(dropped::behind_each_update_of_a_gated_run(backend)),
    ),
    (
        "i7_a_call_that_was_cancelled_is_not_asked_for_again",
        |backend| Box::pin(dropped::behind_a_call_that_was_cancelled(backend)),
    ),
    (
        "i7_a_session_s_run_dies_and_its_user_writes_on",
        |backend| Box::pin(dropped::and_its_user_writes_on(backend)),
    ),
    (
        "i6_each_write_fails_once_and_a_later_pass_goes_on",
        |backend| Box::pin(here(backend, failing::ALONE)),
    ),
    (
        "i6_each_write_fails_once_and_another_process_goes_on",
        |backend| Box::pin(failing::and_goes_on_elsewhere(backend, failing::ALONE)),
    ),
    (
        "i6_k5_each_write_of_nested_runs_fails_once_and_a_later_pass_goes_on",
        |backend| Box::pin(here(backend, failing::NESTED)),
    ),
    (
        "i6_k5_each_write_of_nested_runs_fails_once_and_another_process_goes_on",
        |backend| Box::pin(failing::and_goes_on_elsewhere(backend, failing::NESTED)),
    ),
    (
        "i6_k5_each_write_of_a_nested_run_that_waits_fails_once_and_a_later_pass_goes_on",
        |backend| Box::pin(here(backend, failing::NESTED_AND_GATED)),
    ),
    (
        "i6_k5_each_write_of_a_nested_run_that_waits_fails_once_and_another_process_goes_on",
        |backend| {
            Box::pin(failing::and_goes_on_elsewhere(
                backend,
                failing::NESTED_AND_GATED,
            ))
        },
    ),
    ("e8_a_worker_settles_what_is_expired", |backend| {
        Box::pin(expiry::is_settled_by_a_worker(backend))
    }),
    ("e8_an_approval_expires_when_the_inbox_says", |backend| {
        Box::pin(expiry::is_when_the_inbox_says(backend))
    }),
    (
        "e8_an_answer_that_nobody_took_up_in_time_is_void",
        |backend| Box::pin(expiry::voids_an_answer(backend)),
    ),
    (
        "k12_a_round_writes_as_much_however_long_the_run_is",
        |backend| Box::pin(bytes::of_a_round_stay_the_same(backend)),
    ),
];

async fn here(backend: &Backend, stack: failing::Stack) {
    let store = backend.open(Duration::ZERO, work::LEASE).await;
    failing::and_goes_on_here(&store, stack).await;
}

/// What needs no store but that of this process.
fn in_memory() -> Vec<Trial> {
    let stacks = [
        ("nested_runs", failing::NESTED),
        ("a_nested_run_that_waits", failing::NESTED_AND_GATED),
    ];
    let trial = |(name, stack)| {
        let name =
            format!("i6_k5_each_write_of_{name}_fails_once_and_a_later_pass_goes_on_in_memory");
        Trial::test(name, move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let store: Arc<dyn IRunStore> = Arc::new(InMemoryRunStore::new().with_durable(true));
            runtime.block_on(failing::and_goes_on_here(&store, stack));
            Ok(())
        })
    };
    stacks.into_iter().map(trial).collect()
}

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if url.is_none() {
        println!("durable runs on PostgreSQL are skipped: RAF_POSTGRES_URL names no server");
    }
    let mut trials = in_memory();
    for backend in ["sqlite", "postgres"] {
        let of_server = backend == "postgres";
        let skipped = of_server && url.is_none();
        for (name, test) in TESTS {
            let url = url.clone().filter(|_| of_server);
            let trial = Trial::test(format!("{name}_on_{backend}"), move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(async {
                    let backend = Backend::of_test(url.as_deref());
                    test(&backend).await;
                    backend.clean().await;
                });
                Ok(())
            });
            trials.push(trial.with_ignored_flag(skipped));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
