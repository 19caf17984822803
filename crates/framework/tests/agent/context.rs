//! Context providers: what they bring, in which order, what they are told, what their failure means.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatMessage, Error, ErrorKind, ISession, MessageSource, Result, Session,
};
use raf_framework::{
    AgentRequest, AgentRuntime, ContextOutcome, ContextRequest, IContextProvider, ProvidedContext,
    ProviderFailure,
};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::{ToolRegistry, tool_fn};

/// Remembers what was said, and brings it into each run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) told: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl IContextProvider for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn provide(&self, _: &ContextRequest<'_>) -> Result<ProvidedContext> {
        Ok(ProvidedContext::new())
    }

    async fn finished(&self, outcome: &ContextOutcome<'_>) -> Result<()> {
        self.told.lock().unwrap().push(match outcome.result {
            Ok(response) => format!("ok {}", response.text()),
            Err(error) => error.kind().to_string(),
        });
        Ok(())
    }
}

#[derive(Debug)]
struct Profile {
    name: &'static str,
    policy: ProviderFailure,
    fails: bool,
    panics: bool,
}

impl Profile {
    fn new(name: &'static str) -> Self {
        let policy = ProviderFailure::FailRun;
        Self {
            name,
            policy,
            fails: false,
            panics: false,
        }
    }
}

#[async_trait]
impl IContextProvider for Profile {
    fn name(&self) -> &str {
        self.name
    }

    async fn provide(&self, _: &ContextRequest<'_>) -> Result<ProvidedContext> {
        assert!(!self.panics, "broken");
        if self.fails {
            return Err(Error::new(ErrorKind::Store, "the profile cannot be read"));
        }
        let name = self.name;
        let own = tool_fn(format!("{name}_tool"), "From a provider.", |(): ()| async {
            "own"
        });
        let twin = ScriptedTool::returning("shared", name).gated();
        let tools = ToolRegistry::builder()
            .with_tool(own)
            .with_tool(twin)
            .build()?;
        Ok(ProvidedContext::new()
            .with_instructions(format!("I am {name}."))
            .with_message(ChatMessage::user(format!("fact of {name}")))
            .with_stored_message(ChatMessage::user(format!("stored by {name}")))
            .with_tools(tools))
    }

    fn on_failure(&self) -> ProviderFailure {
        self.policy
    }
}

#[tokio::test]
async fn they_stand_in_order_in_each_request_and_only_what_is_stored_is_kept() {
    let model =
        ScriptedChatClient::new([Reply::calls([("c1", "a_tool", "{}")]), Reply::text("done")]);
    let agent = AgentRuntime::builder(model.clone())
        .instructions("Be kind.")
        .context_provider(Profile::new("a"))
        .context_provider(Profile::new("b"))
        .build()
        .unwrap();
    let session = Session::in_memory();
    let request = AgentRequest::new("go").in_session(session.clone());
    let response = agent.ask(request).await.unwrap();
    let first = [
        "S:Be kind.\n\nI am a.\n\nI am b.",
        "U:fact of a",
        "U:fact of b",
        "U:go",
        "U:stored by a",
        "U:stored by b",
    ];
    let requests = model.requests();
    assert_eq!(requests[0].lines(), first);
    let second = [&first[..], &["A:[c1]", "R(c1, ok: 'own')"]].concat();
    assert_eq!(requests[1].lines(), second);
    let front = &requests[0].messages[..3];
    assert!(
        front
            .iter()
            .all(|message| message.source() == MessageSource::ContextProvider)
    );
    assert_eq!(requests[0].tool_names(), ["a_tool", "shared", "b_tool"]);
    let kept = session.load().await.unwrap().transcript();
    assert_eq!(kept[1..], response.messages);
    let lines = raf_testing::transcript_lines(&kept);
    assert_eq!(lines[..3], ["U:go", "U:stored by a", "U:stored by b"]);
}

#[tokio::test]
async fn d10_the_agents_own_tool_wins_and_keeps_the_gate_of_a_providers_twin() {
    let model = ScriptedChatClient::new([Reply::calls([("c1", "shared", "{}")])]);
    let own = tool_fn("shared", "The agent's.", |(): ()| async { "own" });
    let agent = AgentRuntime::builder(model.clone())
        .tools([own])
        .context_provider(Profile::new("a"))
        .build()
        .unwrap();
    let response = agent.ask("go").await.unwrap();
    assert!(response.pending[0].approval().is_some());
    let answers = AgentRequest::answers([raf_core::ToolApprovalResponse::approve(
        response.pending[0].request_id().unwrap(),
    )]);
    model.push(Reply::text("done"));
    let conversation = [vec![ChatMessage::user("go")], response.messages].concat();
    let response = agent
        .ask(answers.with_messages(conversation))
        .await
        .unwrap();
    assert_eq!(
        response.messages[0].tool_results().next().unwrap().text(),
        "own"
    );
}

#[tokio::test]
async fn they_are_told_how_each_leg_ended_before_its_end_is_seen() {
    let model = ScriptedChatClient::new([
        Reply::text("hi"),
        Reply::new().error(Error::new(ErrorKind::Server, "down")),
    ]);
    let memory = Memory::default();
    let agent = AgentRuntime::builder(model)
        .context_provider(memory.clone())
        .build()
        .unwrap();
    let mut run = agent.run("go");
    while let Some(update) = run.next().await {
        let ended = matches!(update.unwrap(), AgentResponseUpdate::Finish { .. });
        assert_eq!(memory.told.lock().unwrap().len(), usize::from(ended));
    }
    agent.ask("go").await.unwrap_err();
    let cancelled = AgentRequest::new("go").with_options(super::cancelled());
    agent.ask(cancelled).await.unwrap_err();
    assert_eq!(*memory.told.lock().unwrap(), ["ok hi", "server_error"]);
}

#[tokio::test]
async fn a_failing_provider_fails_the_run_or_is_skipped_as_it_declares_and_never_in_silence() {
    for panics in [false, true] {
        for policy in [ProviderFailure::FailRun, ProviderFailure::Skip] {
            let model = ScriptedChatClient::always(Reply::text("hi"));
            let memory = Memory::default();
            let broken = Profile {
                policy,
                fails: !panics,
                panics,
                ..Profile::new("broken")
            };
            let agent = AgentRuntime::builder(model.clone())
                .context_provider(memory.clone())
                .context_provider(broken)
                .build()
                .unwrap();
            let updates: Vec<_> = agent.run("go").collect().await;
            let told = memory.told.lock().unwrap().len();
            assert_eq!(told, 1);
            if policy == ProviderFailure::FailRun {
                let error = updates[0].as_ref().unwrap_err();
                assert!(error.to_string().contains("broken"), "{error}");
                assert_eq!(model.request_count(), 0);
            } else {
                let notice = updates[0].as_ref().unwrap();
                assert!(
                    matches!(notice, AgentResponseUpdate::Error { .. }),
                    "{notice:?}"
                );
                assert_eq!(model.request_count(), 1);
            }
        }
    }
}
