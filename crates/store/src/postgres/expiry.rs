//! What is over: runs are closed as expired, then gone.

use raf_core::{RunId, RunRecord, WriteOutcome};

use super::pool::Connection;
use super::{Fault, Shared, records};
use crate::record_row::expired;

/// Closes and forgets what is over; says how many were closed. A run that somebody holds is not over.
pub(super) async fn expire(connection: &Connection, shared: &Shared) -> Result<usize, Fault> {
    let ahead = shared.ahead();
    let over = connection
        .rows(
            "SELECT run_id, closed, record::text FROM raf_runs
             WHERE due_at <= raf_now($1)
                 AND (closed OR owner IS NULL OR lease_until <= raf_now($1))
             ORDER BY due_at LIMIT 1000",
            &[&ahead],
        )
        .await?;
    let mut closed = 0;
    for row in &over {
        let run_id = RunId::from(row.try_get::<_, &str>(0)?);
        if row.try_get(1)? {
            connection
                .rows(
                    "SELECT raf_forget($1, $2, $3)",
                    &[&ahead, &shared.lifetime(), &run_id.as_str()],
                )
                .await?;
            continue;
        }
        match RunRecord::from_json(row.try_get(2)?) {
            Ok(record) => {
                let written = records::write(connection, shared, &expired(record)).await?;
                closed += usize::from(written != WriteOutcome::Conflict);
            }
            // What cannot be read is left as it is, for a version that can.
            Err(error) => {
                tracing::warn!(%error, run = run_id.as_str(), "an expired run cannot be closed");
                connection
                    .rows(
                        "UPDATE raf_runs SET due_at = raf_now($2) + $3 WHERE run_id = $1",
                        &[&run_id.as_str(), &ahead, &shared.lifetime()],
                    )
                    .await?;
            }
        }
    }
    connection
        .rows(
            "DELETE FROM raf_tombstones WHERE expires_at <= raf_now($1)",
            &[&ahead],
        )
        .await?;
    Ok(closed)
}
