//! Who holds a run: a leg that works keeps it by its signs of life, however long it works; one that stalled and
//! comes back cannot write, for its run is another's, and its stream says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, ClaimOutcome, ErrorKind, IRunStore,
    JournalEntry, JournalKey, JournalKind, RunClaim, RunId, ToolOutcome, WriteOutcome,
};
use raf_framework::{
    ChatClientBuilderExt, ClientResumer, FunctionInvokingChatClient, FunctionInvokingOptions,
    PassOptions, RunProgress, RunStoreOptionsExt, resume_open_runs,
};
use raf_store::{SqliteOptions, SqliteStore, StoreOptions};
use raf_testing::{Behaviour, FaultyRunStore, Latch, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ExecutionOptions, ToolRegistry};

/// A file that is opened several times, with a clock of the test's own. The store gives no signs of life by
/// itself: those that come are the loop's.
struct Place {
    folder: tempfile::TempDir,
    seconds: Arc<AtomicU64>,
    lease: Duration,
}

impl Place {
    fn with_lease(lease: Duration) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            seconds: Arc::new(AtomicU64::new(1_000_000)),
            lease,
        }
    }

    fn open(&self) -> Arc<dyn IRunStore> {
        let seconds = Arc::clone(&self.seconds);
        let limits = StoreOptions::new()
            .with_lease(self.lease)
            .with_heartbeat(false);
        let options = SqliteOptions::new()
            .with_limits(limits)
            .with_clock(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
        let path = self.folder.path().join("runs.db");
        let store = SqliteStore::open_with(path, options).expect("a store");
        // On a paused clock the store takes no time.
        Arc::new(FaultyRunStore::new(Arc::new(store)).with_standing_clock(true))
    }

    fn pass(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Lets the store's clock go with tokio's.
    async fn tick(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.pass(1);
        }
    }
}

/// A loop whose one call works for this long.
fn slow(time: Duration) -> (Arc<ScriptedTool>, FunctionInvokingChatClient) {
    let pay = Arc::new(ScriptedTool::new("pay").always(Behaviour::text("paid").after_sleep(time)));
    let tools = ToolRegistry::builder()
        .with_shared_tool(pay.clone())
        .build()
        .expect("tools");
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "pay", "{}")]),
        Reply::text("It is paid."),
    ]);
    let execution = ExecutionOptions::new().with_deadline(None);
    let options = FunctionInvokingOptions::new().with_execution(execution);
    let client = FunctionInvokingChatClient::with_options(Arc::new(model), tools, options);
    (pay, client)
}

fn in_store(store: Arc<dyn IRunStore>) -> ChatClientRunOptions {
    ChatClientRunOptions::new()
        .with_run_store(store)
        .with_run_id("r".into())
}

const LEASE: Duration = Duration::from_secs(30);
/// Twenty leases.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn i8_a_leg_longer_than_its_lease_keeps_its_run() {
    let place = Place::with_lease(LEASE);
    let (pay, client) = slow(LONG);
    let input = [ChatMessage::user("Pay.")];
    let leg = client.get_response(&input, in_store(place.open()));
    let elsewhere = place.open();
    let others = async {
        let mut tried = 0;
        loop {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let claimed = elsewhere.claim(&"r".into(), &RunClaim::new()).await;
            assert_eq!(claimed.unwrap(), ClaimOutcome::Busy, "at try {tried}");
            assert_eq!(elsewhere.list_resumable(9).await.unwrap(), []);
            tried += 1;
            if tried == 80 {
                return;
            }
        }
    };
    let (response, ()) = tokio::select! {
        both = async { futures::join!(leg, others) } => both,
        () = place.tick() => unreachable!("it has no end"),
    };
    assert_eq!(response.unwrap().text(), "It is paid.");
    assert_eq!(pay.log().entries(), 1);
    let record = elsewhere.load(&"r".into()).await.unwrap().unwrap();
    assert!(record.closed);
}

