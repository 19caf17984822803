//! The state of one leg, and the one way out for its updates: everything that is emitted is folded
//! into the transcript first, so that the caller's fold and the loop's cannot differ (contract B2).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use raf_core::{
    AbandonedCall, AgentResponseUpdate, ApprovalRequest, Cancellation, ChatClientRunOptions,
    ChatMessage, Emitter, Error, Finish, FinishReason, IRunStore, LegSnapshot, MessageRole,
    MessageStatus, Occurrence, PausedRun, PendingCall, ResponseFold, RoundUsage, RunClaim, RunId,
    RunRecord, ToolCall, ToolResult, TrustLabel, Usage, is_valid_history, normalise,
};
use raf_tools::{NestedReport, OpenBatch, SettledCall, ToolSet};
use tokio::time::Instant;

use super::durable::{Held, InHand};
use super::inbox::MessageInbox;
use super::options::{AskedBy, FunctionInvokingOptions};
use super::outer_run::{Allowance, DurableRun, NestedIn};
use super::request_context::RequestContext;
use super::run::{Run, Stop};
use super::steps::{Kept, Steps};

/// One leg in flight.
pub(super) struct Leg {
    pub(super) run: Run,
    pub(super) options: ChatClientRunOptions,
    pub(super) store: Arc<dyn IRunStore>,
    /// The same as it was given: what is in hand is found by it.
    given: Arc<dyn IRunStore>,
    /// This leg's hold on its run; it dies with the leg.
    pub(super) claim: RunClaim,
    /// What keeps its steps, if anything does.
    pub(super) steps: Option<Box<Steps>>,
    /// The run around this one whose claim and journals it uses, if it is nested in a durable run.
    pub(super) root: Option<RunId>,
    /// The calls of the present round, and where each stands.
    pub(super) open: Option<OpenBatch>,
    /// The record from which a step restored the run, where the run has none of its own yet.
    pub(super) restorable: Option<Box<RunRecord>>,
    /// The tools of the present round.
    pub(super) tools: Option<ToolSet>,
    /// Results of the open batch that an earlier leg came to and nobody was shown.
    pub(super) unshown: Vec<(Occurrence, ToolResult)>,
    /// Requests that are made and not announced: their record comes first.
    pub(super) unannounced: Vec<ApprovalRequest>,
    /// Who writes the record of the run, where a host replays its steps.
    pub(super) writer: Option<String>,
    /// Why the request of this leg failed.
    pub(super) error: Option<Error>,
    /// What signs of life are given for.
    pub(super) held: Held,
    /// What could not be saved, for the next leg to save first.
    pub(super) in_hand: Arc<InHand>,
    /// Whether the next request is the first of a turn of the user.
    pub(super) first_request: bool,
    /// Whether an empty reply was asked again.
    pub(super) nudged: bool,
    pub(super) pending: Vec<PendingCall>,
    pub(super) abandoned: Vec<AbandonedCall>,
    /// What stands in the requests beside the transcript.
    pub(super) context: Option<Arc<RequestContext>>,
    /// The agent that asks people, by its name.
    pub(super) asked_by: Option<String>,
    inbox: Option<Arc<MessageInbox>>,
    /// Set if the run is nested in a call of another one.
    nested: Option<Arc<NestedIn>>,
    input: Vec<ChatMessage>,
    fold: ResponseFold,
    out: Emitter<AgentResponseUpdate>,
    usage: Usage,
    started: Instant,
    deadline: Option<Instant>,
}

impl Leg {
    pub(super) fn new(
        input: Vec<ChatMessage>,
        options: Box<ChatClientRunOptions>,
        store: Arc<dyn IRunStore>,
        out: Emitter<AgentResponseUpdate>,
    ) -> Self {
        // Unboxed here: the box would live as long as a stream that takes it apart.
        let mut options = *options;
        // They are this run's alone: nothing that it calls may see them.
        let context = options.extensions.remove::<RequestContext>();
        let inbox = options.extensions.remove::<MessageInbox>();
        let nested = options.extensions.remove::<NestedIn>();
        let asked_by = options.extensions.remove::<AskedBy>();
        let mut run = Run::new();
        if let Some(nested) = &nested {
            run.id = nested.run_id.clone();
        }
        let started = Instant::now();
        Self {
            root: nested
                .as_ref()
                .and_then(|nested| Some(nested.durable.as_ref()?.root.clone())),
            run,
            nested,
            deadline: options
                .deadline
                .and_then(|deadline| started.checked_add(deadline)),
            options,
            given: Arc::clone(&store),
            store,
            claim: RunClaim::new(),
            steps: None,
            open: None,
            restorable: None,
            tools: None,
            unshown: Vec::new(),
            unannounced: Vec::new(),
            writer: None,
            error: None,
            held: Held::default(),
            in_hand: Arc::default(),
            first_request: true,
            nudged: false,
            pending: Vec::new(),
            abandoned: Vec::new(),
            context,
            asked_by: asked_by.map(|asked_by| asked_by.0.clone()),
            inbox,
            input,
            fold: ResponseFold::new(),
            out,
            usage: Usage::default(),
            started,
        }
    }

