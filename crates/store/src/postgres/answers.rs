//! Kept answers, rules, and what waits.

use raf_core::{
    AnswerOutcome, ApprovalRule, Error, ErrorKind, PendingRequest, RefusalReason, RunId, RunRecord,
    ToolApprovalResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pool::Connection;
use super::{Fault, Shared, expiry, records};
use crate::record_row::{column, count};

/// The run that a request belongs to.
pub(super) async fn find_request(
    connection: &Connection,
    request_id: &str,
) -> Result<Option<RunId>, Fault> {
    let row = connection
        .row(
            "SELECT run_id FROM raf_requests WHERE request_id = $1",
            &[&request_id],
        )
        .await?;
    row.map(|row| Ok(RunId::from(row.try_get::<_, &str>(0)?)))
        .transpose()
}

/// Keeps an answer that fits and is the first.
pub(super) async fn answer(
    connection: &Connection,
    shared: &Shared,
    answer: &ToolApprovalResponse,
) -> Result<AnswerOutcome, Fault> {
    let refused = |reason| Ok(AnswerOutcome::Refused(reason));
    loop {
        let run_id = find_request(connection, &answer.request_id).await?;
        let Some(run_id) = run_id else {
            return refused(RefusalReason::UnknownRequest);
        };
        let record = match records::load(connection, shared, &run_id).await? {
            None => return refused(RefusalReason::UnknownRequest),
            Some((_, true)) => {
                expiry::expire(connection, shared).await?;
                continue;
            }
            Some((record, false)) => record,
        };
        let now: i64 = connection
            .value("SELECT raf_now($1)", &[&shared.ahead()])
            .await?;
        if let Some(reason) = record.refusal_of(answer, u64::try_from(now).unwrap_or_default()) {
            return refused(reason);
        }
        let outcome: String = connection
            .value(
                "SELECT raf_answer($1, $2, $3, $4)",
                &[
                    &run_id.as_str(),
                    &column(record.revision)?,
                    &answer.request_id,
                    &json(answer)?,
                ],
            )
            .await?;
        match outcome.as_str() {
            "kept" => return Ok(AnswerOutcome::Kept),
            "settled" => return refused(RefusalReason::AlreadySettled),
            // Somebody wrote in between: look again.
            _ => {}
        }
    }
}

/// The answers kept for a run, as they came.
pub(super) async fn answers(
    connection: &Connection,
    run_id: &RunId,
) -> Result<Vec<ToolApprovalResponse>, Fault> {
    let rows = connection
        .rows(
            "SELECT answer::text FROM raf_answers WHERE run_id = $1 ORDER BY arrival",
            &[&run_id.as_str()],
        )
        .await?;
    rows.iter().map(|row| parsed(row.try_get(0)?)).collect()
}

/// Takes an answer back.
pub(super) async fn forget_answer(
    connection: &Connection,
    request_id: &str,
) -> Result<bool, Fault> {
    let gone = connection
        .row(
            "WITH gone AS (DELETE FROM raf_answers WHERE request_id = $1 RETURNING run_id)
             SELECT run_id FROM gone",
            &[&request_id],
        )
        .await?;
    let Some(gone) = gone else {
        return Ok(false);
    };
    let run_id: &str = gone.try_get(0)?;
    connection
        .rows("SELECT raf_set_due($1)", &[&run_id])
        .await?;
    Ok(true)
}

/// An open run.
pub(super) struct OpenRun {
    pub(super) record: RunRecord,
    /// The requests of which answers are kept.
    answered: Vec<String>,
    expires_at: i64,
}

/// Open records, oldest first, each with the requests of which an answer is kept.
pub(super) async fn open_runs(
    connection: &Connection,
    session_id: Option<&str>,
) -> Result<Vec<OpenRun>, Fault> {
    let rows = connection
        .rows(
            "SELECT run.record::text, ARRAY(
                 SELECT answer.request_id FROM raf_answers answer WHERE answer.run_id = run.run_id),
                 run.expires_at
             FROM raf_runs run
             WHERE NOT run.closed AND ($1::text IS NULL OR run.session_id = $1)
             ORDER BY run.age",
            &[&session_id],
        )
        .await?;
    let runs = rows.iter().map(|row| {
        Ok(OpenRun {
            record: RunRecord::from_json(row.try_get(0)?)?,
            answered: row.try_get(1)?,
            expires_at: row.try_get(2)?,
        })
    });
    runs.collect()
}

/// What waits for an answer.
pub(super) async fn list_pending(
    connection: &Connection,
    session_id: Option<&str>,
) -> Result<Vec<PendingRequest>, Fault> {
    let runs = open_runs(connection, session_id).await?;
    let pending = runs.iter().flat_map(|run| {
        let has = |id: &str| run.answered.iter().any(|answered| answered == id);
        let waits = PendingRequest::of(&run.record, has).into_iter();
        waits.map(|waits| waits.with_run_expiry(count(run.expires_at)))
    });
    Ok(pending.collect())
}

/// Open runs that nobody holds and that have something to do, oldest first.
pub(super) async fn list_resumable(
    connection: &Connection,
    shared: &Shared,
    limit: usize,
) -> Result<Vec<RunId>, Fault> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = connection
        .rows(
            "SELECT run.run_id FROM raf_runs run
             WHERE NOT run.closed AND (run.owner IS NULL OR run.lease_until <= raf_now($1))
                 AND (run.working OR EXISTS (
                     SELECT 1 FROM raf_answers answer WHERE answer.run_id = run.run_id))
             ORDER BY run.age LIMIT $2",
            &[&shared.ahead(), &limit],
        )
        .await?;
    rows.iter()
        .map(|row| Ok(RunId::from(row.try_get::<_, &str>(0)?)))
        .collect()
}

/// Keeps a rule; a scope has a thousand at most.
pub(super) async fn remember(
    connection: &Connection,
    scope: &str,
    rule: &ApprovalRule,
) -> Result<(), Fault> {
    connection
        .rows(
            "INSERT INTO raf_rules (scope, rule) SELECT $1, $2
             WHERE (SELECT count(*) FROM raf_rules WHERE scope = $1) < 1000
             ON CONFLICT DO NOTHING",
            &[&scope, &json(rule)?],
        )
        .await?;
    Ok(())
}

/// The rules of a scope.
pub(super) async fn remembered(
    connection: &Connection,
    scope: &str,
) -> Result<Vec<ApprovalRule>, Fault> {
    let rows = connection
        .rows(
            "SELECT rule FROM raf_rules WHERE scope = $1 ORDER BY arrival",
            &[&scope],
        )
        .await?;
    rows.iter().map(|row| parsed(row.try_get(0)?)).collect()
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| {
        let words = "what is to be kept has no JSON form";
        Fault::Told(Error::new(ErrorKind::Store, words).with_source(error))
    })
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| {
        let words = "what is kept is not of the form that this version reads";
        Fault::Told(Error::new(ErrorKind::Store, words).with_code("corrupt"))
    })
}
