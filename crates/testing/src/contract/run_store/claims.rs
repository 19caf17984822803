//! Laws of claims: one at a time, given up by a drop or a lapse, fenced.

use futures::future::join_all;
use raf_core::{ClaimOutcome, JournalKey, RunClaim, RunId, ToolApprovalResponse, WriteOutcome};

use super::{IRunStoreFixture, LEASE, in_flight, is_claimed, steps, waiting};

pub(super) async fn i8_one_claim_at_a_time(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (record, _) = waiting("run");
    let (first, second) = (RunClaim::new(), RunClaim::new());
    let _ = store.create(&record, Some(&first)).await.unwrap();
    for handle in [&store, &other] {
        let claimed = handle.claim(&record.run_id, &second).await.unwrap();
        assert_eq!(claimed, ClaimOutcome::Busy);
    }
    // The same claim again is no other one; a release by another lets nothing go.
    assert!(is_claimed(
        &store.claim(&record.run_id, &first).await.unwrap()
    ));
    other.release(&record.run_id, &second).await.unwrap();
    let claimed = other.claim(&record.run_id, &second).await.unwrap();
    assert_eq!(claimed, ClaimOutcome::Busy);
    store.release(&record.run_id, &first).await.unwrap();
    let mut kept = record.clone();
    kept.revision = 1;
    let claimed = other.claim(&record.run_id, &second).await.unwrap();
    assert_eq!(claimed, ClaimOutcome::Claimed(Box::new(kept)));
    assert!(other.renew(&record.run_id, &second).await.unwrap());
    assert!(!store.renew(&record.run_id, &first).await.unwrap());
}

pub(super) async fn i8_a_dropped_claim_gives_way_at_once(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (_, claim, key) = in_flight(&*store, "run").await;
    assert!(store.list_resumable(9).await.unwrap().is_empty());
    drop(claim);
    assert_eq!(
        store.list_resumable(9).await.unwrap(),
        std::slice::from_ref(&key.root)
    );
    let next = RunClaim::new();
    assert!(is_claimed(&store.claim(&key.root, &next).await.unwrap()));
    assert!(store.list_resumable(9).await.unwrap().is_empty());
}

pub(super) async fn i8_a_claim_lapses_without_a_sign_of_life(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (record, claim, key) = in_flight(&*store, "run").await;
    let second = RunClaim::new();
    if store.lease().is_none() {
        // Claims of this store do not lapse.
        fixture.pass(LEASE * 10);
        let claimed = other.claim(&record.run_id, &second).await.unwrap();
        assert_eq!(claimed, ClaimOutcome::Busy);
        return;
    }
    fixture.pass(LEASE / 10 * 9);
    assert!(store.renew(&record.run_id, &claim).await.unwrap());
    fixture.pass(LEASE / 10 * 9);
    let appended = store.append(&key, &claim, 1, &steps(1..2), None).await;
    assert_eq!(appended.unwrap(), WriteOutcome::Written(2));
    fixture.pass(LEASE / 10 * 9);
    let claimed = other.claim(&record.run_id, &second).await.unwrap();
    assert_eq!(claimed, ClaimOutcome::Busy, "a write is a sign of life");
    assert!(other.list_resumable(9).await.unwrap().is_empty());
    fixture.pass(LEASE / 2);
    let lapsed = other.list_resumable(9).await.unwrap();
    assert_eq!(lapsed, std::slice::from_ref(&record.run_id));
    // Nobody took hold: who comes back in time goes on.
    assert!(store.renew(&record.run_id, &claim).await.unwrap());
    fixture.pass(LEASE);
    assert!(is_claimed(
        &other.claim(&record.run_id, &second).await.unwrap()
    ));
    assert!(!store.renew(&record.run_id, &claim).await.unwrap());
}

pub(super) async fn i8_a_stalled_writer_that_comes_back_cannot_write(
    fixture: &dyn IRunStoreFixture,
) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (record, stalled, key) = in_flight(&*store, "run").await;
    if store.lease().is_some() {
        fixture.pass(LEASE);
    } else {
        store.release(&record.run_id, &stalled).await.unwrap();
    }
    let next = RunClaim::new();
    assert!(is_claimed(
        &other.claim(&record.run_id, &next).await.unwrap()
    ));
    let nested = JournalKey::nested(key.root.clone(), RunId::from("nested"));
    for (key, base) in [(&key, 1), (&nested, 0)] {
        let written = store.append(key, &stalled, base, &steps(7..8), None).await;
        assert_eq!(written.unwrap(), WriteOutcome::ClaimLost);
    }
    let written = store.append(&key, &stalled, 1, &[], Some(&record)).await;
    assert_eq!(written.unwrap(), WriteOutcome::ClaimLost);
    // A release that comes late takes nothing from the one who holds it now.
    store.release(&record.run_id, &stalled).await.unwrap();
    let written = other
        .append(&key, &next, 1, &steps(1..2), Some(&record))
        .await;
    assert_eq!(written.unwrap(), WriteOutcome::Written(2));
    assert_eq!(other.journal(&key, 0).await.unwrap(), steps(0..2));
    // Not even after everybody has let go.
    other.release(&record.run_id, &next).await.unwrap();
    let written = store.append(&key, &stalled, 2, &steps(2..3), None).await;
    assert_eq!(written.unwrap(), WriteOutcome::ClaimLost);
}

pub(super) async fn i8_of_many_claims_exactly_one_holds(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    for round in 0..50 {
        let (record, _) = waiting(&format!("run {round}"));
        let _ = store.create(&record, None).await.unwrap();
        let claims: Vec<RunClaim> = (0..8).map(|_| RunClaim::new()).collect();
        let outcomes = join_all(claims.iter().enumerate().map(|(number, claim)| {
            let store = if number % 2 == 0 { &store } else { &other };
            store.claim(&record.run_id, claim)
        }));
        let outcomes = outcomes.await.into_iter().map(Result::unwrap);
        let held = outcomes.filter(is_claimed).count();
        assert_eq!(held, 1, "round {round}");
    }
}

pub(super) async fn runs_with_something_to_do_are_listed_oldest_first(
    fixture: &dyn IRunStoreFixture,
) {
    let store = fixture.open().await;
    let mut expected = Vec::new();
    let mut claims = Vec::new();
    for number in 0..9 {
        let (mut record, request_id) = waiting(&format!("run {}", 9 - number));
        record.working = number % 3 == 1;
        let claim = (number == 4).then(RunClaim::new);
        let _ = store.create(&record, claim.as_ref()).await.unwrap();
        if number % 3 == 2 {
            let answer = ToolApprovalResponse::approve(request_id);
            let _ = store.answer(&answer).await.unwrap();
        }
        if number % 3 != 0 && claim.is_none() {
            expected.push(record.run_id);
        }
        claims.extend(claim);
    }
    assert_eq!(store.list_resumable(99).await.unwrap(), expected);
    assert_eq!(store.list_resumable(2).await.unwrap(), expected[..2]);
}
