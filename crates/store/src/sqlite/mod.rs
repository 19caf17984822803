//! The embedded store: one SQLite file, no server.

mod answers;
mod expiry;
mod fault;
mod journal;
mod options;
mod records;
mod run_store;
mod schema;
mod session_store;
mod sessions;
mod tables;
mod thread;
mod transaction;

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use raf_core::{Result, RunId};
use rusqlite::Connection;

use self::fault::Fault;
use self::options::Clock;
use self::tables::Tables;
use self::thread::{Beat, DatabaseThread};
use self::transaction::Transaction;
use crate::claims::Holds;
use crate::options::StoreOptions;
use crate::turns::Turns;

pub use self::options::{SqliteOptions, Synchronous};

/// Runs and sessions in one SQLite file: the durable store where one machine is enough.
///
/// A cheap handle on one connection, which has a thread of its own. Several processes may open the
/// same file. What was handed over is written whole, also if the future that asked for it is dropped;
/// the drop of the last handle waits for it. Needs no runtime.
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    database: DatabaseThread,
    shared: Arc<Shared>,
    turns: Turns,
}

/// What the thread's work and its beat share.
struct Shared {
    tables: Tables,
    options: StoreOptions,
    clock: Clock,
    holds: Holds,
}

impl Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("options", &self.0.shared.options)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a file, which is made if there is none, and brings its tables to this version's layout.
    ///
    /// It reads and writes the file before it returns; a program that must not wait opens it first.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](raf_core::ErrorKind::Store) if it cannot be opened, is no database, or was
    /// laid out by a later version (code `later_schema`).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens a file with settings.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if a
    /// setting is wrong.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self> {
        let tables = Tables::new(&options.prefix)?;
        let connection = connect(path.as_ref(), &options, &tables)
            .map_err(|fault| raf_core::Error::from(fault).with_context("operation", "open"))?;
        let shared = Arc::new(Shared {
            tables,
            options: options.limits,
            clock: options.clock,
            holds: Holds::default(),
        });
        let beating = Arc::clone(&shared);
        let beat = Beat {
            every: options.limits.lease / 3,
            body: Box::new(move |connection| beating.beat(connection)),
        };
        Ok(Self(Arc::new(Inner {
            database: DatabaseThread::start(connection, beat)?,
            shared,
            turns: Turns::default(),
        })))
    }

    /// Reads within a transaction.
    async fn read<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.0.shared);
        let database = &self.0.database;
        let reading = database.read(move |connection| body(&shared.transaction(connection)));
        reading.await
    }

    /// Writes within a transaction.
    async fn write<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.0.shared);
        let database = &self.0.database;
        let writing = database.write(move |connection| body(&shared.transaction(connection)));
        writing.await
    }
}

impl Shared {
    fn transaction<'a>(&'a self, connection: &'a Connection) -> Transaction<'a> {
        Transaction {
            connection,
            tables: &self.tables,
            options: &self.options,
            holds: &self.holds,
            now: crate::options::milliseconds((self.clock)()),
        }
    }

    /// Renews what this process holds, and lets go what it no longer does.
    fn beat(&self, connection: &Connection) -> Result<(), Fault> {
        let transaction = self.transaction(connection);
        self.release_dead(&transaction)?;
        if !self.options.heartbeat {
            return Ok(());
        }
        for (run_id, held) in self.holds.live() {
            transaction.renew(&run_id, &held.owner, held.fence)?;
        }
        for (session_id, owner) in self.holds.leases() {
            transaction.renew_lease(&session_id, &owner)?;
        }
        Ok(())
    }

    /// Lets runs go whose claims were dropped in this process.
    fn release_dead(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        let dead = self.holds.dead();
        for (run_id, held) in &dead {
            transaction.release(run_id, &held.owner)?;
        }
        self.holds.forget_dead(&dead);
        Ok(())
    }
}

fn connect(path: &Path, options: &SqliteOptions, tables: &Tables) -> Result<Connection, Fault> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(options.busy_timeout)?;
    // Readers do not wait for a writer, and a commit is one write to the end of the log.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", options.synchronous.as_str())?;
    if let Some(pages) = options.max_pages {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    connection.set_prepared_statement_cache_capacity(64);
    schema::migrate(&connection, tables)?;
    Ok(connection)
}

/// Says what was done to which run when it failed.
fn told<T>(result: Result<T>, operation: &'static str, run_id: Option<&RunId>) -> Result<T> {
    result.map_err(|error| {
        let error = error.with_context("operation", operation);
        match run_id {
            Some(run_id) => error.with_context("run", run_id.as_str()),
            None => error,
        }
    })
}
