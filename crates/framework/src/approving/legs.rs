//! The legs below as one stream: forward, ask, resume, until nothing can be settled.

use std::collections::HashSet;

use futures::StreamExt;
use raf_core::{
    AbandonedCall, AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Emitter, Error,
    ErrorKind, Finish, FinishReason, LegSnapshot, MessageStatus, PendingCall, ResponseFold, Result,
    ToolApprovalResponse, UpdateStream, Usage, WaitsFor,
};
use tokio::time::Instant;

use super::ApprovingChatClient;
use super::ask::{ask_all, request_id};

/// One leg of the caller: any number of legs below.
pub(super) struct Legs {
    client: ApprovingChatClient,
    input: Vec<ChatMessage>,
    options: ChatClientRunOptions,
    out: Emitter<AgentResponseUpdate>,
    /// What the consumer's fold comes to.
    fold: ResponseFold,
    /// Announcements that are hidden if they are settled.
    held: Vec<AgentResponseUpdate>,
    /// The requests that the handler was asked about.
    asked: HashSet<String>,
    /// The last pause that was settled; unset in the first leg.
    settled: Option<Box<Finish>>,
    /// Usage and abandoned bodies of the legs that ended in it and before.
    usage: Usage,
    abandoned: Vec<AbandonedCall>,
    deadline: Option<Instant>,
}

impl Legs {
    pub(super) fn new(
        client: ApprovingChatClient,
        input: Vec<ChatMessage>,
        options: ChatClientRunOptions,
        out: Emitter<AgentResponseUpdate>,
    ) -> Self {
        Self {
            client,
            input,
            deadline: options
                .deadline
                .and_then(|deadline| Instant::now().checked_add(deadline)),
            options,
            out,
            fold: ResponseFold::new(),
            held: Vec::new(),
            asked: HashSet::new(),
            settled: None,
            usage: Usage::default(),
            abandoned: Vec::new(),
        }
    }

    /// Drives the legs to the one terminal item.
    pub(super) async fn drive(mut self, first: UpdateStream) -> Result<()> {
        let mut updates = first;
        let mut resumes_left = self.client.max_resumes;
        loop {
            let finish = match self.forward(updates).await {
                Ok(Some(finish)) => finish,
                // Cut: it stays without its end above, too.
                Ok(None) => return Ok(()),
                Err(error) => return self.fail(error).await,
            };
            let answers = match self.answers(&finish, resumes_left).await {
                Ok(answers) => answers,
                Err(error) => return self.stop(error, *finish).await,
            };
            if answers.is_empty() {
                return self.finish(*finish).await;
            }
            resumes_left = resumes_left.saturating_sub(1);
            let options = self.settle(finish, answers);
            let conversation = self.conversation();
            updates = match self.client.inner.run(&conversation, options).await {
                Ok(updates) => updates,
                Err(error) => return self.fail(error).await,
            };
        }
    }

    /// Hands on the updates of a leg until its end.
    async fn forward(&mut self, mut updates: UpdateStream) -> Result<Option<Box<Finish>>> {
        while let Some(update) = updates.next().await {
            match update? {
                AgentResponseUpdate::Finish { finish } => return Ok(Some(finish)),
                announced @ (AgentResponseUpdate::ToolApprovalRequest { .. }
                | AgentResponseUpdate::ToolInterrupted { .. })
                    if self.client.hide_settled =>
                {
                    self.held.push(announced);
                }
                update => self.emit(update).await,
            }
        }
        Ok(None)
    }

    async fn emit(&mut self, update: AgentResponseUpdate) {
        self.fold.push(&update);
        self.out.emit(update).await;
    }

