//! What a step costs in each store, as its history grows: time, and bytes written.
//!
//! `cargo bench -p raf-store`. With `RAF_POSTGRES_URL` the server is measured too. Bytes of SQLite are
//! those that the process hands to the system, the log and its copying back included; bytes of
//! PostgreSQL are those of its log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use raf_core::{
    ApprovalRequest, CallRecord, CallStatus, ClaimOutcome, IRunStore, InMemoryRunStore,
    JournalEntry, JournalKey, JournalKind, Occurrence, RunClaim, RunId, RunRecord, Settlement,
    ToolCall, WriteOutcome,
};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Synchronous};
use serde_json::json;
use tokio_postgres::NoTls;

const STEPS: u64 = 200;
const HISTORIES: [u64; 4] = [0, 1_000, 10_000, 100_000];

/// How many bytes were written until now, if that can be known.
enum Meter {
    Nothing,
    Process,
    Server(String),
}

impl Meter {
    async fn read(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Process => {
                let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
                let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
                line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
            }
            Self::Server(url) => {
                let (client, connection) = tokio_postgres::connect(url, NoTls)
                    .await
                    .expect("a connection");
                let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
                tokio::select! {
                    row = client.query_one(sql, &[]) => {
                        row.expect("a row").get::<_, i64>(0).unsigned_abs()
                    }
                    _ = connection => 0,
                }
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "figures are what it is for")]
fn say(line: &str) {
    println!("{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // `cargo test --benches` only looks whether it runs.
    let short = !std::env::args().any(|argument| argument == "--bench");
    say("| store | what | history | time each | bytes each |");
    say("|---|---|---|---|---|");
    let memory = Arc::new(InMemoryRunStore::new().with_durable(true));
    measure("in memory", memory, Meter::Nothing, short).await;
    let folder = tempfile::tempdir().expect("a folder");
    for synchronous in [Synchronous::Full, Synchronous::Normal] {
        let name = format!("SQLite, {synchronous:?}");
        let options = SqliteOptions::new().with_synchronous(synchronous);
        let path = folder.path().join(format!("{synchronous:?}.db"));
        let store = SqliteStore::open_with(path, options).expect("a store");
        measure(&name, Arc::new(store), Meter::Process, short).await;
    }
    if let Ok(url) = std::env::var("RAF_POSTGRES_URL") {
        let schema = format!("raf_bench_{}", RunId::random());
        let options = PostgresOptions::new().with_schema(&schema);
        let store = PostgresStore::open_with(&url, options).await;
        let store = Arc::new(store.expect("a store"));
        measure("PostgreSQL", store, Meter::Server(url.clone()), short).await;
        let (client, connection) = tokio_postgres::connect(&url, NoTls)
            .await
            .expect("a connection");
        let sql = format!("DROP SCHEMA {schema} CASCADE");
        tokio::select! {
            dropped = client.batch_execute(&sql) => dropped.expect("it is gone"),
            _ = connection => {}
        }
    }
}

async fn measure(name: &str, store: Arc<dyn IRunStore>, meter: Meter, short: bool) {
    let line = |what: &str, history: u64, count: u64, time: Duration, bytes: u64| {
        let each = time.as_nanos() / u128::from(count);
        let (each, tenths) = (each / 1_000, each % 1_000 / 100);
        let bytes = bytes / count;
        say(&format!(
            "| {name} | {what} | {history} | {each}.{tenths} µs | {bytes} |"
        ));
    };
    for history in HISTORIES {
        if short && history > 0 {
            break;
        }
        let (claim, key) = grown(&*store, history).await;
        let before = meter.read().await;
        let start = Instant::now();
        for step in history..history + STEPS {
            let appended = store.append(&key, &claim, step, &[entry(step)], None).await;
            assert_eq!(
                appended.expect("it is made"),
                WriteOutcome::Written(step + 1)
            );
        }
        let time = start.elapsed();
        line("append", history, STEPS, time, meter.read().await - before);
    }
    let runs: Vec<RunId> = (0..50).map(|_| RunId::random()).collect();
    let mut holds = Vec::new();
    for run in &runs {
        holds.push(begin(&*store, run).await);
    }
    let before = meter.read().await;
    let start = Instant::now();
    for step in 0..STEPS / 10 {
        let entry = [entry(step)];
        let appends = holds
            .iter()
            .map(|(claim, key)| store.append(key, claim, step, &entry, None));
        for appended in join_all(appends).await {
            assert_eq!(
                appended.expect("it is made"),
                WriteOutcome::Written(step + 1)
            );
        }
    }
    let count = STEPS / 10 * runs.len() as u64;
    let time = start.elapsed();
    line(
        "append, 50 runs at once",
        0,
        count,
        time,
        meter.read().await - before,
    );
    drop(holds);
    let claims: Vec<RunClaim> = runs.iter().map(|_| RunClaim::new()).collect();
    let before = meter.read().await;
    let start = Instant::now();
    for (run, claim) in runs.iter().zip(&claims) {
        let claimed = store.claim(run, claim).await.expect("it is read");
        assert!(matches!(claimed, ClaimOutcome::Claimed(_)));
    }
    line("claim", 0, 50, start.elapsed(), meter.read().await - before);
    let start = Instant::now();
    let mut records = Vec::new();
    for run in &runs {
        records.push(
            store
                .load(run)
                .await
                .expect("it is read")
                .expect("it is there"),
        );
    }
    line("load", 0, 50, start.elapsed(), 0);
    let before = meter.read().await;
    let start = Instant::now();
    for record in &mut records {
        let request = record.request_ids().next().unwrap_or_default().to_owned();
        record.settle(&request, Settlement::Answered);
        let saved = store.save(record).await.expect("it is made");
        assert_eq!(saved, WriteOutcome::Written(2));
    }
    line(
        "settle",
        0,
        50,
        start.elapsed(),
        meter.read().await - before,
    );
}

/// A step as the loop keeps one: an answer of a model with half a kilobyte.
fn entry(step: u64) -> JournalEntry {
    let value = json!({"n": step, "reply": "a word or two ".repeat(36)});
    JournalEntry::new(0, "round/0/model", JournalKind::Step, value)
}

async fn begin(store: &dyn IRunStore, run: &RunId) -> (RunClaim, JournalKey) {
    let mut record = RunRecord::new(run.clone());
    record.working = true;
    let call = ToolCall::new("c1", "send", "{}");
    let place = Occurrence::new(0, 0);
    let request = ApprovalRequest::new(run.clone(), place, &call, "send", json!({}));
    let request = Box::new(request);
    let status = CallStatus::AwaitingApproval { request };
    record
        .calls
        .push(CallRecord::new(0, call, json!({}), status));
    let claim = RunClaim::new();
    let key = JournalKey::root(run.clone());
    let created = store.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(created.expect("it is made"), WriteOutcome::Written(1));
    (claim, key)
}

async fn grown(store: &dyn IRunStore, history: u64) -> (RunClaim, JournalKey) {
    let (claim, key) = begin(store, &RunId::random()).await;
    let mut base = 0;
    let grown = history.saturating_sub(STEPS);
    while base < grown {
        let entries: Vec<JournalEntry> = (base..(base + 500).min(grown)).map(entry).collect();
        let end = (base + 500).min(grown);
        let appended = store.append(&key, &claim, base, &entries, None).await;
        assert_eq!(appended.expect("it is made"), WriteOutcome::Written(end));
        base = end;
    }
    // The last ones alone, so that the log of the great ones is copied back before it is measured.
    for step in base..history {
        let appended = store.append(&key, &claim, step, &[entry(step)], None).await;
        assert_eq!(
            appended.expect("it is made"),
            WriteOutcome::Written(step + 1)
        );
    }
    (claim, key)
}
