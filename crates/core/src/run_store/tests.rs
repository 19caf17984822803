//! What the in-memory store promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use super::{ClaimOutcome, IRunStore, InMemoryRunStore, RunClaim, WriteOutcome};
use crate::{
    ApprovalRequest, CallRecord, CallStatus, ClosedReason, Occurrence, RunId, RunRecord,
    Settlement, ToolCall,
};

fn waiting(run: &str) -> (RunRecord, String) {
    let mut record = RunRecord::new(RunId::from(run));
    let call = ToolCall::new("c1", "f", "{}");
    let place = Occurrence::new(0, 0);
    let request = ApprovalRequest::new(record.run_id.clone(), place, &call, "f", json!({}));
    let request_id = request.request_id.clone();
    let request = Box::new(request);
    let status = CallStatus::AwaitingApproval { request };
    record
        .calls
        .push(CallRecord::new(0, call, json!({}), status));
    (record, request_id)
}

#[tokio::test]
async fn e2_a_write_is_made_once_for_a_revision() {
    let store = InMemoryRunStore::new();
    let (record, request_id) = waiting("r");
    assert_eq!(
        store.create(&record, None).await.unwrap(),
        WriteOutcome::Written(1)
    );
    assert_eq!(
        store.create(&record, None).await.unwrap(),
        WriteOutcome::Conflict
    );
    let mut first = store.load(&record.run_id).await.unwrap().unwrap();
    let second = first.clone();
    first.settle(&request_id, Settlement::Answered);
    assert_eq!(store.save(&first).await.unwrap(), WriteOutcome::Written(2));
    assert_eq!(store.save(&second).await.unwrap(), WriteOutcome::Conflict);
    let found = store.find_request(&request_id).await.unwrap();
    assert_eq!(found, Some(record.run_id.clone()));
    let kept = store.load(&record.run_id).await.unwrap().unwrap();
    assert_eq!(kept.settlement(&request_id), Some(Settlement::Answered));
}

#[tokio::test]
async fn i8_one_claim_at_a_time_and_a_dead_one_gives_way() {
    let store = InMemoryRunStore::new();
    let (record, _) = waiting("r");
    let first = RunClaim::new();
    let _ = store.create(&record, Some(&first)).await.unwrap();
    let second = RunClaim::new();
    let claimed = |outcome: &ClaimOutcome| matches!(outcome, ClaimOutcome::Claimed(_));
    assert_eq!(
        store.claim(&record.run_id, &second).await.unwrap(),
        ClaimOutcome::Busy
    );
    assert!(claimed(&store.claim(&record.run_id, &first).await.unwrap()));
    drop(first);
    assert!(claimed(
        &store.claim(&record.run_id, &second).await.unwrap()
    ));
    store.release(&record.run_id, &second).await.unwrap();
    assert!(claimed(
        &store.claim(&record.run_id, &RunClaim::new()).await.unwrap()
    ));
    let missing = store.claim(&RunId::from("x"), &second).await.unwrap();
    assert_eq!(missing, ClaimOutcome::Missing);
}

#[tokio::test]
async fn i2_records_expire_as_such_and_then_are_forgotten() {
    let seconds = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&seconds);
    let store = InMemoryRunStore::new()
        .with_lifetime(Duration::from_secs(10))
        .with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
    let (record, request_id) = waiting("r");
    let _ = store.create(&record, None).await.unwrap();
    seconds.store(9, Ordering::Relaxed);
    assert_eq!(store.list_open(None).await.unwrap().len(), 1);
    seconds.store(10, Ordering::Relaxed);
    assert_eq!(store.expire().await.unwrap(), 1);
    let kept = store.load(&record.run_id).await.unwrap().unwrap();
    assert_eq!(
        kept.settlement(&request_id),
        Some(Settlement::Closed(ClosedReason::Expired))
    );
    assert!(store.list_open(None).await.unwrap().is_empty());
    seconds.store(20, Ordering::Relaxed);
    assert_eq!(store.load(&record.run_id).await.unwrap(), None);
    assert_eq!(store.find_request(&request_id).await.unwrap(), None);
}

