//! The conversation of a run: read from its session, written to it message by message.

use std::sync::Arc;

use raf_core::{
    AgentResponse, AgentResponseUpdate, BusyPolicy, ChatClientRunOptions, ChatMessage, Error,
    ErrorKind, Finish, IChatClient, ISession, ResponseFold, Result, SessionChange, SessionLease,
    SessionView, UpdateStream, WriteOutcome,
};

use crate::function_invoking::RunStoreOptionsExt;

/// A conversation that legs are played in, one after another.
pub(super) struct Conversation {
    client: Arc<dyn IChatClient>,
    messages: Vec<ChatMessage>,
    session: Option<OpenSession>,
    fold: ResponseFold,
}

/// A session that this run alone writes to.
struct OpenSession {
    session: Arc<dyn ISession>,
    _lease: SessionLease,
    revision: u64,
    paused_run: Option<raf_core::PausedRun>,
}

impl Conversation {
    /// Opens the session, if there is one.
    ///
    /// # Errors
    /// A busy session, a failing store.
    pub(super) async fn open(
        client: Arc<dyn IChatClient>,
        session: Option<Arc<dyn ISession>>,
        policy: BusyPolicy,
        view: SessionView,
    ) -> Result<Self> {
        let mut conversation = Self {
            client,
            messages: Vec::new(),
            session: None,
            fold: ResponseFold::new(),
        };
        if let Some(session) = session {
            let lease = session.lease(policy).await?;
            let record = session.load().await?;
            conversation.messages = view.of(&record.transcript());
            conversation.session = Some(OpenSession {
                session,
                _lease: lease,
                revision: record.revision,
                paused_run: record.paused_run,
            });
        }
        Ok(conversation)
    }

    /// Begins a leg with new messages: they are kept before anything is asked.
    ///
    /// # Errors
    /// A failing store, or what the client refuses the request with.
    pub(super) async fn begin(
        &mut self,
        new: Vec<ChatMessage>,
        mut options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        self.messages.extend_from_slice(&new);
        if self.messages.is_empty() && options.run_id().is_none() {
            return Err(Error::misuse(
                "there is nothing to answer: give a message with the request, or a session that \
                 holds one",
            ));
        }
        if let Some(open) = &mut self.session {
            options.session_id = Some(open.session.id().to_owned());
            if options.paused_run.is_none() {
                options.paused_run.clone_from(&open.paused_run);
            }
            if !new.is_empty() {
                open.write(SessionChange::messages(new)).await?;
            }
        }
        self.client.run(&self.messages, options).await
    }

    /// Keeps what an update adds, before anybody sees it: an assistant message before its tools start,
    /// each result when it happens.
    ///
    /// # Errors
    /// A failing store, with what the leg had done.
    pub(super) async fn keep(&mut self, update: &AgentResponseUpdate) -> Result<()> {
        let before = self.fold.messages().len();
        self.fold.push(update);
        let Some(open) = &mut self.session else {
            return Ok(());
        };
        let change = match update {
            AgentResponseUpdate::ToolCalled { result, .. } => {
                SessionChange::messages([ChatMessage::tool(result.clone())])
            }
            AgentResponseUpdate::Finish { finish } => open.end_of_leg(finish),
            _ if self.fold.messages().len() > before => {
                SessionChange::messages(self.fold.messages()[before..].iter().cloned())
            }
            _ => return Ok(()),
        };
        match open.write(change).await {
            Ok(()) => Ok(()),
            Err(error) => Err(std::mem::take(&mut self.fold).fail(error)),
        }
    }

    /// The response of the leg that has ended; what it said stays part of the conversation.
    ///
    /// # Errors
    /// A leg without its terminal item.
    pub(super) fn response(&mut self) -> Result<AgentResponse> {
        let response = std::mem::take(&mut self.fold).finish()?;
        self.messages.extend_from_slice(&response.messages);
        Ok(response)
    }

    /// Keeps that a leg failed, and gives its error with what it had done.
    pub(super) async fn failed(&mut self, error: Error) -> Error {
        let error = std::mem::take(&mut self.fold).fail(error);
        let waits = error.leg().is_some_and(|leg| !leg.pending.is_empty());
        if let Some(open) = &mut self.session
            && !waits
            && open.paused_run.is_some()
            && !matches!(
                error.kind(),
                ErrorKind::BusySession | ErrorKind::Store | ErrorKind::Misuse
            )
        {
            open.paused_run = None;
            let change = SessionChange::default().with_paused_run(None);
            if let Err(second) = open.write(change).await {
                tracing::warn!(error = %second, "the end of a failed run could not be kept");
            }
        }
        error
    }
}

impl OpenSession {
    /// What the end of a leg changes: which run waits.
    fn end_of_leg(&mut self, finish: &Finish) -> SessionChange {
        self.paused_run.clone_from(&finish.paused_run);
        SessionChange::default().with_paused_run(finish.paused_run.clone())
    }

    async fn write(&mut self, change: SessionChange) -> Result<()> {
        match self.session.write(self.revision, change).await? {
            WriteOutcome::Written(revision) => {
                self.revision = revision;
                Ok(())
            }
            WriteOutcome::Conflict | WriteOutcome::ClaimLost => Err(Error::new(
                ErrorKind::BusySession,
                "the session was changed by somebody who does not hold its lease: ask again",
            )
            .with_context("session", self.session.id())),
        }
    }
}
