//! Laws of who may write: one at a time, in turn, and never after another took over.

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use raf_core::{BusyPolicy, ErrorKind, SessionLease, WriteOutcome};

use super::{ISessionStoreFixture, says};
use crate::contract::run_store::LEASE;

pub(super) async fn i8_one_holds_the_lease_and_others_are_refused(
    fixture: &dyn ISessionStoreFixture,
) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let lease = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    for handle in [&store, &other] {
        let refused = handle.lease("s", BusyPolicy::Refuse).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BusySession);
    }
    assert!(other.lease("free", BusyPolicy::Refuse).await.is_ok());
    assert_eq!(
        store.write("s", 0, says("mine")).await.unwrap(),
        WriteOutcome::Written(1)
    );
    drop(lease);
    // Elsewhere it may be seen a moment later.
    assert!(other.lease("s", BusyPolicy::Queue).await.is_ok());
}

pub(super) async fn i8_those_who_wait_come_in_order(fixture: &dyn ISessionStoreFixture) {
    let store = fixture.open().await;
    let first = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    let mut second = store.lease("s", BusyPolicy::Queue);
    let mut third = store.lease("s", BusyPolicy::Queue);
    let mut gone = store.lease("s", BusyPolicy::Queue);
    let mut fourth = store.lease("s", BusyPolicy::Queue);
    for waits in [&mut second, &mut third, &mut gone, &mut fourth] {
        assert!(waits.as_mut().now_or_never().is_none());
    }
    drop(gone);
    drop(first);
    let second = first_of(second, &mut third).await;
    assert!(fourth.as_mut().now_or_never().is_none());
    drop(second);
    let third = first_of(third, &mut fourth).await;
    drop(third);
    assert!(fourth.await.is_ok());
}

type Waiting<'a> = BoxFuture<'a, raf_core::Result<SessionLease>>;

/// The lease of who is first in line; nobody else has one by then.
async fn first_of(first: Waiting<'_>, next: &mut Waiting<'_>) -> SessionLease {
    match select(first, next).await {
        Either::Left((lease, _)) => lease.unwrap(),
        Either::Right(_) => panic!("who came later was served first"),
    }
}

pub(super) async fn i8_a_turn_that_nobody_takes_goes_to_the_next(
    fixture: &dyn ISessionStoreFixture,
) {
    let store = fixture.open().await;
    let first = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    let mut dropped = store.lease("s", BusyPolicy::Queue);
    let mut next = store.lease("s", BusyPolicy::Queue);
    assert!(dropped.as_mut().now_or_never().is_none());
    assert!(next.as_mut().now_or_never().is_none());
    drop(first);
    // It may have its turn by now, and goes away without looking.
    drop(dropped);
    assert!(next.await.is_ok());
}

pub(super) async fn i8_who_waits_elsewhere_gets_its_turn(fixture: &dyn ISessionStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let lease = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    let mut waits = other.lease("s", BusyPolicy::Queue);
    assert!(waits.as_mut().now_or_never().is_none());
    let written = store.write("s", 0, says("first")).await.unwrap();
    assert_eq!(written, WriteOutcome::Written(1));
    drop(lease);
    let lease = waits.await.unwrap();
    let record = other.load("s").await.unwrap().unwrap();
    let written = other.write("s", record.revision, says("second")).await;
    assert_eq!(written.unwrap(), WriteOutcome::Written(2));
    drop(lease);
}

pub(super) async fn i8_a_lapsed_lease_gives_way_and_its_writer_cannot_write(
    fixture: &dyn ISessionStoreFixture,
) {
    if !fixture.leases_lapse() {
        // Leases of this store only end by their drop.
        return;
    }
    let (store, other) = (fixture.open().await, fixture.open().await);
    let stalled = store.lease("s", BusyPolicy::Refuse).await.unwrap();
    assert_eq!(
        store.write("s", 0, says("a")).await.unwrap(),
        WriteOutcome::Written(1)
    );
    fixture.pass(LEASE * 2);
    let lease = other.lease("s", BusyPolicy::Refuse).await.unwrap();
    let late = store.write("s", 1, says("late")).await.unwrap();
    assert_eq!(late, WriteOutcome::ClaimLost);
    let written = other.write("s", 1, says("b")).await.unwrap();
    assert_eq!(written, WriteOutcome::Written(2));
    // Its end takes nothing from the one who holds it now.
    drop(stalled);
    let late = store.lease("s", BusyPolicy::Refuse).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::BusySession);
    drop(lease);
    let texts = other.load("s").await.unwrap().unwrap().messages;
    let texts: Vec<String> = texts.iter().map(raf_core::ChatMessage::text).collect();
    assert_eq!(texts, ["a", "b"]);
}
