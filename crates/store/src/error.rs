//! What a store fails with: whether a retry helps, what was being done, never a secret.

use raf_core::{Error, ErrorKind, RetryStatus};

/// A store's error of a kind that callers can tell by its code.
pub(crate) fn failed(code: &'static str, retry: RetryStatus, what: &str) -> Error {
    Error::new(ErrorKind::Store, what)
        .with_code(code)
        .with_retry(retry)
}

/// The disk, or what the store may use of it, is full.
pub(crate) fn disk_full() -> Error {
    failed(
        "disk_full",
        RetryStatus::Persistent,
        "the store's disk is full: nothing of this write was kept. Make room, then go on",
    )
}

/// A later version has laid out the tables.
pub(crate) fn later_schema(found: i64, known: i64) -> Error {
    failed(
        "later_schema",
        RetryStatus::Permanent,
        &format!(
            "a later version laid out this store: it has schema {found}, this version knows up to \
             {known}. Nothing was changed; update raf here"
        ),
    )
}

/// The store was closed while something was asked of it.
pub(crate) fn closed() -> Error {
    failed(
        "closed",
        RetryStatus::Permanent,
        "the store is closed: its last handle was dropped, or its thread has ended",
    )
}