#[tokio::test]
async fn i2_the_store_is_bounded_and_closed_records_give_way_first() {
    let store = InMemoryRunStore::new().with_max_runs(2);
    let (open, open_request) = waiting("open");
    let (mut closed, _) = waiting("closed");
    closed.close(ClosedReason::Superseded);
    let (next, _) = waiting("next");
    for record in [&open, &closed, &next] {
        let _ = store.create(record, None).await.unwrap();
    }
    assert_eq!(store.len(), 2);
    assert_eq!(store.load(&closed.run_id).await.unwrap(), None);
    let found = store.find_request(&open_request).await.unwrap();
    assert_eq!(found, Some(open.run_id));
}

#[tokio::test]
async fn i2_a_run_whose_record_is_gone_is_not_created_again() {
    let store = InMemoryRunStore::new().with_max_runs(1);
    let (mut first, _) = waiting("first");
    let (second, _) = waiting("second");
    first.close(ClosedReason::Superseded);
    let _ = store.create(&first, None).await.unwrap();
    let _ = store.create(&second, None).await.unwrap();
    assert_eq!(store.load(&first.run_id).await.unwrap(), None);
    assert_eq!(
        store.create(&first, None).await.unwrap(),
        WriteOutcome::Conflict
    );
    let seconds = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&seconds);
    let store = InMemoryRunStore::new()
        .with_lifetime(Duration::from_secs(10))
        .with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
    let _ = store.create(&first, None).await.unwrap();
    for second in [10, 29] {
        seconds.store(second, Ordering::Relaxed);
        let _ = store.expire().await.unwrap();
        let created = store.create(&first, None).await.unwrap();
        assert_eq!(created, WriteOutcome::Conflict, "after {second} s");
    }
    seconds.store(30, Ordering::Relaxed);
    let created = store.create(&first, None).await.unwrap();
    assert_eq!(created, WriteOutcome::Written(1));
}

#[tokio::test]
async fn i2_claimed_records_give_way_last() {
    let store = InMemoryRunStore::new().with_max_runs(2);
    let (mut claimed, _) = waiting("claimed");
    claimed.close(ClosedReason::Superseded);
    let claim = RunClaim::new();
    let _ = store.create(&claimed, Some(&claim)).await.unwrap();
    for run in ["open", "next"] {
        let _ = store.create(&waiting(run).0, None).await.unwrap();
    }
    assert!(store.load(&claimed.run_id).await.unwrap().is_some());
    assert_eq!(store.load(&RunId::from("open")).await.unwrap(), None);
    let held = RunClaim::new();
    let (other, _) = waiting("other");
    let _ = store.create(&other, Some(&held)).await.unwrap();
    let _ = store.create(&waiting("last").0, None).await.unwrap();
    assert_eq!(store.len(), 2);
    assert!(store.load(&other.run_id).await.unwrap().is_some());
}

#[tokio::test]
async fn a_lifetime_without_end_is_no_overflow() {
    let store = InMemoryRunStore::new().with_lifetime(Duration::MAX);
    let (record, _) = waiting("r");
    let _ = store.create(&record, None).await.unwrap();
    let mut kept = store.load(&record.run_id).await.unwrap().unwrap();
    kept.close(ClosedReason::Superseded);
    assert_eq!(store.save(&kept).await.unwrap(), WriteOutcome::Written(2));
    assert_eq!(store.expire().await.unwrap(), 0);
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn a_record_survives_json() {
    let (mut record, request_id) = waiting("r");
    record.settle("other", Settlement::Closed(ClosedReason::Superseded));
    let json = serde_json::to_string(&record).unwrap();
    let back: RunRecord = serde_json::from_str(&json).unwrap();
    assert_eq!(back, record);
    assert!(back.open_request(&request_id).is_some());
}
