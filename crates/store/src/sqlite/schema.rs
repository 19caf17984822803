//! The layout of the tables, and how a file comes to it.

use rusqlite::Connection;

use super::fault::Fault;
use super::tables::Tables;
use crate::error::later_schema;

/// Each step that was ever taken, in order. A step is never changed once it was released.
const STEPS: &[&str] = &[include_str!("schema/1.sql")];

/// Brings the file to this version's layout. Two processes may do it at once: the second finds it done.
///
/// # Errors
/// A layout of a later version, which is left as it is.
pub(super) fn migrate(connection: &Connection, tables: &Tables) -> Result<(), Fault> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = step_up(connection, tables);
    connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done
}

fn step_up(connection: &Connection, tables: &Tables) -> Result<(), Fault> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    connection.execute_batch(
        &tables.sql("CREATE TABLE IF NOT EXISTS raf_schema (version INTEGER NOT NULL) STRICT"),
    )?;
    let found: i64 = connection.query_row(
        &tables.sql("SELECT COALESCE(MAX(version), 0) FROM raf_schema"),
        [],
        |row| row.get(0),
    )?;
    if found > known {
        return Err(later_schema(found, known).into());
    }
    for (step, sql) in STEPS
        .iter()
        .enumerate()
        .skip(usize::try_from(found).unwrap_or(0))
    {
        connection.execute_batch(&tables.sql(sql))?;
        let version = i64::try_from(step + 1).unwrap_or(i64::MAX);
        connection.execute(
            &tables.sql("INSERT INTO raf_schema (version) VALUES (?1)"),
            [version],
        )?;
    }
    Ok(())
}
