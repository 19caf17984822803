//! What a SQLite store can be told.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::options::StoreOptions;

pub(super) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Settings of a [`SqliteStore`](super::SqliteStore).
///
/// | setting | default |
/// |---|---|
/// | `limits` | those of [`StoreOptions`] |
/// | `prefix`: of the tables' names | `raf_` |
/// | `busy_timeout`: how long it waits for another process's write | 5 seconds |
/// | `synchronous` | [`Synchronous::Full`] |
/// | `max_pages`: how large the file may grow, in pages of 4 KiB | no bound |
#[derive(Clone)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// How long what is kept, how long a hold lasts.
    pub limits: StoreOptions,
    /// The prefix of the tables' names: two stores in one file.
    pub prefix: String,
    /// How long it waits for another process's write.
    pub busy_timeout: Duration,
    /// When a commit is on the disk.
    pub synchronous: Synchronous,
    /// How large the file may grow, in pages.
    pub max_pages: Option<u32>,
    pub(super) clock: Clock,
}

/// When a commit is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Before the write returns: it survives the loss of power.
    #[default]
    Full,
    /// A little later: it survives the death of the process, not always the loss of power. The file
    /// stays whole either way.
    Normal,
}

impl Synchronous {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            limits: StoreOptions::default(),
            prefix: "raf_".to_owned(),
            busy_timeout: Duration::from_secs(5),
            synchronous: Synchronous::Full,
            max_pages: None,
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default()
            }),
        }
    }
}

impl Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("limits", &self.limits)
            .field("prefix", &self.prefix)
            .field("busy_timeout", &self.busy_timeout)
            .field("synchronous", &self.synchronous)
            .field("max_pages", &self.max_pages)
            .finish_non_exhaustive()
    }
}

impl SqliteOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long what is kept, and how long a hold lasts.
    pub fn with_limits(mut self, limits: StoreOptions) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the prefix of the tables' names.
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how long it waits for another process's write.
    pub fn with_busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets when a commit is on the disk.
    pub fn with_synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Bounds the file, in pages of 4 KiB: beyond it writes fail with the code `disk_full`.
    pub fn with_max_pages(mut self, pages: u32) -> Self {
        self.max_pages = Some(pages);
        self
    }

    /// Sets the clock: the time since 1970 began. For tests.
    pub fn with_clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}
