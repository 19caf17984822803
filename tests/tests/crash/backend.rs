//! The store of a crash test, as parent and child open it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raf_core::{IRunStore, RunId};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StoreOptions};

/// Which store, and the file of side effects outside of it.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    /// Kept for its drop; none in the child.
    _folder: Option<Arc<tempfile::TempDir>>,
    pub(crate) folder: PathBuf,
    /// The server and the schema; else SQLite.
    pub(crate) server: Option<(String, String)>,
}

impl Backend {
    /// A fresh one.
    pub(crate) fn of_test(url: Option<&str>) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self {
            folder: folder.path().to_owned(),
            _folder: Some(folder),
            server: url.map(|url| (url.to_owned(), format!("raf_crash_{}", RunId::random()))),
        }
    }

    /// The one of the parent.
    pub(crate) fn of_child(folder: PathBuf, server: Option<(String, String)>) -> Self {
        Self {
            _folder: None,
            folder,
            server,
        }
    }

    /// Opens it, with a clock that is ahead: what a dead process held has lapsed there, without waiting.
    pub(crate) async fn open(&self, ahead: Duration, lease: Duration) -> Arc<dyn IRunStore> {
        let limits = StoreOptions::new().with_lease(lease);
        if let Some((url, schema)) = &self.server {
            let options = PostgresOptions::new()
                .with_limits(limits)
                .with_schema(schema)
                .with_clock_ahead(move || ahead);
            let store = PostgresStore::open_with(url, options).await;
            return Arc::new(store.expect("the server"));
        }
        let clock = move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a clock behind 1970") + ahead
        };
        let options = SqliteOptions::new().with_limits(limits).with_clock(clock);
        let store = SqliteStore::open_with(self.folder.join("runs.db"), options);
        Arc::new(store.expect("the file"))
    }

    /// Drops what the test made on the server.
    pub(crate) async fn clean(&self) {
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