#[tokio::test(start_paused = true)]
async fn i8_a_leg_whose_sign_of_life_is_refused_writes_no_more() {
    let place = Place::with_lease(LEASE);
    let (pay, client) = slow(LONG);
    let input = [ChatMessage::user("Pay.")];
    let leg = client.get_response(&input, in_store(place.open()));
    let elsewhere = place.open();
    let (run_id, key) = (RunId::from("r"), JournalKey::root("r".into()));
    let taker = RunClaim::new();
    let takes = async {
        // Between two signs of life: one that comes in time would save it.
        tokio::time::sleep(LONG / 2 + LEASE / 6).await;
        // The machine stood still for an hour, and another one took the run.
        place.pass(3600);
        let claimed = elsewhere.claim(&run_id, &taker).await.unwrap();
        assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "{claimed:?}");
        elsewhere.journal(&key, 0).await.unwrap()
    };
    let (leg, journal) = tokio::select! {
        both = async { futures::join!(leg, takes) } => both,
        () = place.tick() => unreachable!("it has no end"),
    };
    // Its signs of life were refused ten times by then, and the taker's own lease has lapsed too: what was
    // lost does not come back.
    assert_eq!(leg.unwrap_err().kind(), ErrorKind::BusySession);
    assert_eq!(pay.log().completions(), 1, "its body came to its end");
    assert_eq!(elsewhere.journal(&key, 0).await.unwrap(), journal);
    let record = elsewhere.load(&run_id).await.unwrap().unwrap();
    assert!(record.working && !record.closed);
    // The run is still the taker's, who can write.
    let base = journal.len() as u64;
    let entry = JournalEntry::new(9, "taken", JournalKind::Step, serde_json::Value::Null);
    let written = elsewhere
        .append(&key, &taker, base, &[entry], None)
        .await
        .unwrap();
    assert_eq!(written, WriteOutcome::Written(base + 1));
}

#[tokio::test]
async fn i8_a_stalled_worker_that_comes_back_ends_in_the_typed_busy_error() {
    let place = Place::with_lease(Duration::from_secs(600));
    let (store, elsewhere) = (place.open(), place.open());
    let (entered, leave) = (Latch::new(), Latch::new());
    let body = Behaviour::text("paid")
        .after_opening(&entered)
        .after_latch(&leave);
    let stalls = ScriptedChatClient::new([Reply::calls([("c1", "pay", "{}")])])
        .into_builder()
        .function_invoking([ScriptedTool::new("pay").always(body)])
        .build()
        .unwrap();
    let pay = Arc::new(ScriptedTool::returning("pay", "paid"));
    let tools = ToolRegistry::builder()
        .with_shared_tool(pay.clone())
        .build()
        .unwrap();
    let takes_over = ScriptedChatClient::new([Reply::text("I cannot tell.")])
        .into_builder()
        .function_invoking(tools)
        .build()
        .unwrap();

    let options = ChatClientRunOptions::new()
        .with_run_store(store)
        .with_run_id("r".into());
    let input = [ChatMessage::user("Pay.")];
    let stalled = stalls.get_response(&input, options);
    let outside = async {
        entered.wait().await;
        place.pass(3600);
        let resumer = ClientResumer::new(takes_over);
        let passed = resume_open_runs(&elsewhere, &resumer, PassOptions::new()).await;
        leave.open();
        passed.unwrap()
    };
    let (stalled, passed) = futures::join!(stalled, outside);

    assert_eq!(stalled.unwrap_err().kind(), ErrorKind::BusySession);
    let RunProgress::Finished(response) = &passed[0].progress else {
        panic!("{passed:?}")
    };
    let mut results = response.messages.iter().flat_map(ChatMessage::tool_results);
    assert_eq!(results.next().unwrap().outcome(), ToolOutcome::Unknown);
    assert_eq!(pay.log().entries(), 0);
    let record = elsewhere.load(&RunId::from("r")).await.unwrap().unwrap();
    assert!(record.closed);
}
