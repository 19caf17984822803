//! What a SQLite store does when something fails: a full disk, a lost answer, a later layout, two who
//! open it at once, a future that is dropped.
#![cfg(feature = "sqlite")]

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use raf_core::{
    ChatMessage, ErrorKind, IRunStore, ISessionStore, JournalEntry, JournalKey, JournalKind,
    RetryStatus, RunClaim, RunId, RunRecord, SessionChange, WriteOutcome,
};
use raf_store::{SqliteOptions, SqliteStore};
use raf_testing::{FaultyRunStore, WriteFault};
use rusqlite::Connection;
use serde_json::json;

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("raf.db");
    (folder, path)
}

fn entry(bytes: usize) -> JournalEntry {
    JournalEntry::new(0, "step", JournalKind::Step, json!("x".repeat(bytes)))
}

async fn begun(store: &dyn IRunStore) -> (RunClaim, JournalKey) {
    let mut record = RunRecord::new(RunId::from("run"));
    record.working = true;
    let claim = RunClaim::new();
    let key = JournalKey::root(record.run_id.clone());
    let created = store.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(created.expect("room"), WriteOutcome::Written(1));
    (claim, key)
}

#[tokio::test]
async fn i6_a_full_disk_loses_nothing_and_what_failed_is_written_when_there_is_room() {
    let (_folder, path) = file();
    drop(SqliteStore::open(&path).unwrap());
    let pages: u32 = Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    let small = SqliteOptions::new().with_max_pages(pages + 40);
    let store = SqliteStore::open_with(&path, small).unwrap();
    let (claim, key) = begun(&store).await;
    let mut written = 0;
    let error = loop {
        let entries = [entry(10_000), entry(10_000)];
        match store.append(&key, &claim, written, &entries, None).await {
            Ok(outcome) => {
                written += 2;
                assert_eq!(outcome, WriteOutcome::Written(written));
            }
            Err(error) => break error,
        }
    };
    assert!(written > 2, "some fit: {written}");
    assert_eq!(error.kind(), ErrorKind::Store);
    assert_eq!(error.code(), Some("disk_full"));
    assert_eq!(error.retry_status(), RetryStatus::Persistent);
    assert!(error.context().contains(&("run".into(), "run".to_owned())));
    // Sessions fail alike; what is there can be read.
    let big = SessionChange::messages([ChatMessage::user("x".repeat(1_000_000))]);
    let refused = store.write("s", 0, big.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Some("disk_full"));
    assert_eq!(ISessionStore::load(&store, "s").await.unwrap(), None);
    let kept = store.journal(&key, 0).await.unwrap();
    assert_eq!(kept.len() as u64, written, "nothing is half written");
    drop(store);
    // There is room again: the claim's fence still holds, and the same append is made.
    let store = SqliteStore::open(&path).unwrap();
    let entries = [entry(10_000), entry(10_000)];
    let again = store.append(&key, &claim, written, &entries, None).await;
    assert_eq!(again.unwrap(), WriteOutcome::Written(written + 2));
    let made = store.write("s", 0, big).await.unwrap();
    assert_eq!(made, WriteOutcome::Written(1));
}

#[tokio::test]
async fn i6_a_write_that_fails_before_or_after_it_was_made_can_be_made_again() {
    for fault in [WriteFault::Before, WriteFault::After] {
        for number in 0..4 {
            let (_folder, path) = file();
            let inner = Arc::new(SqliteStore::open(&path).unwrap());
            let store = FaultyRunStore::new(inner);
            store.fail_write(number, fault);
            let mut record = RunRecord::new(RunId::from("run"));
            let claim = RunClaim::new();
            let key = JournalKey::root(record.run_id.clone());
            for base in 0..4 {
                let entries = [entry(usize::try_from(base).unwrap())];
                let mut appended = store
                    .append(&key, &claim, base, &entries, Some(&record))
                    .await;
                if base == number {
                    assert_eq!(appended.unwrap_err().kind(), ErrorKind::Store);
                    appended = store
                        .append(&key, &claim, base, &entries, Some(&record))
                        .await;
                }
                assert_eq!(appended.unwrap(), WriteOutcome::Written(base + 1));
                record.revision = base + 1;
            }
            assert_eq!(store.failed(), 1);
            assert_eq!(store.journal(&key, 0).await.unwrap().len(), 4);
        }
    }
}

