//! The store that a case is played over: where it lives, how it is opened again, and that it fails when
//! told to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::executor::block_on;
use raf_core::{IRunStore, InMemoryRunStore, Result, RunId};
use raf_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StoreOptions};
use raf_testing::{FaultyRunStore, RecordWrite};
use tempfile::TempDir;

use super::server::{Schema, Server};
use crate::format::StoreFault;
use crate::way::{DurableStore, Reload};

/// How long a hold lasts without a sign of life: longer than any case takes.
const LEASE: Duration = Duration::from_hours(1);
/// How much later each process opens the store: what a dead one held has lapsed.
const LATER: Duration = Duration::from_hours(2);

/// The store of a case, and what it is kept in.
pub(crate) struct Store {
    place: Place,
    reload: Reload,
    /// Without faults: what the process before has open.
    open: Arc<dyn IRunStore>,
    faulty: Arc<FaultyRunStore>,
    /// How often it was opened again.
    reopened: u32,
}

enum Place {
    Memory(InMemoryRunStore),
    Sqlite {
        folder: TempDir,
        file: PathBuf,
        /// What the disk held when the process was killed in the middle of a leg.
        image: Option<PathBuf>,
    },
    Postgres(Schema),
}

impl Store {
    /// A fresh one, as the way says.
    ///
    /// # Errors
    /// If it cannot be opened, in words.
    pub(crate) fn new(reload: Reload, postgres: Option<&Arc<Server>>) -> Result<Self, String> {
        let place = match reload.durable() {
            None => Place::Memory(InMemoryRunStore::new()),
            Some(DurableStore::Memory) => Place::Memory(InMemoryRunStore::new().with_durable(true)),
            Some(DurableStore::Sqlite) => {
                let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                let file = folder.path().join("runs.db");
                Place::Sqlite {
                    folder,
                    file,
                    image: None,
                }
            }
            Some(DurableStore::Postgres) => {
                let server = postgres.ok_or("no PostgreSQL server is named")?;
                Place::Postgres(server.schema())
            }
        };
        let open = place.open(0).map_err(in_words)?;
        let faulty = FaultyRunStore::new(Arc::clone(&open)).with_standing_clock(true);
        Ok(Self {
            place,
            reload,
            open,
            faulty: Arc::new(faulty),
            reopened: 0,
        })
    }

    /// It, as a loop uses it.
    pub(crate) fn shared(&self) -> Arc<dyn IRunStore> {
        Arc::clone(&self.faulty) as _
    }

    /// It as it is, without faults, if it is durable.
    pub(crate) fn durable(&self) -> Option<&dyn IRunStore> {
        self.reload.durable().map(|_| &*self.open)
    }

    /// The next so many writes fail.
    pub(crate) fn fail(&self, fault: &StoreFault) {
        self.faulty
            .fail_next(RecordWrite::Create, 0, fault.fail_creates);
        self.faulty
            .fail_next(RecordWrite::Save, 0, fault.fail_saves);
    }

    /// The process is killed in the middle of a leg, whose future still lives: what it would write from
    /// now on never comes to be.
    ///
    /// # Errors
    /// If what is there cannot be kept, in words.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        if !matches!(self.reload, Reload::Killed(_)) {
            return Ok(());
        }
        self.settle()?;
        self.place.keep_image(self.reopened).map_err(in_words)
    }

    /// Opens it again, as the way says: as the next process finds it.
    ///
    /// # Errors
    /// If it cannot be opened, in words.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        match self.reload {
            Reload::Nothing | Reload::SameStore | Reload::StoreAndValue => return Ok(()),
            Reload::NewProcess => self.place = Place::Memory(InMemoryRunStore::new()),
            Reload::Reopened(_) => {
                // The drop of the last handle closes it.
                self.use_store(Arc::new(InMemoryRunStore::new()));
            }
            Reload::Killed(_) => {
                self.settle()?;
                self.place.become_image(self.reopened).map_err(in_words)?;
            }
        }
        self.reopened += 1;
        let open = self.place.open(self.reopened).map_err(in_words)?;
        self.use_store(open);
        Ok(())
    }

    fn use_store(&mut self, open: Arc<dyn IRunStore>) {
        self.faulty = Arc::new(self.faulty.over(Arc::clone(&open)));
        self.open = open;
    }

    /// What was handed over is done: a store does one thing after another.
    fn settle(&self) -> Result<(), String> {
        let asked = block_on(self.open.load(&RunId::from("none")));
        asked.map(drop).map_err(in_words)
    }

    /// Closes it for good. Not within a runtime.
    ///
    /// # Errors
    /// If a server cannot be left as it was, in words.
    pub(crate) fn close(self) -> Result<(), String> {
        let Self {
            place,
            open,
            faulty,
            ..
        } = self;
        drop((open, faulty));
        match place {
            Place::Postgres(schema) => schema.give_back().map_err(in_words),
            Place::Memory(_) | Place::Sqlite { .. } => Ok(()),
        }
    }
}

impl Place {
    /// Opens it with a clock that is ahead by so many lives of a process.
    fn open(&self, lives: u32) -> Result<Arc<dyn IRunStore>> {
        let limits = StoreOptions::new().with_lease(LEASE);
        let ahead = LATER * lives;
        Ok(match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Sqlite { file, .. } => {
                let clock = move || {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH);
                    now.unwrap_or_default() + ahead
                };
                let options = SqliteOptions::new().with_limits(limits).with_clock(clock);
                Arc::new(SqliteStore::open_with(file, options)?)
            }
            Self::Postgres(schema) => {
                let options = PostgresOptions::new()
                    .with_limits(limits)
                    .with_schema(schema.name())
                    .with_max_connections(1)
                    .with_clock_ahead(move || ahead);
                Arc::new(block_on(PostgresStore::open_with(schema.url(), options))?)
            }
        })
    }

    /// Keeps what the disk holds now, while the file is open and nobody writes. A server needs no image.
    fn keep_image(&mut self, life: u32) -> std::io::Result<()> {
        let Self::Sqlite {
            folder,
            file,
            image,
        } = self
        else {
            return Ok(());
        };
        let copy = folder.path().join(format!("runs-{life}.db"));
        std::fs::copy(&*file, &copy)?;
        let log = |file: &Path| file.with_extension("db-wal");
        if log(file).exists() {
            std::fs::copy(log(file), log(&copy))?;
        }
        *image = Some(copy);
        Ok(())
    }

    /// The next process finds what the disk held when the one before was killed.
    fn become_image(&mut self, life: u32) -> std::io::Result<()> {
        let has_image = matches!(self, Self::Sqlite { image: Some(_), .. });
        if !has_image {
            self.keep_image(life)?;
        }
        if let Self::Sqlite { file, image, .. } = self
            && let Some(image) = image.take()
        {
            *file = image;
        }
        Ok(())
    }
}

fn in_words(error: impl std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
