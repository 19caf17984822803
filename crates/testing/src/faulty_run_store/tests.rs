//! Which writes fail, and what is left of them.

use std::sync::Arc;

use raf_core::{
    ErrorKind, IRunStore, InMemoryRunStore, JournalEntry, JournalKey, JournalKind, Result,
    RunClaim, RunId, RunRecord, WriteOutcome,
};
use serde_json::json;

use super::{FaultyRunStore, RecordWrite};

fn faulty() -> (InMemoryRunStore, FaultyRunStore) {
    let inner = InMemoryRunStore::new().with_durable(true);
    let faulty = FaultyRunStore::new(Arc::new(inner.clone()));
    (inner, faulty)
}

/// The outcome of a write, or the kind of its error.
type Outcome = std::result::Result<WriteOutcome, ErrorKind>;

const FAILED: Outcome = Err(ErrorKind::Store);

fn outcome(written: Result<WriteOutcome>) -> Outcome {
    written.map_err(|error| error.kind())
}

#[tokio::test]
async fn the_next_creations_fail_however_they_are_written_and_leave_nothing() {
    let (inner, faulty) = faulty();
    let claim = RunClaim::new();
    faulty.fail_next(RecordWrite::Create, 0, 2);
    let record = RunRecord::new(RunId::from("run"));
    let key = JournalKey::root(record.run_id.clone());
    assert_eq!(outcome(faulty.create(&record, None).await), FAILED);
    let appended = faulty.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(outcome(appended), FAILED);
    assert!(inner.is_empty());
    let appended = faulty.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(outcome(appended), Ok(WriteOutcome::Written(1)));
    assert_eq!((faulty.failed(), faulty.writes()), (2, 3));
}

#[tokio::test]
async fn a_later_save_fails_behind_those_that_are_made_and_a_step_alone_is_no_save() {
    let (inner, faulty) = faulty();
    let claim = RunClaim::new();
    let mut record = RunRecord::new(RunId::from("run"));
    let key = JournalKey::root(record.run_id.clone());
    faulty.fail_next(RecordWrite::Save, 1, 1);
    let created = faulty.append(&key, &claim, 0, &[], Some(&record)).await;
    assert_eq!(outcome(created), Ok(WriteOutcome::Written(1)));
    record.revision = 1;
    assert_eq!(
        outcome(faulty.save(&record).await),
        Ok(WriteOutcome::Written(2))
    );
    record.revision = 2;
    let step = [JournalEntry::new(0, "step", JournalKind::Step, json!({}))];
    let alone = faulty.append(&key, &claim, 0, &step, None).await;
    assert_eq!(outcome(alone), Ok(WriteOutcome::Written(1)));
    let appended = faulty.append(&key, &claim, 1, &step, Some(&record)).await;
    assert_eq!(outcome(appended), FAILED);
    assert_eq!(inner.journal(&key, 0).await.unwrap().len(), 1);
    assert_eq!(
        outcome(faulty.save(&record).await),
        Ok(WriteOutcome::Written(3))
    );
}

#[tokio::test]
async fn what_is_still_to_fail_fails_over_the_store_that_is_opened_again() {
    let (inner, faulty) = faulty();
    faulty.fail_next(RecordWrite::Create, 0, 1);
    let again = faulty.over(Arc::new(inner));
    let record = RunRecord::new(RunId::from("run"));
    assert_eq!(outcome(again.create(&record, None).await), FAILED);
    assert_eq!(
        outcome(faulty.create(&record, None).await),
        Ok(WriteOutcome::Written(1))
    );
    assert_eq!(again.failed(), 1);
}
