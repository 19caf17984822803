//! Wrong settings are errors when an agent is built, and say what to do.

use raf_core::{ChatClientRunOptions, ErrorKind, SessionView, ToolChoice};
use raf_framework::{AgentConfigBuilder, AgentRuntime, ChatClientBuilderExt};
use raf_testing::{Reply, ScriptedChatClient};
use raf_tools::{TypedOutput, schemars, tool_fn};
use serde_json::json;

fn fault(configure: impl FnOnce(AgentConfigBuilder) -> AgentConfigBuilder) -> String {
    let builder = AgentRuntime::builder(ScriptedChatClient::new([]));
    let error = configure(builder).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
    error.to_string()
}

#[test]
fn what_cannot_work_is_refused() {
    let tool = || tool_fn("now", "The time.", |(): ()| async { "noon" });
    let check = |text: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    check(
        fault(|agent| agent.max_rounds(0)),
        &["max_rounds", "at least 1"],
    );
    check(
        fault(|agent| agent.tool_timeout_secs(0)),
        &["tool_timeout_secs"],
    );
    check(fault(|agent| agent.model(" ")), &["model", "blank"]);
    check(fault(|agent| agent.tools([tool(), tool()])), &["'now'"]);
    check(
        fault(|agent| agent.tools([tool()]).tools([tool()])),
        &["'now'"],
    );
    check(
        fault(|agent| agent.history(SessionView::LastTurns(0))),
        &["history"],
    );
    check(
        fault(|agent| agent.settings(json!({"max_round": 3}))),
        &["max_round", "max_rounds"],
    );
    check(
        fault(|agent| agent.settings(json!({"max_rounds": "3"}))),
        &["u32"],
    );
    check(
        fault(|agent| agent.settings(json!({"max_parallel_tools": 0}))),
        &["max_parallel_tools"],
    );
    let forced = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Required);
    check(
        fault(|agent| agent.run_options(forced)),
        &["tool choice", "no tools"],
    );
    let session = ChatClientRunOptions::new().with_session_id("s");
    check(fault(|agent| agent.run_options(session)), &["AgentRequest"]);
    let mut format = ChatClientRunOptions::new();
    format.response_format = Some(TypedOutput::<Vec<u8>>::new().unwrap().response_format());
    check(
        fault(|agent| agent.output::<u8>().run_options(format)),
        &["output"],
    );
}

#[tokio::test]
async fn a_client_that_has_a_loop_keeps_its_own_limits() {
    let model = ScriptedChatClient::always(Reply::text("hi"));
    let stack = || {
        let now = tool_fn("now", "The time.", |(): ()| async { "noon" });
        raf_core::ChatClientBuilder::new(model.clone())
            .function_invoking([now])
            .build()
            .unwrap()
    };
    let error = AgentRuntime::builder(stack())
        .max_rounds(3)
        .build()
        .unwrap_err();
    assert!(
        error.to_string().contains("has a function-invoking loop"),
        "{error}"
    );
    let agent = AgentRuntime::builder(stack())
        .instructions("Be kind.")
        .build()
        .unwrap();
    agent.ask("hello").await.unwrap();
    assert_eq!(model.requests()[0].lines(), ["S:Be kind.", "U:hello"]);
    assert_eq!(model.requests()[0].tool_names(), ["now"]);
}

#[tokio::test]
async fn settings_reach_the_run_and_its_own_options_win() {
    let model = ScriptedChatClient::always(Reply::text("hi"));
    let agent = AgentRuntime::builder(model.clone())
        .settings(json!({"name": "kind", "model": "small", "temperature": 0.5, "instructions": "Be kind."}))
        .build()
        .unwrap();
    assert_eq!(agent.config().name(), Some("kind"));
    agent.ask("a").await.unwrap();
    let options = ChatClientRunOptions::new().with_model("large");
    let request = raf_framework::AgentRequest::new("b").with_options(options);
    agent.ask(request).await.unwrap();
    let seen: Vec<_> = model
        .requests()
        .iter()
        .map(|request| {
            (
                request.options.model.clone().unwrap(),
                request.options.temperature,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [("small".into(), Some(0.5)), ("large".into(), Some(0.5))]
    );
}

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Answer {
    value: u32,
}

#[tokio::test]
async fn a_typed_answer_comes_after_tools_and_a_wrong_one_is_handed_back() {
    let model = ScriptedChatClient::new([
        Reply::calls([("c1", "half", "{}")]),
        Reply::text("It is 21."),
        Reply::text(r#"{"value": 21}"#),
    ]);
    let half = tool_fn("half", "Half of it.", |(): ()| async { 21 });
    let agent = AgentRuntime::builder(model.clone())
        .tools([half])
        .build()
        .unwrap();
    let session = raf_core::Session::in_memory();
    let request = raf_framework::AgentRequest::new("half of 42?").in_session(session.clone());
    let typed = agent.ask_typed::<Answer>(request).await.unwrap();
    assert_eq!(typed.value, Answer { value: 21 });
    let requests = model.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.options.response_format.is_some())
    );
    assert!(
        requests
            .iter()
            .all(|request| request.tool_names() == ["half"])
    );
    let kept = raf_core::ISession::load(&session).await.unwrap();
    assert_eq!(kept.transcript()[1..], typed.response.messages);
    assert_eq!(requests[2].messages.len(), 5);
}
