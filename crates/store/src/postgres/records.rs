//! Records and journals: each write is one call of a function that the schema has.

use raf_core::{ClaimOutcome, Error, JournalKey, RunClaim, RunId, RunRecord, WriteOutcome};

use super::Shared;
use super::fault::Fault;
use super::pool::Connection;
use crate::record_row::{RecordRow, column, count};

/// Keeps a new record, unless the run is known.
pub(super) async fn create(
    connection: &Connection,
    shared: &Shared,
    record: &RunRecord,
    claim: Option<&RunClaim>,
) -> Result<WriteOutcome, Fault> {
    let row = RecordRow::new(record, 1)?;
    let format = format_of(record)?;
    let kept: bool = connection
        .value(
            "SELECT raf_create($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                &shared.ahead(),
                &shared.lifetime(),
                &shared.lease(),
                &record.run_id.as_str(),
                &record.session_id,
                &format,
                &record.closed,
                &record.working,
                &row.json,
                &row.answerable_until,
                &row.request_ids,
                &claim.map(RunClaim::owner),
            ],
        )
        .await?;
    if let Some(claim) = claim.filter(|_| kept) {
        shared.holds.hold(&record.run_id, claim, 1);
    }
    Ok(if kept {
        WriteOutcome::Written(1)
    } else {
        WriteOutcome::Conflict
    })
}

/// The record of a run, and whether the run is over.
pub(super) async fn load(
    connection: &Connection,
    shared: &Shared,
    run_id: &RunId,
) -> Result<Option<(RunRecord, bool)>, Fault> {
    let row = connection
        .row(
            "SELECT record::text, due_at <= raf_now($2)
                 AND (closed OR owner IS NULL OR lease_until <= raf_now($2))
             FROM raf_runs WHERE run_id = $1",
            &[&run_id.as_str(), &shared.ahead()],
        )
        .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    Ok(Some((
        RunRecord::from_json(row.try_get(0)?)?,
        row.try_get(1)?,
    )))
}

/// Writes over the record of the same revision.
pub(super) async fn write(
    connection: &Connection,
    shared: &Shared,
    record: &RunRecord,
) -> Result<WriteOutcome, Fault> {
    let row = RecordRow::new(record, record.revision + 1)?;
    let format = format_of(record)?;
    let outcome: String = connection
        .value(
            "SELECT raf_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                &shared.ahead(),
                &shared.lifetime(),
                &record.run_id.as_str(),
                &column(record.revision)?,
                &record.session_id,
                &format,
                &record.closed,
                &record.working,
                &row.json,
                &row.answerable_until,
                &row.request_ids,
                &row.settled,
            ],
        )
        .await?;
    match outcome.as_str() {
        "written" => Ok(WriteOutcome::Written(record.revision + 1)),
        "later_format" => {
            // Reading it says so in the same words as ever.
            load(connection, shared, &record.run_id).await?;
            Ok(WriteOutcome::Conflict)
        }
        _ => Ok(WriteOutcome::Conflict),
    }
}

/// What one append brings.
pub(super) struct Append {
    pub(super) key: JournalKey,
    pub(super) claim: RunClaim,
    pub(super) base: u64,
    pub(super) entries: Vec<String>,
    pub(super) record: Option<RunRecord>,
}

