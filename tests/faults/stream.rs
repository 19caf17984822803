//! Faults in the stream of a loop.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate as Update, ChatClientMetadata, ChatClientRunOptions, ChatMessage, Error,
    FinishReason, IChatClient, Result, ToolOutcome, ToolResult, UpdateStream, Usage,
};

use super::{Fault, Plant};
use crate::watch::Item;

/// Emits something else than the loop did.
#[derive(Debug)]
pub(super) struct FaultyLoop {
    pub(super) inner: Arc<dyn IChatClient>,
    pub(super) plant: Plant,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for FaultyLoop {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let plant = self.plant.clone();
        let items = self.inner.run(messages, options).await?;
        if plant.fault == Fault::EndWhileBodiesRun {
            return Ok(cut_while_a_body_runs(items, plant));
        }
        let mut held = None;
        Ok(items
            .flat_map(move |item| futures::stream::iter(plant.alter(item, &mut held)))
            .boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

/// Ends with an error as soon as a body says something, and holds the loop until it is dropped.
fn cut_while_a_body_runs(items: UpdateStream, plant: Plant) -> UpdateStream {
    let state = (items, false);
    futures::stream::unfold(state, move |(mut items, ended)| {
        let plant = plant.clone();
        async move {
            if ended {
                return None;
            }
            match items.next().await? {
                Ok(Update::ToolProgress { .. }) => {
                    plant.bears();
                    Some((Err(Error::misuse("cut")), (items, true)))
                }
                item => Some((item, (items, false))),
            }
        }
    })
    .fuse()
    .boxed()
}

impl Plant {
    /// What becomes of one item. `held` is kept back by an earlier one.
    fn alter(&self, item: Item, held: &mut Option<Update>) -> Vec<Item> {
        match self.fault {
            Fault::ResultsSwapped => self.swap_results(item, held),
            Fault::OutcomeBeforeStart => self.hold_start(item, held),
            fault if is_dropped(fault, &item) => {
                self.bears();
                vec![]
            }
            fault if is_doubled(fault, &item) => {
                self.bears();
                vec![item.clone(), item]
            }
            Fault::ItemAfterTheEnd if is_terminal(&item) => {
                self.bears();
                vec![item, Ok(Update::usage(Usage::new(1, 1)))]
            }
            fault => match changed(fault, &item) {
                Some(changed) => {
                    self.bears();
                    vec![changed]
                }
                None => vec![item],
            },
        }
    }

    /// Keeps a result back for the next one of its round, and lets them change their contents.
    fn swap_results(&self, item: Item, held: &mut Option<Update>) -> Vec<Item> {
        match (held.take(), item) {
            (
                Some(Update::ToolCalled {
                    occurrence: first,
                    result: first_result,
                }),
                Ok(Update::ToolCalled { occurrence, result }),
            ) if first.round == occurrence.round && are_told_apart(&first_result, &result) => {
                self.bears();
                let with_content_of = |call: &ToolResult, other: &ToolResult| {
                    let content = other.content().to_vec();
                    call.to_builder().content(content).build()
                };
                vec![
                    Ok(Update::ToolCalled {
                        occurrence: first,
                        result: with_content_of(&first_result, &result),
                    }),
                    Ok(Update::ToolCalled {
                        occurrence,
                        result: with_content_of(&result, &first_result),
                    }),
                ]
            }
            (earlier, Ok(update @ Update::ToolCalled { .. })) => {
                *held = Some(update);
                earlier.into_iter().map(Ok).collect()
            }
            (earlier, item) => with_earlier(earlier, item, held),
        }
    }

    /// Keeps a start back until the outcome of its call has come.
    fn hold_start(&self, item: Item, held: &mut Option<Update>) -> Vec<Item> {
        match (held.take(), item) {
            (None, Ok(update @ Update::ToolStarted { .. })) => {
                *held = Some(update);
                vec![]
            }
            (Some(start), Ok(update @ Update::ToolCalled { .. })) => {
                let is_its_own = matches!(
                    (&start, &update),
                    (
                        Update::ToolStarted { occurrence: of, .. },
                        Update::ToolCalled { occurrence, .. },
                    ) if of == occurrence
                );
                if is_its_own {
                    self.bears();
                    return vec![Ok(update), Ok(start)];
                }
                vec![Ok(start), Ok(update)]
            }
            (earlier, item) => with_earlier(earlier, item, held),
        }
    }
}

/// What was held back comes before anything that is not of its batch.
fn with_earlier(earlier: Option<Update>, item: Item, held: &mut Option<Update>) -> Vec<Item> {
    if matches!(
        item,
        Ok(Update::ToolStarted { .. } | Update::ToolProgress { .. })
    ) {
        *held = earlier;
        return vec![item];
    }
    earlier.into_iter().map(Ok).chain([item]).collect()
}

/// Whether a check can know that two results have changed places: both are their bodies' own words.
fn are_told_apart(one: &ToolResult, other: &ToolResult) -> bool {
    one.outcome().is_ok() && other.outcome().is_ok() && one.text() != other.text()
}

fn is_terminal(item: &Item) -> bool {
    matches!(item, Err(_) | Ok(Update::Finish { .. }))
}

fn is_dropped(fault: Fault, item: &Item) -> bool {
    match (fault, item) {
        (Fault::FillerDropped, Ok(Update::ToolCalled { result, .. })) => matches!(
            result.outcome(),
            ToolOutcome::Skipped { .. } | ToolOutcome::Cancelled { started: false }
        ),
        (Fault::ResultDropped, Ok(Update::ToolCalled { result, .. })) => result.outcome().is_ok(),
        (Fault::NoTerminalItem, item) => is_terminal(item),
        (Fault::MessageEndMissing, Ok(Update::MessageEnd { .. }))
        | (Fault::CallEndMissing, Ok(Update::ToolCallEnd { .. })) => true,
        _ => false,
    }
}

fn is_doubled(fault: Fault, item: &Item) -> bool {
    matches!(
        (fault, item),
        (Fault::OutcomeTwice, Ok(Update::ToolCalled { .. }))
            | (Fault::StartTwice, Ok(Update::ToolStarted { .. }))
    )
}

/// The item with the fault, if it bears it.
fn changed(fault: Fault, item: &Item) -> Option<Item> {
    match (fault, item.clone()) {
        (Fault::TextChanged, Ok(Update::TextDelta { text })) => {
            (!text.is_empty()).then(|| Ok(Update::text(format!("{text}!"))))
        }
        (Fault::UsageWrong, Ok(Update::Finish { mut finish })) if !finish.usage.is_empty() => {
            finish.usage += &Usage::new(1, 0);
            Some(Ok(Update::Finish { finish }))
        }
        (Fault::RoundMissing, Ok(Update::Finish { mut finish })) if finish.rounds.len() > 1 => {
            finish.rounds.pop();
            Some(Ok(Update::Finish { finish }))
        }
        (Fault::InnerFinish, Ok(Update::Finish { mut finish }))
            if finish.reason == FinishReason::Stop =>
        {
            finish.reason = FinishReason::ToolCalls;
            Some(Ok(Update::Finish { finish }))
        }
        (Fault::FailureWithoutTranscript, Err(mut error)) => {
            let leg = error.take_leg()?;
            (!leg.messages.is_empty()).then_some(Err(error))
        }
        (Fault::CancelledSaysNotStarted, Ok(Update::ToolCalled { occurrence, result }))
            if result.outcome() == (ToolOutcome::Cancelled { started: true }) =>
        {
            let outcome = ToolOutcome::Cancelled { started: false };
            let result = result.to_builder().outcome(outcome).build();
            Some(Ok(Update::ToolCalled { occurrence, result }))
        }
        _ => None,
    }
}
