//! Record stores that fail, forget and expire (I2, I6): nothing is lost, nothing runs unapproved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use raf_core::{ErrorKind, IRunStore, InMemoryRunStore, ToolOutcome};
use raf_testing::{FaultyRunStore, RecordWrite, Reply, ScriptedTool, ToolLog};
use raf_tests::Form;
use raf_tests::leg::assert_lines;
use raf_tests::pausing::{Ledger, PausingCase, Reload};

use crate::support::{assert_completed, assert_paused, assert_refused};

/// Plays a case in both forms with a store that fails when told to.
async fn with_faulty_store(play: impl AsyncFn(&mut PausingCase, FaultyRunStore)) {
    for form in [Form::Stream, Form::Fold] {
        let mut case = PausingCase::new(form, Reload::Nothing);
        let store = FaultyRunStore::new(Arc::new(InMemoryRunStore::new()));
        case.store(Arc::new(store.clone()));
        play(&mut case, store).await;
        case.finish();
    }
}

fn two_gated(case: &mut PausingCase) -> (ToolLog, ToolLog) {
    let f = case.tool(ScriptedTool::returning("f", "r").gated());
    let g = case.tool(ScriptedTool::returning("g", "s"));
    case.replies([Reply::calls([
        ("c1", "f", "{}"),
        ("c2", "g", "{}"),
        ("c3", "f", "{}"),
    ])]);
    (f, g)
}

