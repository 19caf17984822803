//! A PostgreSQL server that cases are played on: schemas that are made once and used again, since making
//! one costs more than a case.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raf_core::RunId;
use tokio_postgres::{Error, NoTls};

/// A server, and the schemas that were made on it. The drop drops them.
pub(crate) struct Server {
    url: String,
    made: Mutex<Vec<String>>,
    /// Those that nobody plays in.
    free: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            made: Mutex::default(),
            free: Mutex::default(),
        }
    }

    /// A schema that nobody else plays in, and that is empty or is still to be made.
    pub(crate) fn schema(self: &Arc<Self>) -> Schema {
        let free = lock(&self.free).pop();
        let name = free.unwrap_or_else(|| {
            let name = format!("raf_scenario_{}", RunId::random());
            lock(&self.made).push(name.clone());
            name
        });
        Schema {
            server: Arc::clone(self),
            name,
        }
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
        let made = std::mem::take(&mut *lock(&self.made));
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
        lock(&self.server.free).push(self.name);
        Ok(())
    }
}

fn lock(names: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}
