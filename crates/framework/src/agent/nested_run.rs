//! A run nested in a call: begun or resumed, its updates passed on, its use reported, its end turned into
//! that of the call.

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Error, ErrorKind,
    ErrorNotice, FinishReason, IChatClient, IRunStore, InMemoryRunStore, NestedRun as NestedRunTag,
    NestedUpdate, PausedRun, PendingCall, ResponseFold, RoundUsage, RunId, ToolApprovalResponse,
    WaitsFor,
};
use raf_tools::{NestedReport, ToolContext, ToolError, ToolOptionsExt, ToolOutput};
use serde::{Deserialize, Serialize};

use super::nested_store::NestedRunStore;
use crate::function_invoking::{Allowance, NestedIn, OuterRun, RunStoreOptionsExt, is_unkept};

/// What a nested run that waits leaves behind in the record of the run around it.
#[derive(Serialize, Deserialize)]
struct Waiting {
    /// Its conversation.
    messages: Vec<ChatMessage>,
    /// Its record.
    paused_run: PausedRun,
    /// How many of its rounds were reported.
    reported_rounds: usize,
}

/// One entry of the body of an agent's tool.
pub(super) struct NestedRun {
    context: ToolContext,
    run_id: RunId,
    messages: Vec<ChatMessage>,
    options: ChatClientRunOptions,
    allowance: Arc<Allowance>,
    /// Whether it has a journal within that of the run around it.
    is_durable: bool,
    /// Set if it was waiting.
    waited: Option<PausedRun>,
    reported_rounds: usize,
    fold: ResponseFold,
}

impl NestedRun {
    /// A run that does a task, or goes on where it waited.
    ///
    /// # Errors
    /// State that this version cannot read.
    pub(super) fn begin(
        context: ToolContext,
        task: &str,
        options: ChatClientRunOptions,
    ) -> Result<Self, ToolError> {
        // The address of the call, so that addresses within lie below it.
        let address = format!("{}/{}", context.idempotency_key(), context.tool_name());
        let run_id = RunId::from(address);
        let outer = context.extensions().get::<OuterRun>();
        let allowance = outer.as_ref().map(|outer| Arc::clone(&outer.allowance));
        let allowance = Arc::new(Allowance::counting(allowance));
        let mut run = Self {
            options: options_within(&context, options, &run_id, &allowance, outer.as_deref()),
            messages: vec![ChatMessage::user(task)],
            is_durable: outer.as_ref().is_some_and(|outer| outer.durable.is_some()),
            waited: None,
            reported_rounds: 0,
            fold: ResponseFold::new(),
            run_id,
            allowance,
            context,
        };
        if let Some(resumption) = run.context.resumption() {
            let unreadable = |error| {
                ToolError::execution_failed("a nested run that waited cannot be read")
                    .with_source(error)
            };
            let waiting = Waiting::deserialize(&resumption.state).map_err(unreadable)?;
            let answers = Vec::<ToolApprovalResponse>::deserialize(&resumption.data);
            run.options.tool_approval_responses = answers.map_err(unreadable)?;
            run.options.paused_run = Some(waiting.paused_run.clone());
            run.waited = Some(waiting.paused_run);
            run.messages = waiting.messages;
            run.reported_rounds = waiting.reported_rounds;
        }
        Ok(run)
    }