#[tokio::test(start_paused = true)]
async fn i6_a_record_that_cannot_be_made_fails_the_leg_and_loses_nothing() {
    with_faulty_store(async |case: &mut PausingCase, store: FaultyRunStore| {
        let (f, g) = two_gated(case);
        store.fail_next(RecordWrite::Create, 0, 1);
        let leg = case.say("go").await;
        assert_eq!(leg.error_kind(), ErrorKind::Store);
        assert_eq!(store.failed(), 1);
        // Nobody could answer: nobody was asked, and every call has its outcome.
        assert!(case.ledger().asked.is_empty() && leg.pending().is_empty());
        assert_lines(
            &leg.lines(),
            &[
                "A:[c1,c2,c3]",
                "R(c1, cancelled: *",
                "R(c2, ok: 's')",
                "R(c3, cancelled: *",
            ],
        );
        assert_eq!(leg.outcome("c1"), ToolOutcome::Cancelled { started: false });
        assert_eq!((f.entries(), g.entries()), (0, 1));
        case.replies([Reply::text("done")]);
        assert_completed(&case.say("and now?").await);
        assert_eq!(f.entries(), 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i6_a_decision_that_cannot_be_kept_runs_nothing_and_can_be_given_again() {
    with_faulty_store(async |case: &mut PausingCase, store: FaultyRunStore| {
        let (f, _) = two_gated(case);
        case.say("go").await;
        for _ in 0..2 {
            store.fail_next(RecordWrite::Save, 0, 1);
            let leg = case.answer([case.yes("c1"), case.no("c3", "no")]).await;
            assert_eq!(leg.error_kind(), ErrorKind::Store);
            assert_eq!(Ledger::waiting(&leg), ["c1 approval", "c3 approval"]);
            assert_eq!(f.entries(), 0);
            assert!(leg.messages().is_empty() && leg.requests().is_empty());
        }
        case.replies([Reply::text("done")]);
        assert_completed(&case.answer([case.yes("c1"), case.no("c3", "no")]).await);
        assert_eq!(f.call_ids(), ["c1"]);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2,c3]",
                "R(c1, ok: 'r')",
                "R(c2, ok: 's')",
                "R(c3, denied: 'Rejected: no')",
            ],
        );
    })
    .await;
}

/// The save behind the bodies fails: results stay in hand, and no call gets a second outcome later.
#[tokio::test(start_paused = true)]
async fn i6_a_result_stays_in_hand_when_the_pause_behind_it_cannot_be_kept() {
    with_faulty_store(async |case: &mut PausingCase, store: FaultyRunStore| {
        let (f, _) = two_gated(case);
        case.say("go").await;
        store.fail_next(RecordWrite::Save, 1, 1);
        let leg = case.answer([case.yes("c1")]).await;
        assert_eq!(leg.error_kind(), ErrorKind::Store);
        assert_eq!(leg.outcome("c1"), ToolOutcome::Ok);
        assert_eq!(f.call_ids(), ["c1"]);
        assert!(leg.requests().is_empty());
        // What the transcript says of c3 holds: it waits still, or has its outcome for good.
        if Ledger::waiting(&leg).is_empty() {
            assert_eq!(leg.outcome("c3"), ToolOutcome::Cancelled { started: false });
            assert_refused(&case.answer([case.yes("c3")]).await, "stale", &[]);
            assert_eq!(f.call_ids(), ["c1"]);
        }
        case.replies([Reply::text("done")]);
        assert_completed(&case.say("and now?").await);
        one_result_each(case, &["c1", "c2", "c3"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i6_no_model_request_is_made_when_the_end_of_a_batch_cannot_be_kept() {
    with_faulty_store(async |case: &mut PausingCase, store: FaultyRunStore| {
        let (f, _) = two_gated(case);
        case.say("go").await;
        store.fail_next(RecordWrite::Save, 1, 1);
        let leg = case.answer([case.yes("c1"), case.yes("c3")]).await;
        assert_eq!(leg.error_kind(), ErrorKind::Store);
        assert!(leg.requests().is_empty());
        assert_lines(&leg.lines(), &["R(c1, ok: 'r')", "R(c3, ok: 'r')"]);
        case.replies([Reply::text("done")]);
        assert_completed(&case.say("and now?").await);
        assert_eq!(f.call_ids(), ["c1", "c3"]);
        one_result_each(case, &["c1", "c2", "c3"]);
    })
    .await;
}

fn one_result_each(case: &mut PausingCase, labels: &[&str]) {
    let conversation = case.conversation().clone();
    for label in labels {
        let results = conversation
            .iter()
            .flat_map(raf_core::ChatMessage::tool_results)
            .filter(|result| result.call_id() == *label)
            .count();
        assert_eq!(results, 1, "results of {label}");
    }
}

/// Plays a case in both forms, with and without a reload to the same store.
async fn with_store(store: impl Fn() -> InMemoryRunStore, play: impl AsyncFn(&mut PausingCase)) {
    for form in [Form::Stream, Form::Fold] {
        for reload in [Reload::Nothing, Reload::SameStore, Reload::StoreAndValue] {
            let mut case = PausingCase::new(form, reload);
            case.store(Arc::new(store()));
            play(&mut case).await;
            case.finish();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn i2_an_expired_record_is_stale_whatever_value_comes_with_it() {
    let now = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now);
    let store = move || {
        let clock = Arc::clone(&clock);
        InMemoryRunStore::new()
            .with_lifetime(Duration::from_secs(60))
            .with_clock(move || Duration::from_secs(clock.load(Ordering::SeqCst)))
    };
    with_store(store, async |case: &mut PausingCase| {
        let (f, _) = two_gated(case);
        assert_paused(&case.say("go").await, &["c1 approval", "c3 approval"]);
        now.fetch_add(59, Ordering::SeqCst);
        // A write is a sign of life.
        assert_paused(&case.answer([case.yes("c1")]).await, &["c3 approval"]);
        now.fetch_add(59, Ordering::SeqCst);
        assert_paused(&case.answer([]).await, &["c3 approval"]);
        now.fetch_add(61, Ordering::SeqCst);
        assert_refused(&case.answer([case.yes("c3")]).await, "stale", &[]);
        assert_eq!(f.call_ids(), ["c1"]);
        // The conversation goes on all the same.
        case.replies([Reply::text("done")]);
        assert_completed(&case.say("and now?").await);
        assert_lines(
            &case.request_lines(2),
            &[
                "U:go",
                "A:[c1,c2,c3]",
                "R(c1, ok: 'r')",
                "R(c2, ok: 's')",
                "R(c3, cancelled: *",
                "U:and now?",
            ],
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn i2_a_record_that_gave_way_is_a_typed_error() {
    for form in [Form::Stream, Form::Fold] {
        let mut case = PausingCase::new(form, Reload::SameStore);
        let store = InMemoryRunStore::new().with_max_runs(1);
        case.store(Arc::new(store.clone()));
        let f = case.tool(ScriptedTool::returning("f", "r").gated());
        case.replies([
            Reply::calls([("c1", "f", "{}")]),
            Reply::calls([("c2", "f", "{}")]),
            Reply::text("second"),
        ]);
        case.say("first").await;
        let (first, old) = (case.conversation().clone(), case.yes("c1"));
        case.conversation().clear();
        assert_paused(&case.say("second").await, &["c2 approval"]);
        assert_eq!(store.len(), 1);

        let second = std::mem::replace(case.conversation(), first);
        assert_refused(&case.answer([old]).await, "unknown_request", &[]);
        *case.conversation() = second;
        assert_completed(&case.answer([case.yes("c2")]).await);
        assert_eq!(f.call_ids(), ["c2"]);
        assert!(store.list_open(None).await.unwrap().is_empty());
        case.finish();
    }
}
