//! One batch of calls: its starts are kept before its bodies are entered, its outcomes when they happen.

use std::sync::Arc;

use raf_core::{
    Error, ErrorKind, FinishReason, IStepHost, IStepRecorder, Result, RunRecord, Step, StepEvent,
};
use raf_tools::OpenBatch;

use super::{kept, written};
use crate::function_invoking::FunctionInvokingChatClient;
use crate::function_invoking::durable::{self, InFlight, OutcomeRecorder};
use crate::function_invoking::execute::{BatchEnd, execute};
use crate::function_invoking::hooks::{self, HooksEnd};
use crate::function_invoking::leg::Leg;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::pause;
use crate::function_invoking::plan::BatchPlan;
use crate::function_invoking::steer::STOPPED_BY_HOOK;
use crate::function_invoking::tools::known_tools;

/// What is to be done with the open batch.
pub(in crate::function_invoking) struct BatchWork<'a> {
    client: &'a FunctionInvokingChatClient,
    options: &'a FunctionInvokingOptions,
    way: BatchWay,
}

enum BatchWay {
    /// A plan, and the end that follows behind it.
    Planned(Option<FinishReason>),
    /// A batch that waited, and runs on.
    Resumed { superseded: bool },
    /// It waits still.
    Waiting,
}

impl<'a> BatchWork<'a> {
    /// Runs a batch that was planned.
    pub(in crate::function_invoking) fn planned(
        client: &'a FunctionInvokingChatClient,
        options: &'a FunctionInvokingOptions,
        end: Option<FinishReason>,
    ) -> Self {
        let way = BatchWay::Planned(end);
        Self {
            client,
            options,
            way,
        }
    }

    /// Runs a batch on that waited.
    pub(in crate::function_invoking) fn resumed(
        client: &'a FunctionInvokingChatClient,
        options: &'a FunctionInvokingOptions,
        superseded: bool,
    ) -> Self {
        let way = BatchWay::Resumed { superseded };
        Self {
            client,
            options,
            way,
        }
    }

    async fn enter(
        self,
        leg: &mut Leg,
        recorder: Option<Arc<dyn IStepRecorder>>,
        known: Vec<StepEvent>,
    ) -> Result<BatchEnd> {
        let mut batch = self.open_batch(leg, known).await?;
        let (end, superseded) = match self.way {
            BatchWay::Planned(end) => (end, false),
            BatchWay::Resumed { superseded } => (leg.run.batch_end.take(), superseded),
            BatchWay::Waiting => {
                return Ok(BatchEnd::Pause(
                    pause::pause(&mut batch, leg, self.options).await?,
                ));
            }
        };
        let recorder = recorder.map(|recorder| Arc::new(OutcomeRecorder::new(recorder)));
        let plan = BatchPlan { batch, end };
        let round = plan.batch.round();
        let executor = self.client.executor();
        let end = execute(executor, self.options, leg, plan, superseded, recorder).await?;
        if !matches!(end, BatchEnd::GoOn) || superseded {
            return Ok(end);
        }
        let hooks = &self.options.hooks;
        Ok(match hooks::after_batch(hooks, leg, round).await {
            HooksEnd::GoOn => end,
            HooksEnd::Stop => BatchEnd::End(STOPPED_BY_HOOK),
            HooksEnd::Stopped(stop) => BatchEnd::Stopped(stop),
        })
    }

    /// The open batch: that of the plan, or of the record where the leg was taken up behind it.
    async fn open_batch(&self, leg: &mut Leg, known: Vec<StepEvent>) -> Result<OpenBatch> {
        if let Some(batch) = leg.open.take() {
            return Ok(batch);
        }
        let record = leg.restorable.take().or_else(|| leg.run.record.clone());
        let mut record = record.unwrap_or_else(|| Box::new(RunRecord::new(leg.run.id.clone())));
        let mut in_flight = InFlight::default();
        for event in known {
            in_flight.note(event)?;
        }
        for used in in_flight.lay_over(leg, &mut record) {
            leg.count_nested(used);
        }
        let tools = known_tools(self.client, leg).await?;
        let extensions = leg.options.extensions.clone();
        let executor = self.client.executor();
        let preparation = executor.preparation(&tools, &leg.run.id, &extensions);
        let mut batch = OpenBatch::from_record(preparation, record.round, &record.calls)?;
        in_flight.settle_unknown(&mut batch, &tools, leg.is_durable());
        durable::report_again(&mut batch, leg);
        Ok(batch)
    }
}

/// Runs the open batch, or takes what came of it from the host.
///
/// # Errors
/// What the store or the host fails with.
pub(in crate::function_invoking) async fn batch(
    leg: &mut Leg,
    work: BatchWork<'_>,
) -> Result<BatchEnd> {
    // Boxed, each: they are large, and a run is seldom in one of them.
    let end = match &leg.steps {
        None => Box::pin(work.enter(leg, None, Vec::new())).await?,
        Some(steps) => {
            let host = Arc::clone(&steps.host);
            Box::pin(hosted(leg, work, host)).await?
        }
    };
    if matches!(end, BatchEnd::Pause(_)) {
        Box::pin(pause::announce(leg)).await;
    }
    Ok(end)
}

/// Waits again with the open batch; says what for.
///
/// # Errors
/// What the store or the host fails with; [`ErrorKind::Store`] for a kept value that says anything else.
pub(in crate::function_invoking) async fn wait(
    leg: &mut Leg,
    client: &FunctionInvokingChatClient,
    options: &FunctionInvokingOptions,
) -> Result<FinishReason> {
    let work = BatchWork {
        client,
        options,
        way: BatchWay::Waiting,
    };
    match batch(leg, work).await? {
        BatchEnd::Pause(reason) => Ok(reason),
        BatchEnd::GoOn | BatchEnd::End(_) | BatchEnd::Stopped(_) => Err(Error::new(
            ErrorKind::Store,
            "the value of a step in which the run waits says that it does not",
        )
        .with_code("corrupt")),
    }
}

async fn hosted(leg: &mut Leg, work: BatchWork<'_>, host: Arc<dyn IStepHost>) -> Result<BatchEnd> {
    let name = format!("round/{}/batch", leg.open_round());
    let key = Step::new(leg.run.id.clone(), name);
    let mut entered = None;
    let value = {
        let entered = &mut entered;
        let leg = &mut *leg;
        let body = Box::new(move |recorder, known| -> raf_core::StepBody<'_> {
            Box::pin(async move {
                let value = work.enter(leg, Some(recorder), known).await?;
                let kept = kept::value(leg, &value, false)?;
                *entered = Some(value);
                Ok(kept)
            })
        });
        host.batch(&key, body).await?
    };
    match entered {
        Some(value) => {
            written(leg).await;
            Ok(value)
        }
        None => kept::restore(leg, value).await,
    }
}
