#![doc = include_str!("../README.md")]

mod claims;
mod error;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod record_row;
mod session_row;
#[cfg(feature = "sqlite")]
mod sqlite;
mod turns;

pub use options::StoreOptions;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
