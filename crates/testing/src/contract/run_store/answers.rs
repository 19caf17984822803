//! Laws of kept answers: the first wins, what does not fit is refused, what is settled is gone.

use futures::future::join_all;
use raf_core::{
    AnswerOutcome, ApprovalDecision, ClosedReason, RefusalReason, RunId, RunRecord, Settlement,
    ToolApprovalResponse, WriteOutcome,
};
use serde_json::json;

use super::{IRunStoreFixture, add_request, waiting};

const fn refused(reason: RefusalReason) -> AnswerOutcome {
    AnswerOutcome::Refused(reason)
}

pub(super) async fn e2_the_first_answer_wins(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let (record, request_id) = waiting("run");
    let _ = store.create(&record, None).await.unwrap();
    let no = ToolApprovalResponse::deny(request_id.as_str(), "not today");
    assert_eq!(store.answer(&no).await.unwrap(), AnswerOutcome::Kept);
    let yes = ToolApprovalResponse::approve(request_id.as_str());
    for handle in [&store, &other] {
        let late = handle.answer(&yes).await.unwrap();
        assert_eq!(late, refused(RefusalReason::AlreadySettled));
    }
    assert_eq!(other.answers(&record.run_id).await.unwrap(), [no]);
}

pub(super) async fn e2_of_a_hundred_deciders_one_wins(fixture: &dyn IRunStoreFixture) {
    let handles = [fixture.open().await, fixture.open().await];
    let (record, request_id) = waiting("run");
    let _ = handles[0].create(&record, None).await.unwrap();
    let answers: Vec<ToolApprovalResponse> = (0..100)
        .map(|number| match number % 2 {
            0 => ToolApprovalResponse::approve(request_id.as_str()),
            _ => ToolApprovalResponse::deny(request_id.as_str(), format!("no {number}")),
        })
        .collect();
    let decided = join_all(
        answers
            .iter()
            .enumerate()
            .map(|(number, answer)| handles[number % 2].answer(answer)),
    );
    let decided: Vec<AnswerOutcome> = decided.await.into_iter().map(Result::unwrap).collect();
    let kept: Vec<usize> = (0..100)
        .filter(|&i| decided[i] == AnswerOutcome::Kept)
        .collect();
    assert_eq!(kept.len(), 1, "one decision wins: {kept:?}");
    let others = decided
        .iter()
        .filter(|outcome| **outcome == refused(RefusalReason::AlreadySettled));
    assert_eq!(others.count(), 99);
    let answer = handles[1].answers(&record.run_id).await.unwrap();
    assert_eq!(answer, [answers[kept[0]].clone()]);
}

pub(super) async fn e3_answers_that_do_not_fit_are_refused(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (mut record, open) = waiting("run");
    record.settle("answered", Settlement::Answered);
    record.settle("superseded", Settlement::Closed(ClosedReason::Superseded));
    let _ = store.create(&record, None).await.unwrap();
    let yes = ToolApprovalResponse::approve;
    let malformed = ApprovalDecision::Malformed(json!("perhaps"));
    let mut nothing = yes(open.as_str());
    nothing.decision = None;
    let table = [
        (yes("unknown"), RefusalReason::UnknownRequest),
        (yes("answered"), RefusalReason::AlreadySettled),
        (yes("superseded"), RefusalReason::Stale),
        (
            yes(open.as_str()).with_arguments(json!({"to": "Bob"})),
            RefusalReason::ArgsMismatch,
        ),
        (
            ToolApprovalResponse::resume(open.as_str(), json!(1)),
            RefusalReason::WrongCategory,
        ),
        (
            ToolApprovalResponse::new(open.as_str(), malformed),
            RefusalReason::Malformed,
        ),
        (
            ToolApprovalResponse::approve_edited(open.as_str(), json!([1])),
            RefusalReason::Malformed,
        ),
        (nothing, RefusalReason::Malformed),
    ];
    for (answer, reason) in table {
        let outcome = store.answer(&answer).await.unwrap();
        assert_eq!(outcome, refused(reason), "{answer:?}");
    }
    assert!(store.answers(&record.run_id).await.unwrap().is_empty());
    let fits = yes(open.as_str()).with_arguments(json!({"to": "Ada"}));
    assert_eq!(store.answer(&fits).await.unwrap(), AnswerOutcome::Kept);
}

