//! A real store for a test, as each of its processes opens it: SQLite in a folder, or a schema of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raf_core::{IRunStore, ISessionStore, RunId};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StoreOptions};

/// Where runs and sessions are kept: one store.
#[derive(Clone, Debug)]
pub struct Stores {
    /// It, for runs.
    pub runs: Arc<dyn IRunStore>,
    /// It, for sessions.
    pub sessions: Arc<dyn ISessionStore>,
}

impl Stores {
    fn of(store: impl IRunStore + ISessionStore + 'static) -> Self {
        let store = Arc::new(store);
        Self {
            runs: Arc::clone(&store) as Arc<dyn IRunStore>,
            sessions: store,
        }
    }
}

/// Which store, and the file of side effects outside of it.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Kept for its drop; none in the child.
    _folder: Option<Arc<tempfile::TempDir>>,
    /// Where files of the test are.
    pub folder: PathBuf,
    /// The server and the schema; else SQLite.
    pub server: Option<(String, String)>,
}

impl Backend {
    /// A fresh one.
    pub fn of_test(url: Option<&str>) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self {
            folder: folder.path().to_owned(),
            _folder: Some(folder),
            server: url.map(|url| (url.to_owned(), format!("raf_crash_{}", RunId::random()))),
        }
    }

    /// The one of the parent.
    pub fn of_child(folder: PathBuf, server: Option<(String, String)>) -> Self {
        Self {
            _folder: None,
            folder,
            server,
        }
    }

    /// Opens it, with a clock that is ahead: what a dead process held has lapsed there, without waiting.
    pub async fn open(&self, ahead: Duration, lease: Duration) -> Arc<dyn IRunStore> {
        self.open_both(ahead, lease).await.runs
    }

    /// Opens it for runs and for sessions.
    pub async fn open_both(&self, ahead: Duration, lease: Duration) -> Stores {
        let limits = StoreOptions::new().with_lease(lease);
        if let Some((url, schema)) = &self.server {
            let options = PostgresOptions::new()
                .with_limits(limits)
                .with_schema(schema)
                .with_clock_ahead(move || ahead);
            let store = PostgresStore::open_with(url, options).await;
            return Stores::of(store.expect("the server"));
        }
        let clock = move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a clock behind 1970") + ahead
        };
        let options = SqliteOptions::new().with_limits(limits).with_clock(clock);
        let store = SqliteStore::open_with(self.folder.join("runs.db"), options);
        Stores::of(store.expect("the file"))
    }

    /// Drops what the test made on the server.
    pub async fn clean(&self) {
        let Some((url, schema)) = &self.server else {
            return;
        };
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("the server");
        let sql = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
        tokio::select! {
            done = client.batch_execute(&sql) => done.expect("the schema"),
            _ = connection => panic!("the connection has ended"),
        }
    }
}
