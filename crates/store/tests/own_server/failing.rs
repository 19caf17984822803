//! A server that fails: a lost connection, a crash, a full disk. Each is a typed error, nothing is half written,
//! and the next call works when the server does.

use std::path::{Path, PathBuf};
use std::process::Command;

use raf_core::{
    ChatMessage, Error, ErrorKind, IRunStore, ISessionStore, JournalEntry, JournalKey, JournalKind,
    RetryStatus, RunClaim, RunId, RunRecord, SessionChange, WriteOutcome,
};
use raf_store::{PostgresOptions, PostgresStore};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use crate::server::{OwnServer, Programs};

fn entry(bytes: usize) -> JournalEntry {
    JournalEntry::new(0, "step", JournalKind::Step, json!("x".repeat(bytes)))
}

async fn open(server: &OwnServer) -> PostgresStore {
    let options = PostgresOptions::new().with_max_connections(2);
    let store = PostgresStore::open_with(&server.url(), options).await;
    store.expect("the server")
}

async fn begun(store: &dyn IRunStore) -> (RunClaim, JournalKey) {
    let mut record = RunRecord::new(RunId::from("run"));
    record.working = true;
    let claim = RunClaim::new();
    let key = JournalKey::root(record.run_id.clone());
    let created = store.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(created.expect("the server"), WriteOutcome::Written(1));
    (claim, key)
}

/// Does something over another connection than the store's.
async fn beside<T>(server: &OwnServer, work: impl AsyncFnOnce(&Client) -> T) -> T {
    let connected = tokio_postgres::connect(&server.url(), NoTls).await;
    let (client, connection) = connected.expect("the server");
    let work = work(&client);
    tokio::select! {
        done = work => done,
        _ = connection => panic!("the connection has ended"),
    }
}

/// The store's connections, by what the server knows of them.
const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'raf-store'";

fn is_temporary(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
    assert_eq!(error.retry_status(), RetryStatus::Temporary, "{error:?}");
    assert!(
        error.context().contains(&("run".into(), "run".to_owned())),
        "{error:?}"
    );
}

pub(crate) async fn cut_in_a_write(programs: Programs) {
    let server = OwnServer::start(&programs, &[], &[]);
    let store = open(&server).await;
    let (claim, key) = begun(&store).await;
    let entries = [entry(10), entry(20)];
    beside(&server, async |client| {
        // The write waits within the server for this lock, and is cut there.
        let lock = "BEGIN; LOCK TABLE raf.raf_journal IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(lock).await.expect("a lock");
        let append = store.append(&key, &claim, 0, &entries, None);
        let cut = async {
            let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                         AND application_name = 'raf-store')";
            while !client
                .query_one(waits, &[])
                .await
                .expect("a row")
                .get::<_, bool>(0)
            {
                tokio::task::yield_now().await;
            }
            client.execute(CUT, &[]).await.expect("it cuts");
        };
        let (appended, ()) = futures::join!(append, cut);
        is_temporary(&appended.expect_err("it was cut"));
        client.batch_execute("ROLLBACK").await.expect("no lock");
    })
    .await;
    assert_eq!(store.journal(&key, 0).await.expect("a new connection"), []);
    let again = store.append(&key, &claim, 0, &entries, None).await;
    assert_eq!(again.expect("a new connection"), WriteOutcome::Written(2));
}

pub(crate) async fn cut_at_rest(programs: Programs) {
    let server = OwnServer::start(&programs, &[], &[]);
    let store = open(&server).await;
    let (claim, key) = begun(&store).await;
    for length in 0..5 {
        let cut = beside(&server, async |client| client.query_one(CUT, &[]).await);
        assert!(cut.await.expect("it cuts").get::<_, i64>(0) >= 1);
        let entries = [entry(10)];
        let mut appended = store.append(&key, &claim, length, &entries, None).await;
        // Whether the end of a connection was noticed by then is a race: one error at most, however many were
        // cut.
        if let Err(error) = &appended {
            is_temporary(error);
            appended = store.append(&key, &claim, length, &entries, None).await;
        }
        assert_eq!(
            appended.expect("a new connection"),
            WriteOutcome::Written(length + 1)
        );
    }
}

pub(crate) async fn crashed_server(programs: Programs) {
    let server = OwnServer::start(&programs, &[], &[]);
    let store = open(&server).await;
    let (claim, key) = begun(&store).await;
    for length in 0..3 {
        let entries = [entry(1_000)];
        let appended = store.append(&key, &claim, length, &entries, None).await;
        assert_eq!(
            appended.expect("the server"),
            WriteOutcome::Written(length + 1)
        );
        server.crash_and_restart();
        // The claim is that of a process that lives: it holds still.
        let renewed = match store.renew(&key.root, &claim).await {
            Err(error) => {
                is_temporary(&error);
                store.renew(&key.root, &claim).await
            }
            renewed => renewed,
        };
        assert!(renewed.expect("the server is there again"));
    }
    assert_eq!(store.journal(&key, 0).await.expect("the server").len(), 3);
}