    /// Folds an update into the transcript, then hands it to the consumer.
    pub(super) fn emit(
        &mut self,
        update: AgentResponseUpdate,
    ) -> impl Future<Output = ()> + Send + use<'_> {
        self.fold.push(&update);
        self.out.emit(update)
    }

    /// Emits the outcome of a call that is settled without a body.
    pub(super) fn settle(
        &mut self,
        settled: SettledCall,
    ) -> impl Future<Output = ()> + Send + use<'_> {
        self.emit(AgentResponseUpdate::ToolCalled {
            occurrence: settled.occurrence,
            result: settled.result,
        })
    }

    /// Ends the open message, if there is one.
    pub(super) async fn close_message(&mut self, status: MessageStatus) {
        if self.fold.is_message_open() {
            self.emit(AgentResponseUpdate::MessageEnd { status }).await;
        }
    }

    pub(super) fn is_message_open(&self) -> bool {
        self.fold.is_message_open()
    }

    /// Whether the run is kept step by step in its store.
    pub(super) fn is_durable(&self) -> bool {
        self.steps
            .as_ref()
            .is_some_and(|steps| steps.durable.is_some())
    }

    /// How far the leg is kept, and the messages that it added.
    pub(super) fn kept(&mut self) -> Option<(&mut Kept, &[ChatMessage])> {
        let steps = self.steps.as_mut()?;
        Some((&mut steps.kept, self.fold.messages()))
    }

    /// The calls that the last reply asks for.
    pub(super) fn calls_of_reply(&self) -> Vec<ToolCall> {
        let messages = self.fold.messages().iter();
        let reply = messages
            .rev()
            .find(|message| message.role() == MessageRole::Assistant);
        reply
            .into_iter()
            .flat_map(ChatMessage::tool_calls)
            .cloned()
            .collect()
    }

    /// The round of the last request.
    pub(super) fn round_of_reply(&self) -> u32 {
        self.run.counters.rounds.saturating_sub(1)
    }

    /// The round of the open batch.
    pub(super) fn open_round(&self) -> u32 {
        let record = self.restorable.as_deref().or(self.run.record.as_deref());
        let recorded = record.map_or(0, |record| record.round);
        self.open.as_ref().map_or(recorded, OpenBatch::round)
    }

    /// The tokens that this leg has used.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Sets the tokens that this leg has used, where a step is restored.
    pub(super) fn set_usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// The caller's messages.
    pub(super) fn input(&self) -> &[ChatMessage] {
        &self.input
    }

    /// Sets the caller's messages, where the journal has them and the caller gave none.
    pub(super) fn set_input(&mut self, input: Vec<ChatMessage>) {
        self.input = input;
    }

    /// The transcript: the caller's messages, then what this leg added.
    pub(super) fn transcript(&self) -> Vec<ChatMessage> {
        let new = self.fold.messages();
        let mut transcript = Vec::with_capacity(self.input.len() + new.len());
        transcript.extend_from_slice(&self.input);
        transcript.extend_from_slice(new);
        transcript
    }

    /// What the next request sends: the context, then the transcript, made valid.
    pub(super) fn request_messages(&self) -> Vec<ChatMessage> {
        let new = self.fold.messages();
        let front = self
            .context
            .as_ref()
            .map_or(&[][..], |context| &context.front);
        let mut messages = Vec::with_capacity(front.len() + self.input.len() + new.len());
        messages.extend_from_slice(front);
        messages.extend_from_slice(&self.input);
        messages.extend_from_slice(new);
        if is_valid_history(&messages) {
            return messages;
        }
        normalise(&messages)
    }

    /// Whether messages have come in.
    pub(super) fn has_mail(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty())
    }

    /// Takes the messages that have come in.
    pub(super) fn take_mail(&self) -> Vec<ChatMessage> {
        let inbox = self.inbox.as_ref();
        inbox.map(|inbox| inbox.drain()).unwrap_or_default()
    }

    /// The messages that this leg added.
    pub(super) fn new_messages(&self) -> &[ChatMessage] {
        self.fold.messages()
    }

    /// Whether the context holds text that nobody vouches for.
    pub(super) fn has_untrusted_text(&self) -> bool {
        let messages = self.input.iter().chain(self.fold.messages());
        messages
            .flat_map(ChatMessage::tool_results)
            .any(|result| result.trust() == TrustLabel::Untrusted)
    }

    /// Counts the tokens of a request, whatever became of it.
    pub(super) fn count_usage(&mut self, round: u32, usage: Option<Usage>) {
        let usage = usage.unwrap_or_default();
        self.usage += &usage;
        self.run.usage += &usage;
        self.run.rounds.push(RoundUsage::own(round, usage));
    }

    /// The run that this one is nested in.
    pub(super) fn parent_run_id(&self) -> Option<&RunId> {
        self.nested.as_ref().map(|nested| &nested.parent)
    }

    /// The outermost run, for what is nested in this one, and for what is in hand.
    pub(super) fn durable_run(&self) -> DurableRun {
        let outermost = self
            .nested
            .as_ref()
            .and_then(|nested| nested.durable.clone());
        outermost.unwrap_or_else(|| DurableRun {
            root: self.run.id.clone(),
            store: Arc::clone(&self.given),
            claim: self.claim.watch(),
        })
    }

    /// What the runs around this one allow it.
    pub(super) fn allowance(&self) -> Option<&Arc<Allowance>> {
        self.nested.as_ref().map(|nested| &nested.allowance)
    }

    /// Counts what a nested run has used (contract B6, F5).
    pub(super) fn count_nested(&mut self, report: NestedReport) {
        for round in report.rounds {
            self.usage += &round.usage;
            self.run.usage += &round.usage;
            self.run.rounds.push(round);
        }
        self.run.counters.add_nested_calls(report.calls);
    }

    /// How long the run has worked, pauses not counted.
    pub(super) fn worked_for(&self) -> Duration {
        self.run.worked + self.started.elapsed()
    }

    /// Whether the run, or one around it, has worked for as long as it may.
    pub(super) fn is_out_of_time(&self, options: &FunctionInvokingOptions) -> bool {
        options
            .max_wall_time
            .is_some_and(|limit| self.worked_for() >= limit)
            || self
                .allowance()
                .is_some_and(|allowance| allowance.is_out_of_time())
    }

    /// What says stop, if anything does.
    pub(super) fn stop(&self) -> Option<Stop> {
        if self.options.cancellation.is_cancelled() {
            Some(Stop::Cancelled)
        } else if self
            .deadline
            .is_some_and(|deadline| deadline <= Instant::now())
        {
            Some(Stop::Deadline)
        } else {
            None
        }
    }

    /// When it ends, whatever it does.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Completes when something says stop. Borrows nothing of the leg.
    pub(super) fn stopped(&self) -> impl Future<Output = Stop> + Send + use<> {
        stopped(self.options.cancellation.clone(), self.deadline)
    }

    /// The terminal item of a leg that ends well.
    pub(super) fn finish(
        &mut self,
        reason: FinishReason,
        paused: Option<PausedRun>,
    ) -> impl Future<Output = ()> + Send + use<'_> {
        let mut finish = Finish::new(reason).with_usage(self.usage.clone());
        finish.run_id = Some(self.run.id.clone());
        finish.run_usage.clone_from(&self.run.usage);
        finish.rounds.clone_from(&self.run.rounds);
        finish.pending.clone_from(&self.pending);
        finish.abandoned.clone_from(&self.abandoned);
        finish.paused_run = paused;
        self.emit(AgentResponseUpdate::finish(finish))
    }

    /// A failure with everything that the leg had done: transcript, usage, open calls.
    pub(super) fn failure(&self, error: Error) -> Error {
        let mut leg = LegSnapshot::default();
        leg.messages = self.fold.messages().to_vec();
        leg.run_id = Some(self.run.id.clone());
        leg.usage.clone_from(&self.usage);
        leg.run_usage.clone_from(&self.run.usage);
        leg.rounds.clone_from(&self.run.rounds);
        leg.pending.clone_from(&self.pending);
        leg.abandoned.clone_from(&self.abandoned);
        error.with_leg(leg)
    }
}

/// Completes when token, flag or deadline says stop.
pub(super) async fn stopped(cancellation: Cancellation, deadline: Option<Instant>) -> Stop {
    // Boxed: most runs have no deadline.
    let late: BoxFuture<'_, ()> = match deadline {
        Some(deadline) => Box::pin(tokio::time::sleep_until(deadline)),
        None => Box::pin(std::future::pending()),
    };
    tokio::select! {
        biased;
        () = raf_tools::cancelled(&cancellation) => Stop::Cancelled,
        () = late => Stop::Deadline,
    }
}
