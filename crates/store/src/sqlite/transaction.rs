//! What one transaction works with: the connection, the tables, the time, the settings.

use raf_core::RunId;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use super::fault::Fault;
use super::tables::Tables;
use crate::claims::Holds;
use crate::options::{StoreOptions, milliseconds};

/// One transaction.
#[derive(Clone, Copy)]
pub(super) struct Transaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) tables: &'a Tables,
    pub(super) options: &'a StoreOptions,
    pub(super) holds: &'a Holds,
    /// Milliseconds since 1970 began.
    pub(super) now: i64,
}

impl Transaction<'_> {
    /// A statement, prepared once per connection.
    pub(super) fn statement(&self, sql: &str) -> Result<CachedStatement<'_>, Fault> {
        Ok(self.connection.prepare_cached(&self.tables.sql(sql))?)
    }

    /// Executes a statement; how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        Ok(self.statement(sql)?.execute(params)?)
    }

    /// The one row of a query, if there is one.
    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.statement(sql)?.query_row(params, read).optional()?)
    }

    /// All rows of a query.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.statement(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// When a run that is written to now expires.
    pub(super) fn run_expiry(&self) -> i64 {
        self.now.saturating_add(milliseconds(self.options.lifetime))
    }

    /// Until when a hold lasts that is taken or renewed now.
    pub(super) fn lease_end(&self) -> i64 {
        self.now.saturating_add(milliseconds(self.options.lease))
    }

    /// The columns of a run, without its record.
    pub(super) fn run(&self, run_id: &RunId) -> Result<Option<RunRow>, Fault> {
        self.one(
            "SELECT revision, fence, owner, lease_until, expires_at, format
             FROM raf_runs WHERE run_id = ?1",
            [run_id.as_str()],
            |row| {
                Ok(RunRow {
                    revision: row.get(0)?,
                    fence: row.get(1)?,
                    owner: row.get(2)?,
                    lease_until: row.get(3)?,
                    expires_at: row.get(4)?,
                    format: row.get(5)?,
                })
            },
        )
    }
}

/// The columns of a run.
#[derive(Debug)]
pub(super) struct RunRow {
    pub(super) revision: i64,
    pub(super) fence: i64,
    pub(super) owner: Option<String>,
    pub(super) lease_until: i64,
    pub(super) expires_at: i64,
    pub(super) format: u32,
}
