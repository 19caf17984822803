//! What a step costs in bytes that reach the system: the same however long the history is.
//!
//! Counted, not timed. Bytes of SQLite are those that this process hands to the system (Linux says how many),
//! its log and the copying back included; bytes of PostgreSQL are those of the server's log. One test after the
//! other, and a program of its own: nothing else is to write meanwhile.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use raf_core::{
    IRunStore, JournalEntry, JournalKey, JournalKind, RunClaim, RunId, RunRecord, WriteOutcome,
};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Synchronous};
use serde_json::json;
use tokio_postgres::NoTls;

/// Steps that are measured, behind a short history and behind a long one.
const STEPS: u64 = 101;
const SHORT: u64 = 100;
const LONG: u64 = 20_000;

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn main() -> ExitCode {
    let counts = std::fs::read_to_string("/proc/self/io").is_ok();
    let url = std::env::var("RAF_POSTGRES_URL").ok();
    if !counts {
        println!("bytes of SQLite are skipped: the system does not say what a process writes");
    }
    if url.is_none() {
        println!("bytes of PostgreSQL are skipped: RAF_POSTGRES_URL names no server");
    }
    let no_server = url.is_none();
    let trials = vec![
        Trial::test(
            "k12_a_step_of_sqlite_writes_as_much_behind_a_long_history",
            || play(of_sqlite()),
        )
        .with_ignored_flag(!counts),
        Trial::test(
            "k12_a_step_of_postgres_writes_as_much_behind_a_long_history",
            || play(of_postgres(url.ok_or("no server")?)),
        )
        .with_ignored_flag(no_server),
    ];
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn play(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(test);
    Ok(())
}

async fn of_sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteOptions::new().with_synchronous(Synchronous::Normal);
    let store = SqliteStore::open_with(folder.path().join("raf.db"), options);
    let written = async || {
        let io = std::fs::read_to_string("/proc/self/io").expect("it was there");
        let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        line.and_then(|bytes| bytes.parse().ok()).expect("a count")
    };
    stay_the_same(&store.expect("a store"), written).await;
}

async fn of_postgres(url: String) {
    let schema = format!("raf_bytes_{}", RunId::random());
    let options = PostgresOptions::new().with_schema(&schema);
    let store = PostgresStore::open_with(&url, options).await;
    let connected = tokio_postgres::connect(&url, NoTls).await;
    let (client, connection) = connected.expect("the server");
    let written = async || {
        let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = client.query_one(sql, &[]).await.expect("a row");
        row.get::<_, i64>(0).unsigned_abs()
    };
    let measured = async {
        stay_the_same(&store.expect("the server"), written).await;
        let sql = format!("DROP SCHEMA {schema} CASCADE");
        client.batch_execute(&sql).await.expect("it is gone");
    };
    tokio::select! {
        () = measured => {}
        _ = connection => panic!("the connection has ended"),
    }
}

async fn stay_the_same(store: &dyn IRunStore, written: impl AsyncFn() -> u64) {
    let short = typical(store, SHORT, &written).await;
    let long = typical(store, LONG, &written).await;
    assert!(short > 0, "something is written");
    // The place has more digits, the tables' trees may be one level higher, and where the store's clock has
    // moved since the last write its indexes of times are written too: some pages, and no history.
    assert!(
        long <= short + short / 2 + PAGES,
        "a step writes {short} bytes behind {SHORT} steps, {long} behind {LONG}"
    );
}

/// Four pages of SQLite, with what its log puts around each: the history has 10 MB.
const PAGES: u64 = 4 * 4_120 + 8;

/// What the middle one of some steps writes: single ones copy the log back, or split a page.
async fn typical(store: &dyn IRunStore, history: u64, written: impl AsyncFn() -> u64) -> u64 {
    let mut record = RunRecord::new(RunId::random());
    record.working = true;
    let key = JournalKey::root(record.run_id.clone());
    let claim = RunClaim::new();
    let grown: Vec<JournalEntry> = (0..history).map(entry).collect();
    let begun = store.append(&key, &claim, 0, &grown, Some(&record)).await;
    assert_eq!(begun.expect("a write"), WriteOutcome::Written(1));
    let mut bytes = Vec::new();
    for step in history..history + STEPS {
        let before = written().await;
        let appended = store.append(&key, &claim, step, &[entry(step)], None).await;
        assert_eq!(appended.expect("a write"), WriteOutcome::Written(step + 1));
        bytes.push(written().await - before);
    }
    bytes.sort_unstable();
    bytes[bytes.len() / 2]
}

/// A step as the loop keeps one: an answer of a model with half a kilobyte.
fn entry(step: u64) -> JournalEntry {
    let value = json!({"n": step, "reply": "a word or two ".repeat(36)});
    JournalEntry::new(0, "round/0/plan", JournalKind::Step, value)
}