/// The server says that it has no room, in the middle of a write of several rows.
pub(crate) async fn want_of_room(programs: Programs) {
    let server = OwnServer::start(&programs, &[], &[]);
    let store = open(&server).await;
    let (claim, key) = begun(&store).await;
    let refuse = "CREATE FUNCTION raf.full() RETURNS trigger LANGUAGE plpgsql AS $$
                  BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$;
                  CREATE TRIGGER full_journal BEFORE INSERT ON raf.raf_journal FOR EACH ROW
                  WHEN (NEW.place = 1) EXECUTE FUNCTION raf.full();
                  CREATE TRIGGER full_messages BEFORE INSERT ON raf.raf_messages FOR EACH ROW
                  WHEN (NEW.place = 1) EXECUTE FUNCTION raf.full()";
    let batch = async |sql: &str| {
        let done = beside(&server, async |client| client.batch_execute(sql).await);
        done.await.expect("a statement");
    };
    batch(refuse).await;
    let mut record = IRunStore::load(&store, &key.root)
        .await
        .expect("a read")
        .expect("the run");
    record.round = 7;
    let entries = [entry(10), entry(20)];
    let refused = store.append(&key, &claim, 0, &entries, Some(&record)).await;
    is_full(&refused.expect_err("no room"));
    let messages = ["one", "two"].map(ChatMessage::user);
    let refused = store
        .write("s", 0, SessionChange::messages(messages.clone()))
        .await;
    is_full(&refused.expect_err("no room"));

    assert_eq!(store.journal(&key, 0).await.expect("a read"), []);
    let kept = IRunStore::load(&store, &key.root)
        .await
        .expect("a read")
        .expect("the run");
    assert_eq!((kept.round, kept.revision), (0, 1));
    assert_eq!(
        ISessionStore::load(&store, "s").await.expect("a read"),
        None
    );

    batch("DROP TRIGGER full_journal ON raf.raf_journal; DROP TRIGGER full_messages ON raf.raf_messages").await;
    let again = store.append(&key, &claim, 0, &entries, Some(&record)).await;
    assert_eq!(again.expect("room"), WriteOutcome::Written(2));
    let again = store.write("s", 0, SessionChange::messages(messages)).await;
    assert_eq!(again.expect("room"), WriteOutcome::Written(1));
}

fn is_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
    assert_eq!(error.code(), Some("disk_full"), "{error:?}");
    assert_eq!(error.retry_status(), RetryStatus::Persistent, "{error:?}");
}

/// The tables stand on a file system of 16 MiB. Where this process may mount none, the test says so.
#[expect(clippy::print_stdout, reason = "what is skipped is said")]
pub(crate) async fn full_disk(programs: Programs) {
    let server = OwnServer::start(&programs, &[], &[]);
    let small = server.folder("small");
    let Some(_mounted) = Mounted::at(&small) else {
        println!("the full disk of PostgreSQL is skipped: no file system can be mounted here");
        return;
    };
    server.give_away(&small);
    let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", small.display());
    let made = beside(&server, async |client| {
        client.batch_execute(&tablespace).await
    });
    made.await.expect("a tablespace");
    let url = format!("{}?options=-c%20default_tablespace%3Dsmall", server.url());
    let store = PostgresStore::open(&url).await.expect("the server");
    let (claim, key) = begun(&store).await;
    let mut written = 0;
    // What repeats itself is compressed away by the server.
    let random = || {
        entry_of(
            &(0..200)
                .map(|_| RunId::random().as_str().to_owned())
                .collect::<String>(),
        )
    };
    let error = loop {
        let entries = [random(), random()];
        match store.append(&key, &claim, written, &entries, None).await {
            Ok(outcome) => {
                written += 2;
                assert_eq!(outcome, WriteOutcome::Written(written));
                assert!(written < 10_000, "the disk has no end");
            }
            Err(error) => break error,
        }
    };
    assert!(written > 100, "some fit: {written}");
    is_full(&error);
    let kept = store
        .journal(&key, 0)
        .await
        .expect("what is there can be read");
    assert_eq!(kept.len() as u64, written, "nothing is half written");
}

fn entry_of(text: &str) -> JournalEntry {
    JournalEntry::new(0, "step", JournalKind::Step, json!(text))
}

/// A small file system in memory. It goes when this is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"])
            .arg(folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then(|| Self(folder.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The server has it open still.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
