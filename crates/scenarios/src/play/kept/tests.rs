//! What a store lacks, or says too much, is noticed.

use raf_core::{ClosedReason, InMemoryRunStore, RunRecord};

use super::check_kept;
use crate::play::Player;
use crate::way::{DurableStore, Form, Reload, Way, Wire};
use crate::{Runner, Scenario};

const PAUSES: &str = "id: x\ntitle: x\ntools:\n  f: {gate: always, does: {returns: r}}\n  g: {does: {returns: s}}\n\
    script:\n- user: go\n- model: {calls: [[c1, f, '{}'], [c2, g, '{}']]}\nexpect: {stop: [paused]}\n";

/// Plays until the run waits.
async fn paused<'a>(case: &'a Scenario, runner: &'a Runner) -> Player<'a> {
    let way = Way {
        form: Form::Stream,
        reload: Reload::Reopened(DurableStore::Memory),
        wire: Wire::Scripted,
    };
    let mut player = Player::new(case, runner, way).unwrap();
    player.play().await;
    assert!(player.faults.is_empty(), "{:?}", player.faults);
    player
}

fn case() -> Scenario {
    Scenario::parse("x.yaml", PAUSES).unwrap().remove(0)
}

/// Tampers with the record of a run that waits, and looks at what is kept.
async fn with_record(tamper: impl FnOnce(&mut RunRecord)) -> Vec<String> {
    let (case, runner) = (case(), Runner::new());
    let player = paused(&case, &runner).await;
    let store = player.store.durable().unwrap();
    let leg = &player.legs[0];
    let mut record = store.load(&leg.run_id().unwrap()).await.unwrap().unwrap();
    tamper(&mut record);
    let _ = store.save(&record).await.unwrap();
    check_kept(store, leg, &player.ledger, Some(&player.conversation))
}

#[tokio::test(start_paused = true)]
async fn what_is_as_the_caller_was_told_is_right() {
    assert_eq!(with_record(|_| {}).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_says_something_else_than_the_caller_was_told_is_noticed() {
    let working = with_record(|record| record.working = true).await;
    assert!(
        working[0].contains("its record says that it works"),
        "{working:?}"
    );
    let closed = with_record(|record| record.close(ClosedReason::Cancelled)).await;
    assert!(closed[0].contains("the record waits for []"), "{closed:?}");
    assert!(
        closed[1].contains("'c1' is not listed as pending"),
        "{closed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_lost_everything_is_noticed() {
    let (case, runner) = (case(), Runner::new());
    let player = paused(&case, &runner).await;
    let empty = InMemoryRunStore::new();
    let conversation = Some(&*player.conversation);
    let faults = check_kept(&empty, &player.legs[0], &player.ledger, conversation);
    for text in [
        "the result of 'c2' is not kept",
        "there is no record of the run",
        "the record waits for []",
        "the journal holds []",
    ] {
        assert!(
            faults.iter().any(|fault| fault.contains(text)),
            "{text}: {faults:?}"
        );
    }
}
