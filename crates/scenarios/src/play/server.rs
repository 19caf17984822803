//! A PostgreSQL server that cases are played on: schemas that are made once and used again, since making
//! one costs more than a case.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use raf_core::RunId;
use tokio_postgres::{Error, NoTls};

/// How many schemas are played in at once: each takes a connection or two of the server's, of which it has
/// a hundred by default.
const AT_ONCE: usize = 16;

/// A server, and the schemas that were made on it. The drop drops them.
pub(crate) struct Server {
    url: String,
    schemas: Mutex<Schemas>,
    /// A schema is no longer played in.
    left: Condvar,
}

#[derive(Default)]
struct Schemas {
    made: Vec<String>,
    /// Those that are empty and that nobody plays in.
    free: Vec<String>,
    in_use: usize,
}

impl Server {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            schemas: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// A schema that nobody else plays in, and that is empty or is still to be made. Waits while there are
    /// many in use.
    pub(crate) fn schema(self: &Arc<Self>) -> Schema {
        let schemas = self.schemas();
        let waited = self
            .left
            .wait_while(schemas, |schemas| schemas.in_use >= AT_ONCE);
        let mut schemas = waited.unwrap_or_else(PoisonError::into_inner);
        schemas.in_use += 1;
        let name = schemas.free.pop().unwrap_or_else(|| {
            let name = format!("raf_scenario_{}", RunId::random());
            schemas.made.push(name.clone());
            name
        });
        Schema {
            server: Arc::clone(self),
            name,
        }
    }

    fn schemas(&self) -> MutexGuard<'_, Schemas> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs statements over a connection of their own.
    fn execute(&self, sql: &str) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime of one thread");
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await?;
            tokio::select! {
                done = client.batch_execute(sql) => done,
                ended = connection => ended,
            }
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let made = std::mem::take(&mut self.schemas().made);
        if made.is_empty() {
            return;
        }
        let drops = made
            .iter()
            .map(|name| format!("DROP SCHEMA IF EXISTS {name} CASCADE;"));
        if let Err(error) = self.execute(&drops.collect::<String>()) {
            tracing::warn!(%error, "schemas that cases were played in are left on the server");
        }
    }
}

/// A schema that a case is played in.
pub(crate) struct Schema {
    server: Arc<Server>,
    name: String,
}

impl Schema {
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Empties it, for another case to play in.
    ///
    /// # Errors
    /// What the server fails with: then nobody plays in it again.
    pub(crate) fn give_back(self) -> Result<(), Error> {
        let name = &self.name;
        self.server.execute(&format!(
            "DO $$ DECLARE name text; BEGIN
               FOR name IN SELECT tablename FROM pg_tables
                 WHERE schemaname = '{name}' AND tablename <> 'raf_schema'
               LOOP EXECUTE 'DELETE FROM {name}.' || name; END LOOP;
             END $$"
        ))?;
        self.server.schemas().free.push(name.clone());
        Ok(())
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.server.schemas().in_use -= 1;
        self.server.left.notify_one();
    }
}
