//! Two workers race for 1,000 runs, and are each killed five times (contract I7, I8).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::Barrier;
use std::time::Duration;

use futures::StreamExt;
use raf_core::{ChatClientRunOptions, ChatMessage, RunId};
use raf_framework::RunStoreOptionsExt;

use crate::agent::{self, QUESTION};
use crate::child::{AT_ONCE, SHORT_LEASE, Task};
use raf_tests::backend::Backend;

const RUNS: usize = 1000;
/// How often each worker is killed.
const KILLS: usize = 5;
/// How many runs a worker finishes at most before it is killed: with all kills, fewer than there are.
const RUNS_OF_A_LIFE: usize = 70;
const _: () = assert!(2 * KILLS * RUNS_OF_A_LIFE < RUNS);

pub(crate) fn two_workers(backend: &Backend) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(seed(backend));
    let last_lives = Barrier::new(2);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let last_lives = &last_lives;
            scope.spawn(move || work_and_die(backend, worker, last_lives));
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
    // What was in flight when a worker was killed is unknown, and no more.
    assert!(
        keys.len() >= RUNS - 2 * KILLS * AT_ONCE,
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

/// A worker that is killed when it has finished a number of runs that a seed says, and begun again; at last one
/// that lives until nothing is open.
///
/// It waits for the parent's word behind each run, so that each kill is made where it was meant; and the last
/// lives begin together, so that no worker leaves the other without work to be killed at.
fn work_and_die(backend: &Backend, worker: u64, last_lives: &Barrier) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(worker + 1);
    for _ in 0..KILLS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let runs = usize::try_from(seed >> 33).expect("a number") % RUNS_OF_A_LIFE + 1;
        let mut life = Life::begin(backend);
        assert_eq!(life.finish(runs), runs, "nothing is left to be killed at");
        life.child.kill().expect("SIGKILL");
        let status = life.child.wait().expect("its end");
        assert!(!status.success(), "it was killed");
    }
    last_lives.wait();
    let mut life = Life::begin(backend);
    life.finish(usize::MAX);
    assert!(life.child.wait().expect("its end").success());
}

/// A worker's process.
struct Life {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Life {
    fn begin(backend: &Backend) -> Self {
        let task = Task::Work(backend.clone());
        let mut child = task.command().spawn().expect("a child");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            stdin: child.stdin.take().expect("its input"),
            lines: stdout.lines(),
            child,
        }
    }

    /// Lets it finish so many runs, or all that are left; says how many. Behind the last one it waits.
    fn finish(&mut self, runs: usize) -> usize {
        let mut finished = 0;
        while finished < runs {
            if finished > 0 {
                self.stdin.write_all(b"\n").expect("the child waits");
            }
            if self.lines.next().is_none() {
                break;
            }
            finished += 1;
        }
        finished
    }
}