    /// What the handler says of the calls that wait; nothing if the leg did not pause.
    ///
    /// # Errors
    /// That the run was cancelled while the handler waited.
    async fn answers(
        &mut self,
        finish: &Finish,
        resumes_left: u32,
    ) -> Result<Vec<ToolApprovalResponse>> {
        if !finish.reason.is_pause() {
            return Ok(Vec::new());
        }
        let asked = &mut self.asked;
        let mut new = finish.pending.clone();
        new.retain(|pending| request_id(pending).is_some_and(|id| asked.insert(id.to_owned())));
        if new.is_empty() {
            return Ok(Vec::new());
        }
        if resumes_left == 0 {
            tracing::warn!(
                resumes = self.client.max_resumes,
                "the limit of resumes is reached: what waits passes through"
            );
            return Ok(Vec::new());
        }
        let handler = &*self.client.handler;
        let late = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = raf_tools::cancelled(&self.options.cancellation) => {
                Err(Error::new(ErrorKind::Cancelled, "the run was cancelled"))
            }
            () = late => Ok(Vec::new()),
            answers = ask_all(handler, new, self.client.questions_at_once) => Ok(answers),
        }
    }

    /// Notes a pause that is answered; the options of the leg that goes on with it.
    fn settle(
        &mut self,
        finish: Box<Finish>,
        answers: Vec<ToolApprovalResponse>,
    ) -> ChatClientRunOptions {
        self.usage += &finish.usage;
        self.abandoned.extend_from_slice(&finish.abandoned);
        let mut options = self.options.clone().with_tool_approval_responses(answers);
        options.paused_run.clone_from(&finish.paused_run);
        options.deadline = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
            .or(options.deadline);
        // The next leg finds its record by the mark that the fold leaves in the message.
        let pause = AgentResponseUpdate::Finish { finish };
        self.fold.push(&pause);
        if let AgentResponseUpdate::Finish { finish } = pause {
            self.settled = Some(finish);
        }
        options
    }

    fn conversation(&self) -> Vec<ChatMessage> {
        let new = self.fold.messages();
        let mut conversation = Vec::with_capacity(self.input.len() + new.len());
        conversation.extend_from_slice(&self.input);
        conversation.extend_from_slice(new);
        conversation
    }

    /// Announces what was held back and still waits.
    async fn release_held(&mut self, pending: &[PendingCall]) {
        for announced in std::mem::take(&mut self.held) {
            let id = match &announced {
                AgentResponseUpdate::ToolApprovalRequest { request } => &request.request_id,
                AgentResponseUpdate::ToolInterrupted { interrupt, .. } => &interrupt.request_id,
                _ => continue,
            };
            if pending.iter().any(|call| request_id(call) == Some(id)) {
                self.emit(announced).await;
            }
        }
    }

    /// The terminal item of legs that end well, or wait.
    async fn finish(mut self, mut finish: Finish) -> Result<()> {
        self.release_held(&finish.pending).await;
        if self.settled.is_some() {
            self.usage += &finish.usage;
            finish.usage = self.usage.clone();
            self.abandoned.append(&mut finish.abandoned);
            finish.abandoned = std::mem::take(&mut self.abandoned);
        }
        self.emit(AgentResponseUpdate::finish(finish)).await;
        Ok(())
    }

    /// The end of a leg that failed. Answers that were refused leave the pause as it was.
    async fn fail(mut self, mut error: Error) -> Result<()> {
        let mut leg = error.take_leg();
        let pending = leg.as_ref().map_or(&[][..], |leg| &leg.pending);
        self.release_held(pending).await;
        let Some(pause) = self.settled.take() else {
            return Err(match leg.take() {
                Some(leg) => error.with_leg(leg),
                None => error,
            });
        };
        let mut leg = leg.unwrap_or_default();
        if error.kind() == ErrorKind::ApprovalRefused && !leg.pending.is_empty() {
            tracing::warn!(%error, "an answer of the approval handler was refused: the call waits");
            let decides = |waits_for: &WaitsFor| !matches!(waits_for, WaitsFor::ToolResult);
            let mut pause = *pause;
            pause.reason = if leg.pending.iter().any(|call| decides(&call.waits_for)) {
                FinishReason::AwaitingApproval
            } else {
                FinishReason::AwaitingToolResults
            };
            pause.pending = leg.pending;
            pause.usage = leg.usage;
            pause.abandoned = leg.abandoned;
            self.settled = Some(Box::new(pause.clone()));
            return self.finish(pause).await;
        }
        if leg.run_id.is_none() {
            leg.run_id.clone_from(&pause.run_id);
            leg.run_usage.clone_from(&pause.run_usage);
            leg.rounds.clone_from(&pause.rounds);
        }
        Err(error.with_leg(self.snapshot(leg)))
    }

    /// The end while the handler waited: what waits stays open.
    async fn stop(mut self, error: Error, pause: Finish) -> Result<()> {
        self.release_held(&pause.pending).await;
        let mut leg = LegSnapshot::default();
        leg.run_id = pause.run_id;
        leg.usage = pause.usage;
        leg.run_usage = pause.run_usage;
        leg.rounds = pause.rounds;
        leg.pending = pause.pending;
        leg.abandoned = pause.abandoned;
        Err(error.with_leg(self.snapshot(leg)))
    }

    /// What all legs had done, of what the last one had.
    fn snapshot(&mut self, mut last: LegSnapshot) -> LegSnapshot {
        if self.fold.is_message_open() {
            self.fold.push(&AgentResponseUpdate::MessageEnd {
                status: MessageStatus::Incomplete,
            });
        }
        last.messages = self.fold.messages().to_vec();
        self.usage += &last.usage;
        last.usage = self.usage.clone();
        self.abandoned.append(&mut last.abandoned);
        last.abandoned = std::mem::take(&mut self.abandoned);
        last
    }
}
