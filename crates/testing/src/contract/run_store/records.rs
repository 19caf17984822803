//! Laws of records: written once for a revision, expiring, listed in order.

use futures::future::join;
use raf_core::{ApprovalRule, ClosedReason, RunClaim, RunId, RunRecord, Settlement, WriteOutcome};

use super::{IRunStoreFixture, LIFETIME, add_request, in_flight, steps, waiting};

pub(super) async fn a_record_comes_back_as_it_was(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (mut record, request_id) = waiting("run");
    record.session_id = Some("session".to_owned());
    record.settle("other", Settlement::Closed(ClosedReason::Superseded));
    record
        .denied
        .push(("tool".to_owned(), r#"{"a":1}"#.to_owned()));
    let created = store.create(&record, None).await.unwrap();
    assert_eq!(created, WriteOutcome::Written(1));
    record.revision = 1;
    let kept = store.load(&record.run_id).await.unwrap();
    assert_eq!(kept.as_ref(), Some(&record));
    for id in [request_id.as_str(), "other"] {
        let found = store.find_request(id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&record.run_id), "request {id}");
    }
}

pub(super) async fn what_is_missing_is_none(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let nobody = RunId::from("nobody");
    assert_eq!(store.load(&nobody).await.unwrap(), None);
    assert_eq!(store.find_request("nothing").await.unwrap(), None);
    let claimed = store.claim(&nobody, &RunClaim::new()).await.unwrap();
    assert_eq!(claimed, raf_core::ClaimOutcome::Missing);
    let saved = store.save(&RunRecord::new(nobody.clone())).await.unwrap();
    assert_eq!(saved, WriteOutcome::Conflict);
    assert!(store.answers(&nobody).await.unwrap().is_empty());
    assert!(store.list_open(None).await.unwrap().is_empty());
    assert!(store.list_pending(None).await.unwrap().is_empty());
    assert!(store.remembered("nobody").await.unwrap().is_empty());
}

pub(super) async fn e2_a_write_is_made_once_for_a_revision(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, request_id) = waiting("run");
    let _ = store.create(&record, None).await.unwrap();
    let again = store.create(&record, None).await.unwrap();
    assert_eq!(again, WriteOutcome::Conflict);
    let mut first = store.load(&record.run_id).await.unwrap().unwrap();
    let second = first.clone();
    first.settle(&request_id, Settlement::Answered);
    assert_eq!(store.save(&first).await.unwrap(), WriteOutcome::Written(2));
    assert_eq!(store.save(&second).await.unwrap(), WriteOutcome::Conflict);
    let kept = store.load(&record.run_id).await.unwrap().unwrap();
    assert_eq!(kept.revision, 2);
    assert_eq!(kept.settlement(&request_id), Some(Settlement::Answered));
}

pub(super) async fn i8_of_two_writers_exactly_one_wins(fixture: &dyn IRunStoreFixture) {
    let (one, other) = (fixture.open().await, fixture.open().await);
    let (record, _) = waiting("run");
    let _ = one.create(&record, None).await.unwrap();
    for revision in 1..=1_000 {
        let mut left = one.load(&record.run_id).await.unwrap().unwrap();
        let mut right = left.clone();
        left.prefix_digest = format!("left {revision}");
        right.prefix_digest = format!("right {revision}");
        let (left_won, right_won) = join(one.save(&left), other.save(&right)).await;
        let won = [left_won.unwrap(), right_won.unwrap()];
        let winners = won
            .iter()
            .filter(|won| **won == WriteOutcome::Written(revision + 1));
        assert_eq!(winners.count(), 1, "revision {revision}: {won:?}");
        let kept = other.load(&record.run_id).await.unwrap().unwrap();
        let winner = if won[0] == WriteOutcome::Conflict {
            right
        } else {
            left
        };
        assert_eq!(kept.prefix_digest, winner.prefix_digest);
    }
}

pub(super) async fn i8_who_closes_a_run_names_its_present_revision(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (mut record, claim, key) = in_flight(&*store, "run").await;
    let mut late = record.clone();
    late.close(ClosedReason::Cancelled);
    record.worked_ms = 5;
    assert_eq!(store.save(&record).await.unwrap(), WriteOutcome::Written(2));
    assert_eq!(store.save(&late).await.unwrap(), WriteOutcome::Conflict);
    let appended = store
        .append(&key, &claim, 1, &steps(1..2), Some(&late))
        .await;
    assert_eq!(appended.unwrap(), WriteOutcome::Conflict);
    let kept = store.load(&key.root).await.unwrap().unwrap();
    assert!(!kept.closed, "what it did not know of would be lost");
    assert_eq!((kept.revision, kept.worked_ms), (2, 5));
    assert_eq!(store.journal(&key, 0).await.unwrap(), steps(0..1));
}

pub(super) async fn what_was_written_is_there_when_opened_again(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, claim, key) = in_flight(&*store, "run").await;
    let rule = ApprovalRule {
        tool: "send".to_owned(),
        arguments: None,
    };
    store.remember("session", rule.clone()).await.unwrap();
    let request_id = record.request_ids().next().unwrap_or_default().to_owned();
    let answer = raf_core::ToolApprovalResponse::approve(request_id);
    let _ = store.answer(&answer).await.unwrap();
    store.release(&record.run_id, &claim).await.unwrap();
    drop(store);
    let again = fixture.open().await;
    assert_eq!(
        again.load(&record.run_id).await.unwrap(),
        Some(record.clone())
    );
    assert_eq!(again.journal(&key, 0).await.unwrap(), steps(0..1));
    assert_eq!(again.answers(&record.run_id).await.unwrap(), [answer]);
    assert_eq!(again.remembered("session").await.unwrap(), [rule]);
}