pub(super) async fn e8_an_answer_goes_when_its_request_is_settled(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let mut record = RunRecord::new(RunId::from("run"));
    let (first, second) = (
        add_request(&mut record, None),
        add_request(&mut record, None),
    );
    let _ = store.create(&record, None).await.unwrap();
    let answers = [&second, &first].map(|id| ToolApprovalResponse::approve(id.as_str()));
    for answer in &answers {
        assert_eq!(store.answer(answer).await.unwrap(), AnswerOutcome::Kept);
    }
    assert_eq!(
        store.answers(&record.run_id).await.unwrap(),
        answers,
        "as they came"
    );
    record.revision = 1;
    record.settle(&second, Settlement::Answered);
    assert_eq!(store.save(&record).await.unwrap(), WriteOutcome::Written(2));
    assert_eq!(store.answers(&record.run_id).await.unwrap(), answers[1..]);
    let again = store.answer(&answers[0]).await.unwrap();
    assert_eq!(again, refused(RefusalReason::AlreadySettled));
    record.revision = 2;
    record.close(ClosedReason::Cancelled);
    assert_eq!(store.save(&record).await.unwrap(), WriteOutcome::Written(3));
    assert!(store.answers(&record.run_id).await.unwrap().is_empty());
    let late = store.answer(&answers[1]).await.unwrap();
    assert_eq!(late, refused(RefusalReason::Stale));
}

pub(super) async fn e8_a_refused_answer_makes_room(fixture: &dyn IRunStoreFixture) {
    let store = fixture.open().await;
    let (record, request_id) = waiting("run");
    let _ = store.create(&record, None).await.unwrap();
    let edited = ToolApprovalResponse::approve_edited(request_id.as_str(), json!({}));
    assert_eq!(store.answer(&edited).await.unwrap(), AnswerOutcome::Kept);
    assert!(store.forget_answer(&request_id).await.unwrap());
    assert!(!store.forget_answer(&request_id).await.unwrap());
    assert!(store.list_resumable(9).await.unwrap().is_empty());
    let yes = ToolApprovalResponse::approve(request_id.as_str());
    assert_eq!(store.answer(&yes).await.unwrap(), AnswerOutcome::Kept);
    assert_eq!(store.answers(&record.run_id).await.unwrap(), [yes]);
}

pub(super) async fn e8_what_waits_is_listed_with_who_and_when(fixture: &dyn IRunStoreFixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let mut first = RunRecord::new(RunId::from("first"));
    first.session_id = Some("here".to_owned());
    let far = u64::from(u32::MAX) * 1_000_000;
    let ids = [
        add_request(&mut first, Some(far)),
        add_request(&mut first, None),
    ];
    let (second, second_id) = waiting("second");
    for record in [&first, &second] {
        let _ = store.create(record, None).await.unwrap();
    }
    let answer = ToolApprovalResponse::approve(ids[1].as_str());
    assert_eq!(store.answer(&answer).await.unwrap(), AnswerOutcome::Kept);
    let pending = other.list_pending(None).await.unwrap();
    let shown: Vec<(&str, &str, bool)> = pending
        .iter()
        .map(|waits| (waits.run_id.as_str(), waits.request_id(), waits.answered))
        .collect();
    assert_eq!(
        shown,
        [
            ("first", ids[0].as_str(), false),
            ("first", ids[1].as_str(), true),
            ("second", second_id.as_str(), false)
        ]
    );
    let request = pending[0].approval().expect("it waits for a yes");
    assert_eq!(request.tool, "send");
    assert_eq!(request.arguments, json!({"to": "Ada"}));
    assert_eq!(request.asked_by.as_deref(), Some("clerk"));
    assert_eq!(request.session_id.as_deref(), Some("here"));
    assert_eq!(
        (request.asked_at_ms, request.expires_at_ms),
        (Some(1), Some(far))
    );
    // A store that knows when runs expire says of both requests the same: the one's own time is further off.
    if let Some(until) = pending[1].answerable_until_ms {
        assert!(until < far);
        assert_eq!(pending[0].answerable_until_ms, Some(until));
    }
    assert_eq!(pending[0].session_id.as_deref(), Some("here"));
    let here = other.list_pending(Some("here")).await.unwrap();
    assert_eq!(here, pending[..2]);
}
