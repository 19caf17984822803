//! A run of a session, an agent within it, dropped or cancelled after every number of polls: the session
//! stays valid, free, and goes on.

use raf_core::{ChatClientRunOptions, ISession, Session, normalise, validate_history};
use raf_framework::{AgentRequest, AgentRuntime};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool, cancel_after_polls, drop_after_polls};
use raf_tools::ITool;

fn agent() -> AgentRuntime {
    let replies = [
        Reply::text("thinking").call("s1", "own", "{}"),
        Reply::text("found"),
    ];
    let own = ScriptedTool::returning("own", "x");
    let sub = AgentRuntime::builder(ScriptedChatClient::new(replies))
        .name("sub")
        .description("Does it.")
        .tools([own])
        .build()
        .unwrap();
    let model = ScriptedChatClient::new([
        Reply::new()
            .call("c1", "sub", r#"{"task": "do it"}"#)
            .call("c2", "t", "{}"),
        Reply::text("done"),
    ]);
    let tools: Vec<std::sync::Arc<dyn ITool>> = vec![
        std::sync::Arc::new(sub.as_tool().unwrap()),
        std::sync::Arc::new(ScriptedTool::returning("t", "y")),
    ];
    AgentRuntime::builder(model).tools(tools).build().unwrap()
}

async fn goes_on(session: &Session) {
    let kept = session.load().await.unwrap();
    validate_history(&kept.history()).unwrap();
    let before = kept.history().len();
    let model = ScriptedChatClient::new([Reply::text("welcome back")]);
    let next = AgentRuntime::builder(model.clone()).build().unwrap();
    let request = AgentRequest::new("still there?").in_session(session.clone());
    assert_eq!(next.ask(request).await.unwrap().text(), "welcome back");
    assert_eq!(model.requests()[0].messages.len(), before + 1);
}

#[test]
fn b5_dropped_after_any_number_of_polls_a_session_goes_on() {
    let runs = drop_after_polls(
        async || {
            let session = Session::in_memory();
            let request = AgentRequest::new("go").in_session(session.clone());
            (agent().run(request), session)
        },
        async |left| goes_on(&left.world).await,
    );
    assert!(runs > 20, "{runs}");
}

#[test]
fn h2_cancelled_after_any_number_of_polls_a_session_goes_on() {
    cancel_after_polls(
        async |token| {
            let session = Session::in_memory();
            let options = ChatClientRunOptions::new().with_cancellation(token);
            let request = AgentRequest::new("go").in_session(session.clone());
            (agent().run(request.with_options(options)), session)
        },
        async |left| {
            let kept = left.world.load().await.unwrap().transcript();
            // Whatever ended it, nothing has to be filled in.
            assert_eq!(normalise(&kept).len(), kept.len());
            goes_on(&left.world).await;
        },
    );
}
