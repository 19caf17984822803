//! What the environment says, and the stores that it names.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raf_core::{Error, IRunStore, ISessionStore, Result};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StoreOptions};

/// What each process of the service is told alike.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// A file of SQLite, or the address of a PostgreSQL server; none: the default file.
    pub(crate) store: Option<String>,
    /// The schema of the tables in PostgreSQL; none: the default of raf-store.
    pub(crate) schema: Option<String>,
    /// How long a run is held without a sign of life.
    pub(crate) lease: Option<Duration>,
    /// The file of the bank.
    pub(crate) payments: PathBuf,
}

/// Where runs and conversations are kept: one database.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    pub(crate) runs: Arc<dyn IRunStore>,
    pub(crate) sessions: Arc<dyn ISessionStore>,
}

impl Settings {
    pub(crate) const STORE: &'static str = "RAF_STORE";
    pub(crate) const SCHEMA: &'static str = "RAF_SCHEMA";
    pub(crate) const LEASE: &'static str = "RAF_LEASE_SECONDS";
    pub(crate) const PAYMENTS: &'static str = "RAF_PAYMENTS";

    /// What the environment says.
    ///
    /// # Errors
    /// A number that is none.
    pub(crate) fn from_env() -> Result<Self> {
        let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let lease = said(Self::LEASE).map(|seconds| {
            let seconds = seconds.parse().ok().filter(|seconds| *seconds > 0);
            seconds.map(Duration::from_secs).ok_or_else(|| {
                Error::configuration(format!("{} is no number of seconds", Self::LEASE))
            })
        });
        Ok(Self {
            store: said(Self::STORE),
            schema: said(Self::SCHEMA),
            lease: lease.transpose()?,
            payments: said(Self::PAYMENTS)
                .unwrap_or_else(|| "raf_payments.txt".to_owned())
                .into(),
        })
    }

    /// Opens the stores. Any number of processes may.
    ///
    /// # Errors
    /// A file or a server that cannot be used.
    pub(crate) async fn open(&self) -> Result<Stores> {
        let mut limits = StoreOptions::new();
        if let Some(lease) = self.lease {
            limits = limits.with_lease(lease);
        }
        let store = self.store.as_deref().unwrap_or("raf_web_service.db");
        if store.starts_with("postgres://") || store.starts_with("postgresql://") {
            let mut options = PostgresOptions::new().with_limits(limits);
            if let Some(schema) = &self.schema {
                options = options.with_schema(schema);
            }
            return Ok(Stores::of(PostgresStore::open_with(store, options).await?));
        }
        let options = SqliteOptions::new().with_limits(limits);
        Ok(Stores::of(SqliteStore::open_with(store, options)?))
    }
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
