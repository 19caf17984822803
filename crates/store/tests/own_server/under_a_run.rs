//! A server that crashes while a body is at work: the loop is told so, and goes on with what it has in hand.

use std::sync::Arc;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, IRunStore, RunId, ToolOutcome,
    ToolResult,
};
use raf_framework::{
    ClientResumer, FunctionInvokingChatClient, PassOptions, RunProgress, RunStoreOptionsExt,
    resume_open_runs,
};
use raf_store::PostgresStore;
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ToolOutput, ToolRegistry};

use crate::server::{OwnServer, Programs};

pub(crate) async fn crashes(programs: Programs) {
    let server = Arc::new(OwnServer::start(&programs, &[], &[]));
    let store = PostgresStore::open(&server.url())
        .await
        .expect("the server");
    let store: Arc<dyn IRunStore> = Arc::new(store);
    let crashing = Arc::clone(&server);
    let body = Behaviour::custom(move |_, _| {
        crashing.crash_and_restart();
        async { Ok(ToolOutput::text("paid")) }
    });
    let pay = Arc::new(ScriptedTool::new("pay").always(body));
    let tools = ToolRegistry::builder().with_shared_tool(pay.clone());
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "pay", "{}")]),
        Reply::text("It is paid."),
    ]);
    let client = Arc::new(FunctionInvokingChatClient::new(
        Arc::new(model),
        tools.build().expect("tools"),
    ));
    let options = ChatClientRunOptions::new()
        .with_run_store(Arc::clone(&store))
        .with_run_id("r".into());
    let mut ended = client
        .get_response(&[ChatMessage::user("Pay.")], options)
        .await;
    // The store may have noticed the loss before it wrote; else the write fails, and a worker goes on.
    if let Err(error) = &ended {
        assert_eq!(error.kind(), ErrorKind::Store, "{error:?}");
        assert!(error.is_temporary(), "{error:?}");
        let resumer = ClientResumer::new(client);
        let passed = resume_open_runs(&store, &resumer, PassOptions::new()).await;
        let run = passed.expect("the server is there again").pop();
        let Some(RunProgress::Finished(response)) = run.map(|run| run.progress) else {
            panic!("the run is not at its end")
        };
        ended = Ok(response);
    }
    let response = ended.expect("an answer");
    assert_eq!(response.text(), "It is paid.");
    let results = response.messages.iter().flat_map(ChatMessage::tool_results);
    let outcomes: Vec<ToolOutcome> = results.map(ToolResult::outcome).collect();
    assert_eq!(outcomes, [ToolOutcome::Ok]);
    assert_eq!(pay.log().entries(), 1);
    let record = store.load(&RunId::from("r")).await.expect("the server");
    assert!(record.expect("the run").closed);
}