#[tokio::test]
async fn a_dropped_future_leaves_its_whole_write() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).unwrap();
    let (claim, key) = begun(&store).await;
    let entries = [entry(1), entry(2)];
    let mut append = store.append(&key, &claim, 0, &entries, None);
    // Handed over by its first poll, and dropped before its answer or after.
    let _ = append.as_mut().now_or_never();
    drop(append);
    let kept = store.journal(&key, 0).await.unwrap();
    assert_eq!(kept, entries);
}

#[tokio::test]
async fn writes_that_wait_share_a_commit_and_fail_alone() {
    let (_folder, path) = file();
    let store = SqliteStore::open(&path).unwrap();
    let runs: Vec<RunRecord> = (0..200)
        .map(|number| RunRecord::new(RunId::from(format!("run {}", number % 100))))
        .collect();
    let created = join_all(runs.iter().map(|record| store.create(record, None))).await;
    let created: Vec<WriteOutcome> = created.into_iter().map(Result::unwrap).collect();
    assert_eq!(created[..100], [WriteOutcome::Written(1); 100]);
    assert_eq!(created[100..], [WriteOutcome::Conflict; 100]);
    assert_eq!(store.list_open(None).await.unwrap().len(), 100);
}

#[test]
fn many_open_one_file_at_once() {
    let (_folder, path) = file();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        let open = || {
            barrier.wait();
            let options = SqliteOptions::new().with_busy_timeout(Duration::from_mins(1));
            SqliteStore::open_with(&path, options).map(drop)
        };
        let opened: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for opened in opened {
            opened.join().unwrap().unwrap();
        }
    });
    assert_eq!(schema_rows(&path), 1);
}

fn schema_rows(path: &Path) -> i64 {
    let connection = Connection::open(path).expect("a connection");
    let count = connection.query_row("SELECT COUNT(*) FROM raf_schema", [], |row| row.get(0));
    count.expect("a count")
}

#[test]
fn a_later_layout_is_refused_and_left_alone() {
    let (_folder, path) = file();
    drop(SqliteStore::open(&path).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection
        .execute("INSERT INTO raf_schema (version) VALUES (99)", [])
        .unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert_eq!(error.code(), Some("later_schema"));
    assert_eq!(schema_rows(&path), 2);
    // Tables under another prefix are another store.
    assert!(SqliteStore::open_with(&path, SqliteOptions::new().with_prefix("other_")).is_ok());
    let error = SqliteStore::open_with(&path, SqliteOptions::new().with_prefix("a; DROP"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Configuration);
}

#[test]
fn what_is_no_database_is_said_to_be_none() {
    let (folder, path) = file();
    std::fs::write(&path, "this is no database, and never was one".repeat(100)).unwrap();
    let error = SqliteStore::open(&path).unwrap_err();
    assert_eq!(error.code(), Some("corrupt"));
    assert_eq!(error.retry_status(), RetryStatus::Permanent);
    let error = SqliteStore::open(folder.path().join("no/such/folder/raf.db")).unwrap_err();
    assert_eq!(error.code(), Some("permission"));
}

#[tokio::test]
async fn a_file_that_another_holds_is_busy_for_a_while() {
    let (_folder, path) = file();
    let options = SqliteOptions::new().with_busy_timeout(Duration::ZERO);
    let store = SqliteStore::open_with(&path, options).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let record = RunRecord::new(RunId::from("run"));
    let error = store.create(&record, None).await.unwrap_err();
    assert_eq!(error.code(), Some("busy"));
    assert!(error.is_temporary());
    other.execute_batch("COMMIT").unwrap();
    assert!(store.create(&record, None).await.is_ok());
}
