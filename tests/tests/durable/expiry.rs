//! Approvals that nobody gave in time: a worker settles them as expired, and nothing runs for them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use raf_core::{
    AnswerOutcome, ChatClientExt, ChatMessage, ClosedReason, FinishReason, IRunStore,
    RefusalReason, RunId, Settlement, ToolApprovalResponse,
};
use raf_framework::{ClientResumer, PassOptions, resume_open_runs};
use raf_testing::ScriptedTool;

use crate::work::{self, LEASE};
use raf_tests::backend::Backend;

/// More than a run is kept by default, less than a closed one is.
const TOO_LATE: Duration = Duration::from_hours(40 * 24);

pub(crate) async fn is_settled_by_a_worker(backend: &Backend) {
    let waiting = Waiting::begin(backend).await;
    let later = backend.open(TOO_LATE, LEASE).await;
    waiting.pass_does_nothing(&later).await;
    waiting.is_settled_as_expired(&later).await;
    // A late answer is told so, again and again.
    for _ in 0..2 {
        let yes = ToolApprovalResponse::approve(&waiting.request_id);
        let answered = later.answer(&yes).await.expect("the store");
        assert_eq!(answered, AnswerOutcome::Refused(RefusalReason::Stale));
    }
    waiting.pass_does_nothing(&later).await;
}

/// The inbox says until when an answer counts, and it does until then and no longer.
pub(crate) async fn is_when_the_inbox_says(backend: &Backend) {
    let waiting = Waiting::begin(backend).await;
    let pending = waiting.store.list_pending(None).await.expect("the store");
    let until = pending[0].answerable_until_ms.expect("runs expire");
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = Duration::from_millis(until).checked_sub(now.expect("a clock behind 1970"));
    let left = left.expect("it is still to come");
    // Clocks of two machines may differ.
    let an_hour = Duration::from_hours(1);
    let before = left.checked_sub(an_hour).expect("days");
    let before = backend.open(before, LEASE).await;
    assert_eq!(before.list_pending(None).await.expect("the store"), pending);
    let behind = backend.open(left + an_hour, LEASE).await;
    assert_eq!(behind.list_pending(None).await.expect("the store"), []);
    let yes = ToolApprovalResponse::approve(&waiting.request_id);
    let answered = behind.answer(&yes).await.expect("the store");
    assert_eq!(answered, AnswerOutcome::Refused(RefusalReason::Stale));
}

pub(crate) async fn voids_an_answer(backend: &Backend) {
    let waiting = Waiting::begin(backend).await;
    let yes = ToolApprovalResponse::approve(&waiting.request_id);
    let answered = waiting.store.answer(&yes).await.expect("the store");
    assert_eq!(answered, AnswerOutcome::Kept);
    let later = backend.open(TOO_LATE, LEASE).await;
    waiting.pass_does_nothing(&later).await;
    waiting.is_settled_as_expired(&later).await;
    let left = later.answers(&waiting.run_id).await.expect("the store");
    assert_eq!(left, []);
}

struct Waiting {
    run_id: RunId,
    request_id: String,
    pay: Arc<ScriptedTool>,
    store: Arc<dyn IRunStore>,
}

impl Waiting {
    async fn begin(backend: &Backend) -> Self {
        let store = backend.open(Duration::ZERO, LEASE).await;
        let pay = Arc::new(ScriptedTool::returning("pay", "paid").gated());
        let run_id = RunId::from("waits");
        let paused = work::client(1, &pay)
            .get_response(&[ChatMessage::user("Pay.")], work::options(&store, &run_id))
            .await
            .expect("a pause");
        assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
        let request_id = paused.pending[0].request_id().expect("a request");
        Self {
            request_id: request_id.to_owned(),
            run_id,
            pay,
            store,
        }
    }

    async fn pass_does_nothing(&self, store: &Arc<dyn IRunStore>) {
        let resumer = ClientResumer::new(work::client(1, &self.pay));
        let passed = resume_open_runs(store, &resumer, PassOptions::new()).await;
        assert!(passed.expect("the store").is_empty());
        assert_eq!(self.pay.log().entries(), 0);
    }

    async fn is_settled_as_expired(&self, store: &Arc<dyn IRunStore>) {
        let record = store.load(&self.run_id).await.expect("the store");
        let record = record.expect("it is kept for a while");
        assert!(record.closed);
        let expired = Settlement::Closed(ClosedReason::Expired);
        assert_eq!(record.settlement(&self.request_id), Some(expired));
        assert!(
            store
                .list_pending(None)
                .await
                .expect("the store")
                .is_empty()
        );
    }
}