/// Appends to a journal, and writes the root run's record.
pub(super) async fn append(
    connection: &Connection,
    shared: &Shared,
    append: &Append,
) -> Result<WriteOutcome, Fault> {
    let root = &append.key.root;
    let record = append.record.as_ref();
    let row = record
        .map(|record| RecordRow::new(record, record.revision + 1))
        .transpose()?;
    let fence = append.claim.fence(root).map(column).transpose()?;
    let revision = record.map(|record| column(record.revision)).transpose()?;
    let format = record.map(format_of).transpose()?;
    let requests = row.as_ref().map(|row| row.request_ids.as_slice());
    let settled = row.as_ref().map(|row| row.settled.as_slice());
    let result = connection
        .row(
            "SELECT * FROM raf_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                 $15, $16, $17, $18)",
            &[
                &shared.ahead(),
                &shared.lifetime(),
                &shared.lease(),
                &root.as_str(),
                &append.key.run.as_str(),
                &append.claim.owner(),
                &fence,
                &column(append.base)?,
                &append.entries,
                &revision,
                &record.and_then(|record| record.session_id.as_deref()),
                &format,
                &record.map(|record| record.closed),
                &record.map(|record| record.working),
                &row.as_ref().map(|row| row.json.as_str()),
                &row.as_ref().and_then(|row| row.answerable_until),
                &requests,
                &settled,
            ],
        )
        .await?
        .ok_or(Fault::NoRow)?;
    let written: Option<i64> = result.try_get(1)?;
    Ok(match (result.try_get(0)?, written) {
        ("created", Some(revision)) => {
            shared.holds.hold(root, &append.claim, 1);
            WriteOutcome::Written(count(revision))
        }
        ("written", Some(written)) => WriteOutcome::Written(count(written)),
        ("lost", _) => WriteOutcome::ClaimLost,
        _ => WriteOutcome::Conflict,
    })
}

/// Takes hold of a run; `None` if it is over and has to be closed first.
pub(super) async fn claim(
    connection: &Connection,
    shared: &Shared,
    run_id: &RunId,
    claim: &RunClaim,
) -> Result<Option<ClaimOutcome>, Fault> {
    let row = connection
        .row(
            "SELECT * FROM raf_claim($1, $2, $3, $4)",
            &[
                &shared.ahead(),
                &shared.lease(),
                &run_id.as_str(),
                &claim.owner(),
            ],
        )
        .await?
        .ok_or(Fault::NoRow)?;
    let fence: Option<i64> = row.try_get(1)?;
    let record: Option<&str> = row.try_get(2)?;
    Ok(match (row.try_get(0)?, fence, record) {
        ("claimed", Some(fence), Some(json)) => {
            match RunRecord::from_json(json) {
                Ok(record) => {
                    shared.holds.hold(run_id, claim, count(fence));
                    Some(ClaimOutcome::Claimed(Box::new(record)))
                }
                // Nobody can do anything with it here: somebody else may.
                Err(error) => {
                    release(connection, run_id, claim.owner()).await?;
                    return Err(error.into());
                }
            }
        }
        ("busy", ..) => Some(ClaimOutcome::Busy),
        ("due", ..) => None,
        _ => Some(ClaimOutcome::Missing),
    })
}

/// Lets a run go that this owner holds.
pub(super) async fn release(
    connection: &Connection,
    run_id: &RunId,
    owner: &str,
) -> Result<(), Fault> {
    connection
        .rows(
            "UPDATE raf_runs SET owner = NULL, lease_until = 0 WHERE run_id = $1 AND owner = $2",
            &[&run_id.as_str(), &owner],
        )
        .await?;
    Ok(())
}

/// A sign of life; whether the run is still held under this fence.
pub(super) async fn renew(
    connection: &Connection,
    shared: &Shared,
    run_id: &RunId,
    owner: &str,
    fence: u64,
) -> Result<bool, Fault> {
    let renewed = connection
        .row(
            "UPDATE raf_runs SET lease_until = raf_now($4) + $5
             WHERE run_id = $1 AND owner = $2 AND fence = $3 RETURNING true",
            &[
                &run_id.as_str(),
                &owner,
                &column(fence)?,
                &shared.ahead(),
                &shared.lease(),
            ],
        )
        .await?;
    Ok(renewed.is_some())
}

fn format_of(record: &RunRecord) -> Result<i32, Fault> {
    i32::try_from(record.format).map_err(|_| {
        Fault::Told(Error::misuse(
            "a record's format is beyond all that there are",
        ))
    })
}
