//! The layout of the tables, and how a schema comes to it.

use super::fault::Fault;
use super::pool::Connection;
use crate::error::later_schema;

/// Each step that was ever taken, in order. A step is never changed once it was released.
const STEPS: &[&str] = &[include_str!("schema/1.sql")];

/// Brings the schema to this version's layout. Processes that open it at once come one after another.
///
/// # Errors
/// A layout of a later version, which is left as it is.
pub(super) async fn migrate(connection: &Connection, schema: &str) -> Result<(), Fault> {
    // The lock is let go with the transaction, also if this process dies.
    connection
        .batch(&format!(
            "BEGIN; SELECT pg_advisory_xact_lock(hashtext('raf-store {schema}'))"
        ))
        .await?;
    let done = step_up(connection, schema).await;
    connection
        .batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })
        .await?;
    done
}

async fn step_up(connection: &Connection, schema: &str) -> Result<(), Fault> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    // Only who may create a schema is asked to.
    let present: bool = connection
        .value(
            "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)",
            &[&schema],
        )
        .await?;
    if !present {
        connection
            .batch(&format!("CREATE SCHEMA \"{schema}\""))
            .await?;
    }
    connection
        .batch("CREATE TABLE IF NOT EXISTS raf_schema (version bigint NOT NULL)")
        .await?;
    let found: i64 = connection
        .value(
            "SELECT coalesce(max(version), 0)::bigint FROM raf_schema",
            &[],
        )
        .await?;
    if found > known {
        return Err(later_schema(found, known).into());
    }
    let done = usize::try_from(found).unwrap_or(0);
    for (step, sql) in STEPS.iter().enumerate().skip(done) {
        connection.batch(sql).await?;
        let version = i64::try_from(step + 1).unwrap_or(i64::MAX);
        connection
            .rows("INSERT INTO raf_schema (version) VALUES ($1)", &[&version])
            .await?;
    }
    Ok(())
}
