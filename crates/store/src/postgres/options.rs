//! What a PostgreSQL store can be told.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use crate::options::StoreOptions;

/// What a test adds to the server's clock.
pub(super) type Ahead = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Settings of a [`PostgresStore`](super::PostgresStore).
///
/// | setting | default |
/// |---|---|
/// | `limits` | those of [`StoreOptions`] |
/// | `schema`: where the tables stand, made if it is missing | `raf` |
/// | `max_connections`: of this store | 4 |
/// | `connect_timeout` | 10 seconds |
/// | `tls`: whose certificates are trusted, with the feature `postgres-tls` | none: plain connections |
#[derive(Clone)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// How long what is kept, how long a hold lasts.
    pub limits: StoreOptions,
    /// The schema of the tables.
    pub schema: String,
    /// How many connections there are at most.
    pub max_connections: usize,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Whose certificates are trusted; without it connections are plain.
    #[cfg(feature = "postgres-tls")]
    pub tls: Option<super::PostgresTls>,
    pub(super) ahead: Ahead,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            limits: StoreOptions::default(),
            schema: "raf".to_owned(),
            max_connections: 4,
            connect_timeout: Duration::from_secs(10),
            #[cfg(feature = "postgres-tls")]
            tls: None,
            ahead: Arc::new(|| Duration::ZERO),
        }
    }
}

impl Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("limits", &self.limits)
            .field("schema", &self.schema)
            .field("max_connections", &self.max_connections)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long what is kept, and how long a hold lasts.
    pub fn with_limits(mut self, limits: StoreOptions) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the schema of the tables.
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets how many connections there are at most; at least one.
    pub fn with_max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections.max(1);
        self
    }

    /// Sets how long a connection may take to be made.
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Encrypts all connections, and says whose certificates are trusted.
    #[cfg(feature = "postgres-tls")]
    pub fn with_tls(mut self, tls: super::PostgresTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Puts the store's clock ahead of the server's. For tests.
    pub fn with_clock_ahead(
        mut self,
        ahead: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.ahead = Arc::new(ahead);
        self
    }
}
