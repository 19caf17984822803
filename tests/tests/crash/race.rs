//! Two workers race for 1,000 runs, and are killed again and again (contract I7, I8).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use futures::StreamExt;
use raf_core::{ChatClientRunOptions, ChatMessage, RunId};
use raf_framework::RunStoreOptionsExt;

use crate::agent::{self, QUESTION};
use crate::child::{SHORT_LEASE, Task};
use raf_tests::backend::Backend;

const RUNS: usize = 1000;
/// How often each worker is killed, at most.
const KILLS: usize = 5;

pub(crate) fn two_workers(backend: &Backend) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(seed(backend));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            scope.spawn(move || work_and_die(backend, worker));
        }
    });
    runtime.block_on(async {
        let store = backend.open(Duration::ZERO, SHORT_LEASE).await;
        assert!(store.list_open(None).await.expect("the store").is_empty());
        for run in 0..RUNS {
            let record = store.load(&run_id(run)).await.expect("the store");
            assert!(record.expect("the run").closed);
        }
        drop(store);
        backend.clean().await;
    });
    let effects = std::fs::read_to_string(backend.folder.join("effects")).expect("effects");
    let keys: Vec<&str> = effects
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    let distinct: BTreeSet<&str> = keys.iter().copied().collect();
    assert_eq!(distinct.len(), keys.len(), "a body was entered twice");
    // What was in flight when a worker died is unknown, and at most sixteen at a time.
    assert!(
        keys.len() >= RUNS - 2 * KILLS * 16,
        "{} entries",
        keys.len()
    );
}

fn run_id(run: usize) -> RunId {
    RunId::from(format!("race-{run}").as_str())
}

/// Runs whose owner left them behind their beginning.
async fn seed(backend: &Backend) {
    let store = backend.open(Duration::ZERO, SHORT_LEASE).await;
    let client = agent::racing_client(&backend.folder.join("effects"));
    let input = [ChatMessage::user(QUESTION)];
    let begun = (0..RUNS).map(|run| {
        let options = ChatClientRunOptions::new()
            .with_run_store(store.clone())
            .with_run_id(run_id(run));
        async {
            let mut stream = client.run(&input, options).await.expect("the run");
            stream
                .next()
                .await
                .expect("a beginning")
                .expect("a beginning");
        }
    });
    futures::stream::iter(begun)
        .buffer_unordered(64)
        .collect::<Vec<()>>()
        .await;
}

/// A worker that is killed behind a number of runs that a seed says, and begun again.
fn work_and_die(backend: &Backend, worker: u64) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(worker + 1);
    for life in 0..=KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let runs = usize::try_from(10 + (seed >> 33) % 60).expect("a few");
        let task = Task::Work(backend.clone());
        let mut child = task.command().spawn().expect("a child");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut lines = stdout.lines();
        let ended = if life < KILLS {
            lines.by_ref().take(runs).count() < runs
        } else {
            lines.by_ref().count();
            true
        };
        if !ended {
            child.kill().expect("SIGKILL");
        }
        let status = child.wait().expect("its end");
        assert!(!ended || status.success(), "a worker failed");
        if ended {
            break;
        }
    }
}
