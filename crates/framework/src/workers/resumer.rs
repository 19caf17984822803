//! Who goes on with a run: a stack of layers, or an agent with the sessions of its runs.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    AgentResponse, ChatClientExt, ChatClientRunOptions, IChatClient, IRunStore, ISessionStore,
    Result, RunId, Session,
};

use crate::agent::{AgentRequest, AgentRuntime};
use crate::function_invoking::RunStoreOptionsExt;

/// Goes on with a run of which the store has a record. Implement it to choose the agent by what the record
/// says: its session, its tools.
#[async_trait]
pub trait IRunResumer: Debug + Send + Sync {
    /// Plays the run to its end or its next pause.
    ///
    /// # Errors
    /// What ended the leg.
    async fn resume(&self, store: &Arc<dyn IRunStore>, run_id: &RunId) -> Result<AgentResponse>;
}

/// Resumes runs with a client whose stack has a function-invoking layer. Conversations come from the
/// journal.
#[derive(Clone, Debug)]
pub struct ClientResumer {
    client: Arc<dyn IChatClient>,
    options: ChatClientRunOptions,
}

impl ClientResumer {
    /// One for this client.
    pub fn new(client: Arc<dyn IChatClient>) -> Self {
        Self {
            client,
            options: ChatClientRunOptions::new(),
        }
    }

    /// Sets the options of its legs: they are given again on resume (contract I5).
    pub fn with_options(mut self, options: ChatClientRunOptions) -> Self {
        self.options = options;
        self
    }
}

#[async_trait]
impl IRunResumer for ClientResumer {
    async fn resume(&self, store: &Arc<dyn IRunStore>, run_id: &RunId) -> Result<AgentResponse> {
        let options = named(&self.options, store, run_id);
        self.client.get_response(&[], options).await
    }
}

/// Resumes runs with an agent. What a run of a session adds is written to that session, and two runs of
/// one session are never in flight at once: the second one waits or is refused, as the agent's
/// configuration says.
#[derive(Clone, Debug)]
pub struct AgentResumer {
    agent: AgentRuntime,
    sessions: Arc<dyn ISessionStore>,
    options: ChatClientRunOptions,
}

impl AgentResumer {
    /// One for this agent, with the store of its sessions.
    pub fn new(agent: AgentRuntime, sessions: Arc<dyn ISessionStore>) -> Self {
        Self {
            agent,
            sessions,
            options: ChatClientRunOptions::new(),
        }
    }

    /// Sets the options of its legs; they win over those of the agent.
    pub fn with_options(mut self, options: ChatClientRunOptions) -> Self {
        self.options = options;
        self
    }
}

#[async_trait]
impl IRunResumer for AgentResumer {
    async fn resume(&self, store: &Arc<dyn IRunStore>, run_id: &RunId) -> Result<AgentResponse> {
        let record = store.load(run_id).await?;
        let session = record.and_then(|record| record.session_id);
        let request = AgentRequest::default().with_options(named(&self.options, store, run_id));
        match session {
            Some(id) => {
                let session = Session::new(Arc::clone(&self.sessions), id);
                self.agent.ask(request.in_session(session)).await
            }
            None => self.agent.ask(request).await,
        }
    }
}

fn named(
    options: &ChatClientRunOptions,
    store: &Arc<dyn IRunStore>,
    run_id: &RunId,
) -> ChatClientRunOptions {
    options
        .clone()
        .with_run_store(Arc::clone(store))
        .with_run_id(run_id.clone())
}
