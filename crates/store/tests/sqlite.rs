//! The SQLite store holds the contract of stores.
#![cfg(feature = "sqlite")]

#[path = "fixtures/sqlite.rs"]
mod fixture;

use fixture::SqliteFixture;
use raf_store::SqliteStore;

const _: fn(&std::path::Path) -> raf_core::Result<SqliteStore> = |path| SqliteStore::open(path);

raf_testing::run_store_contract!(sqlite_runs: SqliteStore, SqliteFixture::new());
raf_testing::session_store_contract!(sqlite_sessions: SqliteStore, SqliteFixture::new());