pub(super) async fn i2_a_run_is_closed_as_expired_and_then_gone(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, request_id) = waiting("run");
    let (held, _) = waiting("held");
    let claim = RunClaim::new();
    let _ = store.create(&record, None).await.unwrap();
    fixture.pass(LIFETIME / 2);
    assert_eq!(store.expire().await.unwrap(), 0);
    assert_eq!(store.list_open(None).await.unwrap().len(), 1);
    fixture.pass(LIFETIME / 2);
    let _ = store.create(&held, Some(&claim)).await.unwrap();
    let kept = store.load(&record.run_id).await.unwrap().unwrap();
    let settled = Some(Settlement::Closed(ClosedReason::Expired));
    assert_eq!((kept.closed, kept.settlement(&request_id)), (true, settled));
    let open = store.list_open(None).await.unwrap();
    assert_eq!(open.len(), 1, "only the other is open: {open:?}");
    let late = raf_core::ToolApprovalResponse::approve(request_id.as_str());
    assert_eq!(
        store.answer(&late).await.unwrap(),
        raf_core::AnswerOutcome::Refused(raf_core::RefusalReason::Stale)
    );
    fixture.pass(LIFETIME);
    assert_eq!(store.load(&record.run_id).await.unwrap(), None);
    assert_eq!(store.find_request(&request_id).await.unwrap(), None);
}

pub(super) async fn i2_a_run_that_is_gone_is_not_created_again(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (mut record, _) = waiting("run");
    record.close(ClosedReason::Superseded);
    let _ = store.create(&record, None).await.unwrap();
    fixture.pass(LIFETIME);
    let _ = store.expire().await.unwrap();
    assert_eq!(store.load(&record.run_id).await.unwrap(), None);
    let other = fixture.open().await;
    let created = other.create(&record, None).await.unwrap();
    assert_eq!(created, WriteOutcome::Conflict, "at once");
    fixture.pass(LIFETIME);
    let created = store.create(&record, None).await.unwrap();
    assert_eq!(created, WriteOutcome::Conflict, "after a lifetime");
    fixture.pass(LIFETIME);
    let created = store.create(&record, None).await.unwrap();
    assert_eq!(created, WriteOutcome::Written(1), "after two");
}

pub(super) async fn e8_what_nobody_can_answer_any_more_is_expired(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    // No store's clock stands before this moment.
    let mut over = RunRecord::new(RunId::from("over"));
    let over_id = add_request(&mut over, Some(1));
    let mut half = RunRecord::new(RunId::from("half"));
    let half_id = add_request(&mut half, Some(1));
    let _ = add_request(&mut half, None);
    fixture.pass(LIFETIME / 100);
    for record in [&over, &half] {
        let _ = store.create(record, None).await.unwrap();
    }
    let _ = store.expire().await.unwrap();
    let kept = store.load(&over.run_id).await.unwrap().unwrap();
    let expired = Some(Settlement::Closed(ClosedReason::Expired));
    assert_eq!(kept.settlement(&over_id), expired);
    // The other one waits for more: its request is stale, the run is not.
    let late = raf_core::ToolApprovalResponse::approve(half_id.as_str());
    assert_eq!(
        store.answer(&late).await.unwrap(),
        raf_core::AnswerOutcome::Refused(raf_core::RefusalReason::Stale)
    );
    let kept = store.load(&half.run_id).await.unwrap().unwrap();
    assert!(!kept.closed);
}

pub(super) async fn open_runs_are_listed_oldest_first(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    for number in 0..12 {
        let (mut record, _) = waiting(&format!("run {}", 11 - number));
        record.session_id = (number % 2 == 0).then(|| "even".to_owned());
        if number == 4 {
            record.close(ClosedReason::Cancelled);
        }
        let _ = store.create(&record, None).await.unwrap();
    }
    let mut first = store.load(&RunId::from("run 11")).await.unwrap().unwrap();
    first.working = false;
    let _ = store.save(&first).await.unwrap();
    let names = |records: Vec<RunRecord>| -> Vec<String> {
        let names = records.iter().map(|record| record.run_id.to_string());
        names.collect()
    };
    let expected = |numbers: &[u32]| -> Vec<String> {
        let names = numbers.iter().map(|number| format!("run {number}"));
        names.collect()
    };
    let all = names(store.list_open(None).await.unwrap());
    assert_eq!(all, expected(&[11, 10, 9, 8, 6, 5, 4, 3, 2, 1, 0]));
    let even = names(store.list_open(Some("even")).await.unwrap());
    assert_eq!(even, expected(&[11, 9, 5, 3, 1]));
    assert!(store.list_open(Some("odd")).await.unwrap().is_empty());
}

pub(super) async fn e9_rules_are_remembered_once(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let rule = |tool: &str, arguments: Option<&str>| ApprovalRule {
        tool: tool.to_owned(),
        arguments: arguments.map(str::to_owned),
    };
    let rules = [rule("b", None), rule("a", Some("{}")), rule("a", None)];
    for rule in rules.iter().chain(&rules) {
        store.remember("here", rule.clone()).await.unwrap();
    }
    assert_eq!(other.remembered("here").await.unwrap(), rules);
    assert!(other.remembered("there").await.unwrap().is_empty());
}
