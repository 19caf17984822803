//! The executor: an assistant message with calls in, results out.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use raf_core::{
    ChatMessage, Emitter, Error, ErrorKind, MessageRole, Occurrence, PausedRun, RefusalReason,
    Result, RunId, RunRecord, Settlement, TerminationCause, ToolApprovalResponse, ToolCall,
    ToolOutcome, emit_stream,
};

use super::alone::{ExecuteOptions, Execution, ExecutionUpdate};
use super::batch::{Batch, BatchContext, BatchEvent, FinishedCall, QueuedCall};
use super::open_batch::{Applied, BatchCall, CallState, HoldPolicy, OpenBatch};
use super::options::{ExecutionMode, ExecutionOptions};
use super::permits::ToolPermits;
use super::prepare::{Preparation, SettledCall};
use super::runtime::check_runtime;
use crate::registry::ToolRegistry;
use crate::toolset::ToolSet;

/// Runs the calls of an assistant message: usable on its own, and the loop's only way to run a tool.
///
/// Cheap to clone; bounds per tool are shared by all clones.
#[derive(Clone, Debug)]
pub struct ToolExecutor {
    registry: ToolRegistry,
    options: Arc<ExecutionOptions>,
    permits: Arc<ToolPermits>,
}

impl ToolExecutor {
    /// An executor of a registry's tools, with default options.
    pub fn new(registry: ToolRegistry) -> Self {
        Self::with_options(registry, ExecutionOptions::default())
    }

    /// An executor with options of its own.
    pub fn with_options(registry: ToolRegistry, options: ExecutionOptions) -> Self {
        Self {
            registry,
            options: Arc::new(options),
            permits: Arc::default(),
        }
    }

    /// The same tools and bounds per tool, with calls run in this mode, so many at once.
    pub fn with_mode(&self, mode: ExecutionMode, max_concurrency: usize) -> Self {
        let options = ExecutionOptions::clone(&self.options)
            .with_mode(mode)
            .with_max_concurrency(max_concurrency);
        Self {
            options: Arc::new(options),
            ..self.clone()
        }
    }

    /// The registered tools.
    pub fn registry(&self) -> &ToolRegistry {
        &self.registry
    }

    /// Limits and policies.
    pub fn options(&self) -> &ExecutionOptions {
        &self.options
    }

    /// Runs all calls of an assistant message: the fold of [`ToolExecutor::stream`]. Gated calls,
    /// calls whose body asks the outside, and declared-only ones are pending.
    ///
    /// Dropping the future stops the bodies.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) if the message is not an assistant's, has
    /// no calls, or no tokio runtime with timers runs. What tools fail with is in the results.
    pub async fn execute(
        &self,
        message: &ChatMessage,
        options: ExecuteOptions,
    ) -> Result<Execution> {
        end_of(self.stream(message, options)?).await
    }

