//! Plays runs: those that a request begins, and those that a worker takes up. Whoever watches is told what
//! does not wait for the store.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, stream};
use raf_core::{
    AgentResponse, AgentResponseUpdate, CancellationToken, ChatClientRunOptions, ChatMessage,
    Error, IRunStore, ResponseFold, Result, RunId, Session, UpdateStream,
};
use raf_framework::{AgentRequest, AgentRuntime, IRunResumer, RunStoreOptionsExt};
use tokio::sync::{broadcast, mpsc};

use crate::settings::Stores;

/// An update of a run that is being played in this process.
pub(crate) type Live = (RunId, Arc<AgentResponseUpdate>);

/// A run that has begun: it is in the store.
pub(crate) struct Begun {
    run_id: RunId,
    updates: UpdateStream,
}

/// Plays runs with the agent.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    agent: AgentRuntime,
    stores: Stores,
    live: broadcast::Sender<Live>,
}

impl Player {
    pub(crate) fn new(agent: AgentRuntime, stores: Stores) -> Self {
        Self {
            agent,
            stores,
            // Who reads too slowly misses pieces of text, and gets the message from the store.
            live: broadcast::channel(256).0,
        }
    }

    /// What is played in this process from now on.
    pub(crate) fn watch(&self) -> broadcast::Receiver<Live> {
        self.live.subscribe()
    }

    /// Begins a run in a session. When this returns it is in the store, and survives the process.
    ///
    /// # Errors
    /// What ended it before it began: a busy session, a failing store, a model that cannot be reached.
    pub(crate) async fn begin(&self, session_id: &str, message: String) -> Result<Begun> {
        let run_id = RunId::random();
        let request = AgentRequest::new(ChatMessage::user(message));
        let mut updates = self.updates(request, &run_id, Some(session_id));
        // The first update comes behind the first write.
        let first = updates.next().await.ok_or_else(ended_early)??;
        let updates = stream::iter([Ok(first)]).chain(updates).boxed();
        Ok(Begun { run_id, updates })
    }

    /// Plays the runs that were begun, until there are no more or the token is cancelled; those in flight are
    /// then left to the next process.
    pub(crate) async fn play_begun(
        &self,
        mut begun: mpsc::Receiver<Begun>,
        stop: &CancellationToken,
    ) {
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
                Some(run) = begun.recv() => in_flight.push(async move {
                    if let Err(error) = self.play(&run.run_id, run.updates).await {
                        tracing::warn!(%error, run = %run.run_id, "the run failed");
                    }
                }),
                else => return,
            }
        }
    }

    async fn play(&self, run_id: &RunId, mut updates: UpdateStream) -> Result<AgentResponse> {
        let mut fold = ResponseFold::new();
        while let Some(update) = updates.next().await {
            match update {
                Ok(update) => {
                    fold.push(&update);
                    // Nobody may be watching.
                    let _ = self.live.send((run_id.clone(), Arc::new(update)));
                }
                Err(error) => return Err(fold.fail(error)),
            }
        }
        fold.finish()
    }

    fn updates(
        &self,
        request: AgentRequest,
        run_id: &RunId,
        session_id: Option<&str>,
    ) -> UpdateStream {
        let options = ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&self.stores.runs))
            .with_run_id(run_id.clone());
        let request = request.with_options(options);
        let request = match session_id {
            Some(id) => request.in_session(Session::new(Arc::clone(&self.stores.sessions), id)),
            None => request,
        };
        self.agent.run(request).boxed()
    }
}

/// A worker goes on with a run in the same way: with the agent, in the run's session.
#[async_trait]
impl IRunResumer for Player {
    async fn resume(&self, store: &Arc<dyn IRunStore>, run_id: &RunId) -> Result<AgentResponse> {
        let record = store.load(run_id).await?;
        let session_id = record.and_then(|record| record.session_id);
        let updates = self.updates(AgentRequest::default(), run_id, session_id.as_deref());
        self.play(run_id, updates).await
    }
}

impl Begun {
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }
}

fn ended_early() -> Error {
    Error::misuse("the run ended before it began")
}
