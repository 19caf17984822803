//! The store for several machines: PostgreSQL.

mod answers;
mod connect;
mod expiry;
mod fault;
mod options;
mod pool;
mod records;
mod run_store;
mod schema;
mod session_store;
mod thread;
#[cfg(feature = "postgres-tls")]
mod tls;

use std::fmt::{self, Debug};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use raf_core::{Error, Result, RunId};

use self::connect::Way;
use self::fault::Fault;
use self::options::Ahead;
use self::pool::{Connection, PoolSettings};
use self::thread::{Beat, DatabaseThread};
use crate::claims::Holds;
use crate::options::{StoreOptions, milliseconds};
use crate::turns::Turns;

pub use self::options::PostgresOptions;
#[cfg(feature = "postgres-tls")]
pub use self::tls::PostgresTls;

/// Runs and sessions in PostgreSQL: the durable store for workers on several machines.
///
/// A cheap handle on a thread that has a few connections. A step is one statement, so one round trip.
/// What was handed over is done whole, also if the future that asked for it is dropped; the drop of the
/// last handle waits for it. Works under any executor. Not behind a pooler that shares connections
/// between transactions. Times are those of the server.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    database: DatabaseThread,
    shared: Arc<Shared>,
    turns: Turns,
}

/// What the thread's work and its beat share.
struct Shared {
    options: StoreOptions,
    ahead: Ahead,
    holds: Holds,
}

impl Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("options", &self.0.shared.options)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, and brings the tables to this version's layout.
    ///
    /// `url` is `postgres://user:password@host:port/database`, or pairs (`host=… user=…`); a host that
    /// begins with `/` is the folder of a Unix socket. Connections are encrypted only with
    /// `PostgresOptions::with_tls` of the feature `postgres-tls`; an address that asks for it without that is an error.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if the address is none;
    /// [`ErrorKind::Store`](raf_core::ErrorKind::Store) if there is no connection, or a later version
    /// laid the tables out (code `later_schema`).
    pub async fn open(url: &str) -> Result<Self> {
        Self::open_with(url, PostgresOptions::default()).await
    }

    /// Connects with settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with(url: &str, options: PostgresOptions) -> Result<Self> {
        let way = Way::new(url, &options)?;
        check_schema(&options.schema)?;
        let shared = Arc::new(Shared {
            options: options.limits,
            ahead: options.ahead,
            holds: Holds::default(),
        });
        let beating = Arc::clone(&shared);
        let beat = Beat {
            every: options.limits.lease / 3,
            body: Box::new(move |connection| {
                let shared = Arc::clone(&beating);
                Box::pin(async move { shared.beat(&connection).await })
            }),
        };
        let settings = PoolSettings {
            way,
            schema: options.schema.clone(),
            max_connections: options.max_connections,
        };
        let store = Self(Arc::new(Inner {
            database: DatabaseThread::start(settings, beat)?,
            shared,
            turns: Turns::default(),
        }));
        let schema = options.schema;
        let migrated = store
            .0
            .database
            .ask(move |connection| async move { schema::migrate(&connection, &schema).await });
        told(migrated.await, "open", None)?;
        Ok(store)
    }

    /// Does something with a connection.
    async fn ask<T, B, F>(&self, body: B) -> Result<T>
    where
        T: Send + 'static,
        B: FnOnce(Rc<Connection>, Arc<Shared>) -> F + Send + 'static,
        F: Future<Output = Result<T, Fault>> + 'static,
    {
        let shared = Arc::clone(&self.0.shared);
        let asked = self
            .0
            .database
            .ask(move |connection| body(connection, shared));
        asked.await
    }
}

impl Shared {
    /// What the clock is ahead of the server's, in milliseconds.
    fn ahead(&self) -> i64 {
        milliseconds((self.ahead)())
    }

    fn lifetime(&self) -> i64 {
        milliseconds(self.options.lifetime)
    }

    fn lease(&self) -> i64 {
        milliseconds(self.options.lease)
    }

    /// Renews what this process holds, and lets go what it no longer does.
    async fn beat(&self, connection: &Connection) -> Result<(), Fault> {
        self.release_dead(connection).await?;
        if !self.options.heartbeat {
            return Ok(());
        }
        for (run_id, held) in self.holds.live() {
            records::renew(connection, self, &run_id, &held.owner, held.fence).await?;
        }
        for (session_id, owner) in self.holds.leases() {
            connection
                .rows(
                    "UPDATE raf_session_leases SET lease_until = raf_now($3) + $4
                     WHERE session_id = $1 AND owner = $2",
                    &[&session_id, &owner, &self.ahead(), &self.lease()],
                )
                .await?;
        }
        Ok(())
    }

    /// Lets runs go whose claims were dropped in this process.
    async fn release_dead(&self, connection: &Connection) -> Result<(), Fault> {
        let dead = self.holds.dead();
        for (run_id, held) in &dead {
            records::release(connection, run_id, &held.owner).await?;
        }
        self.holds.forget_dead(&dead);
        Ok(())
    }
}

fn check_schema(schema: &str) -> Result<()> {
    let plain =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let begins = schema.starts_with(|letter: char| letter.is_ascii_lowercase());
    if begins && schema.chars().all(plain) && schema.len() <= 63 {
        return Ok(());
    }
    Err(Error::configuration(format!(
        "'{schema}' is no schema for a store's tables: a lower-case letter, then lower-case letters, \
         digits and '_', 63 at most"
    )))
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
