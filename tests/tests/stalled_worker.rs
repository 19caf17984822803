//! A worker that stalled and comes back cannot write: its run is another's, and its stream says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, IRunStore, RunId, ToolOutcome,
};
use raf_framework::{
    ChatClientBuilderExt, ClientResumer, PassOptions, RunProgress, RunStoreOptionsExt,
    resume_open_runs,
};
use raf_store::{SqliteOptions, SqliteStore, StoreOptions};
use raf_testing::{Behaviour, Latch, Reply, ScriptedChatClient, ScriptedTool};

#[tokio::test]
async fn i8_a_stalled_worker_that_comes_back_ends_in_the_typed_busy_error() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let open = || {
        let seconds = Arc::clone(&seconds);
        let limits = StoreOptions::new()
            .with_lease(Duration::from_secs(600))
            .with_heartbeat(false);
        let options = SqliteOptions::new()
            .with_limits(limits)
            .with_clock(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
        let path = folder.path().join("runs.db");
        Arc::new(SqliteStore::open_with(path, options).unwrap()) as Arc<dyn IRunStore>
    };
    let (store, elsewhere) = (open(), open());
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
    let tools = raf_tools::ToolRegistry::builder()
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
        seconds.fetch_add(3600, Ordering::SeqCst);
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