    /// Plays the run to the end of its leg.
    ///
    /// # Errors
    /// What the run ended with if it has no answer; an interrupt if it waits.
    pub(super) async fn play(mut self, client: &dyn IChatClient) -> Result<ToolOutput, ToolError> {
        let options = std::mem::take(&mut self.options);
        let mut updates = match client.run(&self.messages, options).await {
            Ok(updates) => updates,
            Err(error) => return Err(self.failed(error)),
        };
        while let Some(update) = updates.next().await {
            match update {
                Ok(AgentResponseUpdate::Finish { finish }) => {
                    if finish.rounds.is_empty() {
                        self.report_unfinished(finish.usage.clone());
                    } else {
                        self.report(&finish.rounds);
                    }
                    self.fold.push(&AgentResponseUpdate::Finish {
                        finish: finish.clone(),
                    });
                    let mut shown = finish;
                    shown.paused_run = None;
                    self.say(AgentResponseUpdate::Finish { finish: shown });
                    let fold = std::mem::take(&mut self.fold);
                    return match fold.finish() {
                        Ok(response) => self.ended(response),
                        Err(error) => Err(self.failed(error)),
                    };
                }
                Ok(update) => {
                    self.fold.push(&update);
                    self.say(update);
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        let error = Error::new(
            ErrorKind::TruncatedStream,
            "the stream of a nested run ended without its terminal item",
        );
        Err(self.failed(error))
    }

    /// Passes an update on.
    fn say(&self, update: AgentResponseUpdate) {
        self.context.nested(NestedUpdate {
            run_id: self.run_id.clone(),
            update,
        });
    }

    /// Reports what is new of the run's use, once.
    fn report(&mut self, rounds: &[RoundUsage]) {
        let call = self.context.occurrence();
        let new = rounds.get(self.reported_rounds..).unwrap_or_default();
        let rounds = new
            .iter()
            .map(|round| {
                if round.nested.is_some() {
                    return round.clone();
                }
                let run_id = self.run_id.clone();
                RoundUsage::nested(
                    round.round,
                    round.usage.clone(),
                    NestedRunTag { run_id, call },
                )
            })
            .collect();
        let calls = self.allowance.taken();
        self.context.report_nested(NestedReport::new(rounds, calls));
        self.reported_rounds += new.len();
        self.allowance = Arc::new(Allowance::counting(None));
    }

    /// What the end of the run means for the call.
    fn ended(mut self, response: AgentResponse) -> Result<ToolOutput, ToolError> {
        let text = response.text();
        match response.finish_reason {
            FinishReason::Stop => Ok(ToolOutput::Text(text)),
            FinishReason::AwaitingApproval | FinishReason::AwaitingToolResults => {
                self.messages.extend(response.messages);
                self.wait(response.pending, response.paused_run)
            }
            reason => {
                let mut told = format!("The agent ended without an answer: {reason:?}.");
                if !text.is_empty() {
                    told = format!("{told} It had said: {text}");
                }
                Err(ToolError::tell_model(told))
            }
        }
    }

    /// The run waits, and so does the call.
    fn wait(
        &self,
        pending: Vec<PendingCall>,
        paused_run: Option<PausedRun>,
    ) -> Result<ToolOutput, ToolError> {
        let for_results = pending
            .iter()
            .any(|call| matches!(call.waits_for, WaitsFor::ToolResult));
        let Some(paused_run) = paused_run.filter(|_| !for_results) else {
            return Err(ToolError::execution_failed(
                "a nested agent waits for results of declared-only tools, which nobody can give it: \
                 give its tools bodies",
            ));
        };
        let pending = pending
            .into_iter()
            .filter(|call| call.request_id().is_some())
            .map(|call| PendingCall::new(self.context.occurrence(), call.call, call.waits_for))
            .collect();
        let state = serde_json::to_value(Waiting {
            messages: self.messages.clone(),
            paused_run,
            reported_rounds: self.reported_rounds,
        });
        match state {
            Ok(state) => Err(ToolError::interrupt_nested(pending, state)),
            Err(error) => Err(ToolError::execution_failed(
                "what a nested run waits for cannot be written down",
            )
            .with_source(error)),
        }
    }

    /// The run failed: one error of the call. Answers that were all refused leave it waiting; what keeps its
    /// journal having failed leaves it open, and the call in flight.
    fn failed(&mut self, error: Error) -> ToolError {
        let error = std::mem::take(&mut self.fold).fail(error);
        if let Some(leg) = error.leg() {
            if leg.rounds.is_empty() {
                self.report_unfinished(leg.usage.clone());
            } else {
                let rounds = leg.rounds.clone();
                self.report(&rounds);
            }
        }
        if error.kind() == ErrorKind::ApprovalRefused
            && let Some(waited) = self.waited.take()
            && let Err(waits) = self.wait(waited.pending(), Some(waited))
        {
            return waits;
        }
        // The loop of the run itself tells of its leg: what fails before it is the agent's own failure.
        let is_of_loop = error
            .leg()
            .is_some_and(|leg| leg.run_id.as_ref() == Some(&self.run_id));
        if self.is_durable && is_of_loop && is_unkept(&error) {
            return ToolError::left_open(error);
        }
        let notice = Box::new(ErrorNotice::from(&error));
        self.say(AgentResponseUpdate::Error { error: notice });
        match error.kind() {
            ErrorKind::Cancelled => ToolError::cancelled(),
            _ => ToolError::execution_failed("a nested agent failed").with_source(error),
        }
    }

    /// Reports tokens of a run that did not come to an end of its own.
    fn report_unfinished(&mut self, usage: raf_core::Usage) {
        let calls = self.allowance.taken();
        self.allowance = Arc::new(Allowance::counting(None));
        let round = u32::try_from(self.reported_rounds).unwrap_or(u32::MAX);
        let tag = NestedRunTag {
            run_id: self.run_id.clone(),
            call: self.context.occurrence(),
        };
        let mut rounds = Vec::new();
        if !usage.is_empty() {
            rounds.push(RoundUsage::nested(round, usage, tag));
        }
        self.context.report_nested(NestedReport::new(rounds, calls));
    }
}

impl Drop for NestedRun {
    /// A run that panicked or was given up has used something all the same.
    fn drop(&mut self) {
        let usage = self.fold.reported_usage();
        if !usage.is_empty() || self.allowance.taken() > 0 {
            self.report_unfinished(usage);
        }
    }
}

/// The options of a run within a call: what is passed down, and what belongs to the outer run alone.
fn options_within(
    context: &ToolContext,
    mut options: ChatClientRunOptions,
    run_id: &RunId,
    allowance: &Arc<Allowance>,
    outer: Option<&OuterRun>,
) -> ChatClientRunOptions {
    let mut extensions = context.extensions().clone();
    extensions.remove::<OuterRun>();
    let mut passed = ChatClientRunOptions::new();
    passed.extensions = extensions;
    passed = passed.without_provider_tools();
    passed.extensions.lay_over(&options.extensions);
    options.extensions = passed.extensions;
    let durable = outer.and_then(|outer| outer.durable.clone());
    options.extensions.insert(NestedIn {
        durable: durable.clone(),
        run_id: run_id.clone(),
        parent: context.run_id().clone(),
        allowance: Arc::clone(allowance),
    });
    options.session_id = outer.and_then(|outer| outer.session_id.clone());
    let rules: Arc<dyn IRunStore> = match outer {
        Some(outer) => Arc::clone(&outer.store),
        None => Arc::new(InMemoryRunStore::new()),
    };
    options
        .with_cancellation(context.cancellation().clone())
        .with_run_store(Arc::new(NestedRunStore::new(rules, durable)))
}