    /// Runs all calls of an assistant message and says what happens as it happens: starts,
    /// progress, outcomes in order of completion, then the end.
    ///
    /// Dropping the stream stops the bodies.
    ///
    /// # Errors
    /// As [`ToolExecutor::execute`].
    pub fn stream(
        &self,
        message: &ChatMessage,
        options: ExecuteOptions,
    ) -> Result<BoxStream<'static, ExecutionUpdate>> {
        check_runtime()?;
        if message.role() != MessageRole::Assistant {
            return Err(Error::misuse(format!(
                "tool calls stand in an assistant message; this one's role is {:?}",
                message.role()
            )));
        }
        let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
        if calls.is_empty() {
            return Err(Error::misuse(
                "the assistant message asks for no tool calls",
            ));
        }
        let run_id = options.run_id.clone().unwrap_or_else(RunId::random);
        let tools = self.visible(&options)?;
        let (batch, termination) = self.prepare(run_id.clone(), &options, &calls, &tools);
        let record = RunRecord::new(run_id);
        Ok(self.run(batch, record, Vec::new(), termination, options))
    }

    /// Goes on with a batch that waits: answers name requests by id or address; only what they name
    /// runs, the rest stays pending, and what is finished is not run again.
    ///
    /// # Errors
    /// [`ErrorKind::ApprovalRefused`](raf_core::ErrorKind::ApprovalRefused) if no answer fits, with
    /// the reason of the first; [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) if a
    /// pending call's tool cannot be found; [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) for a
    /// form of a later version.
    pub async fn resume(
        &self,
        paused: PausedRun,
        answers: &[ToolApprovalResponse],
        options: ExecuteOptions,
    ) -> Result<Execution> {
        end_of(self.resume_stream(paused, answers, options)?).await
    }

    /// As [`ToolExecutor::resume`], as a stream.
    ///
    /// # Errors
    /// As [`ToolExecutor::resume`].
    pub fn resume_stream(
        &self,
        paused: PausedRun,
        answers: &[ToolApprovalResponse],
        options: ExecuteOptions,
    ) -> Result<BoxStream<'static, ExecutionUpdate>> {
        check_runtime()?;
        if !paused.is_supported() {
            return Err(Error::misuse(
                "the paused batch was written by a later version: update raf to resume it",
            ));
        }
        let mut record = paused.into_record();
        let tools = self.visible(&options)?;
        let preparation = self.preparation(&tools, &record.run_id, &options.extensions);
        let mut batch = OpenBatch::from_record(preparation, record.round, &record.calls)?;
        let mut refusals = Vec::new();
        let mut settled = 0;
        for answer in answers {
            let reason = match record.settlement(&answer.request_id) {
                Some(settlement) => settlement.refusal(),
                None => match batch.apply(answer) {
                    Ok(
                        Applied::Settled { request_id, .. } | Applied::Routed { request_id, .. },
                    ) => {
                        record.settle(&request_id, Settlement::Answered);
                        record.settle(&answer.request_id, Settlement::Answered);
                        settled += 1;
                        continue;
                    }
                    Ok(_) => continue,
                    Err(reason) => reason,
                },
            };
            refusals.push((answer.request_id.clone(), reason));
        }
        if let (0, Some((request_id, reason))) = (settled, refusals.first()) {
            return Err(Error::new(
                ErrorKind::ApprovalRefused,
                format!("the answer to '{request_id}' was refused: {reason}. Nothing was run"),
            )
            .with_code(reason.as_str()));
        }
        Ok(self.run(batch, record, refusals, None, options))
    }

    fn visible(&self, options: &ExecuteOptions) -> Result<ToolSet> {
        match &options.tools {
            Some(tools) => ToolSet::merge(tools, &[], &[], &[], &options.declared),
            None => ToolSet::merge(self.registry.tools(), &[], &[], &[], &options.declared),
        }
    }

    fn prepare(
        &self,
        run_id: RunId,
        options: &ExecuteOptions,
        calls: &[ToolCall],
        tools: &ToolSet,
    ) -> (OpenBatch, Option<TerminationCause>) {
        let round = options.round;
        let preparation = self.preparation(tools, &run_id, &options.extensions);
        let mut states: Vec<BatchCall> = (0..)
            .map(|position| Occurrence::new(round, position))
            .zip(calls)
            .map(|(occurrence, call)| preparation.batch_call(occurrence, call))
            .collect();
        let stops = self.options.unknown_tools.stops()
            && states.iter().any(|call| call.state.is_unknown_tool());
        if stops {
            for call in states
                .iter_mut()
                .filter(|call| !call.state.is_unknown_tool())
            {
                let reason = raf_core::SkipReason::Terminated;
                call.state =
                    CallState::Settled(SettledCall::skipped(call.occurrence, &call.call, reason));
            }
        }
        let termination = stops.then_some(TerminationCause::UnknownTool);
        (OpenBatch::new(run_id, round, states), termination)
    }

    fn run(
        &self,
        mut open: OpenBatch,
        mut record: RunRecord,
        refusals: Vec<(String, RefusalReason)>,
        mut termination: Option<TerminationCause>,
        options: ExecuteOptions,
    ) -> BoxStream<'static, ExecutionUpdate> {
        let executor = self.clone();
        let hold = HoldPolicy {
            mode: self.options.mode,
            whole_batch: false,
        };
        let context = BatchContext::new(record.run_id.clone(), options.cancellation)
            .with_parent_run_id(options.parent_run_id)
            .with_extensions(options.extensions);
        let updates = emit_stream(async move |mut out: Emitter<ExecutionUpdate>| {
            let mut abandoned = Vec::new();
            loop {
                let runnable = open.runnable(hold);
                if runnable.is_empty() {
                    break;
                }
                let mut batch = executor.batch(context.clone(), runnable);
                while let Some(event) = batch.next().await {
                    open.note(&event, true);
                    out.emit(ExecutionUpdate::Event(event)).await;
                }
                abandoned.extend_from_slice(batch.abandoned());
                termination = termination.or(batch.termination());
                let outcome = match termination {
                    Some(_) => ToolOutcome::skipped(raf_core::SkipReason::Terminated),
                    None if context.cancellation.is_cancelled() => {
                        ToolOutcome::Cancelled { started: false }
                    }
                    None => continue,
                };
                for settled in open.settle_rest(outcome) {
                    let event = BatchEvent::Finished(FinishedCall::from_settled(settled));
                    out.emit(ExecutionUpdate::Event(event)).await;
                }
            }
            open.make_requests(|request| request);
            record.round = open.round();
            record.calls = open.to_records(None);
            record.reopen_pending();
            let pending = open.pending();
            let end = Execution {
                results: open
                    .outcomes()
                    .filter_map(|(_, done)| done.result.clone())
                    .collect(),
                paused: (!pending.is_empty()).then(|| PausedRun::new(record)),
                pending,
                refusals,
                termination,
                abandoned,
            };
            out.emit(ExecutionUpdate::End(Box::new(end))).await;
            Ok(())
        });
        updates
            .filter_map(|update| std::future::ready(update.ok()))
            .boxed()
    }

    /// What prepares the calls of a reply.
    pub fn preparation<'a>(
        &'a self,
        tools: &'a ToolSet,
        run_id: &'a RunId,
        extensions: &'a raf_core::Extensions,
    ) -> Preparation<'a> {
        Preparation {
            tools,
            options: &self.options,
            run_id,
            extensions,
        }
    }

    /// A batch over calls that were prepared.
    pub fn batch(&self, context: BatchContext, calls: Vec<QueuedCall>) -> Batch {
        let permits = Arc::clone(&self.permits);
        Batch::new(context, Arc::clone(&self.options), permits, calls)
    }
}

async fn end_of(mut updates: BoxStream<'static, ExecutionUpdate>) -> Result<Execution> {
    while let Some(update) = updates.next().await {
        if let ExecutionUpdate::End(end) = update {
            return Ok(*end);
        }
    }
    Err(Error::misuse("the batch ended without its end"))
}
