#![doc = include_str!("../README.md")]

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod claims;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod error;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod record_row;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod session_row;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod turns;

pub use options::StoreOptions;
#[cfg(feature = "postgres-tls")]
pub use postgres::PostgresTls;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore, Synchronous};
