//! What SQLite fails with, told as an error of the store.

use raf_core::{Error, ErrorKind, RetryStatus};
use rusqlite::ErrorCode;

use crate::error::{disk_full, failed};

/// What went wrong within a transaction.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// It has its words already.
    Told(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sqlite(error) => told(error),
            Fault::Told(error) => error,
        }
    }
}

fn told(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    let words = match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => failed(
            "busy",
            RetryStatus::Temporary,
            "another process held the store's file for longer than the busy timeout: try again",
        ),
        Some(ErrorCode::DiskFull) => disk_full(),
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::CannotOpen) => failed(
            "permission",
            RetryStatus::Permanent,
            "the store's file cannot be opened or written: look at its path, its folder and their \
             permissions",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => failed(
            "corrupt",
            RetryStatus::Permanent,
            "the store's file is damaged or no SQLite database: restore it from a copy",
        ),
        Some(ErrorCode::SystemIoFailure) => failed(
            "io",
            RetryStatus::Persistent,
            "the system could not read or write the store's file",
        ),
        _ => Error::new(ErrorKind::Store, "SQLite refused a statement of the store"),
    };
    words.with_source(error)
}
