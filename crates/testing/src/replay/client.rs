//! A loop whose legs die behind one of their steps and are taken up again, and whose consumer notices
//! nothing of it.

use std::any::{Any, TypeId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientMetadata, ChatClientRunOptions, ChatMessage, Emitter,
    IChatClient, Result, StepEvent, UpdateStream, emit_stream,
};

use super::ReplayHost;

/// Plays each leg of a loop up to a step, drops it there, and takes it up with the values of its steps.
///
/// What the consumer gets is what it would have got of an undisturbed leg: what a taken-up leg tells again
/// is left out. Tests that pass over a loop pass over this, or the loop is no function of its steps.
#[derive(Clone, Debug)]
pub struct ReplayedChatClient {
    inner: Arc<dyn IChatClient>,
    behind: usize,
    shuffle: Option<u64>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    most_steps: usize,
    taken_up: usize,
    /// How many steps were kept when a batch of several calls was.
    batches: BTreeSet<usize>,
    faults: Vec<String>,
}

impl ReplayedChatClient {
    /// Legs of this loop die behind so many steps (from 1).
    pub fn new(inner: impl IChatClient + 'static, behind: usize) -> Self {
        Self {
            inner: Arc::new(inner),
            behind,
            shuffle: None,
            seen: Arc::default(),
        }
    }

    /// Hands a last batch out as what happened in it, in another order.
    #[must_use]
    pub fn shuffling(mut self, seed: u64) -> Self {
        self.shuffle = Some(seed);
        self
    }

    /// How many steps the longest leg had.
    pub fn most_steps(&self) -> usize {
        self.seen(|seen| seen.most_steps)
    }

    /// Behind which steps, from 1, a batch of several outcomes has ended: there an order can be shuffled.
    pub fn batches(&self) -> BTreeSet<usize> {
        self.seen(|seen| seen.batches.clone())
    }

    /// How many legs were taken up.
    pub fn taken_up(&self) -> usize {
        self.seen(|seen| seen.taken_up)
    }

    /// Steps that were not the same when the leg was taken up.
    pub fn faults(&self) -> Vec<String> {
        self.seen(|seen| seen.faults.clone())
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn play(
        &self,
        messages: Vec<ChatMessage>,
        options: ChatClientRunOptions,
        out: &mut Emitter<AgentResponseUpdate>,
    ) -> Result<()> {
        let host = ReplayHost::new().stopping_behind(self.behind);
        let first = options.clone().with_step_host(Arc::new(host.clone()));
        let mut updates = self.inner.run(&messages, first).await?;
        let stopped = host.stopped();
        loop {
            let next = tokio::select! {
                biased;
                next = updates.next() => next,
                () = stopped.wait() => break,
            };
            match next {
                Some(Ok(update)) => out.emit(update).await,
                Some(Err(error)) => {
                    self.noted(&host);
                    return Err(error);
                }
                None => {
                    self.noted(&host);
                    return Ok(());
                }
            }
        }
        drop(updates);
        self.noted(&host);
        let again = host.taken_up_behind(self.behind);
        let again = match self.shuffle {
            Some(seed) => again.shuffling(seed),
            None => again,
        };
        self.seen(|seen| seen.taken_up += 1);
        let options = options.with_step_host(Arc::new(again.clone()));
        let mut updates = self.inner.run(&messages, options).await?;
        while let Some(next) = updates.next().await {
            match next {
                Ok(AgentResponseUpdate::Finish { finish }) => {
                    out.emit(AgentResponseUpdate::Finish { finish }).await;
                }
                // What is told again was told before; requests follow from the value of a step.
                Ok(update @ AgentResponseUpdate::ToolApprovalRequest { .. }) => {
                    out.emit(update).await;
                }
                Ok(update) if again.is_live() => out.emit(update).await,
                Ok(_) => {}
                Err(error) => {
                    self.noted(&again);
                    return Err(error);
                }
            }
        }
        self.noted(&again);
        Ok(())
    }

    fn noted(&self, host: &ReplayHost) {
        self.seen(|seen| {
            let steps = host.steps();
            seen.most_steps = seen.most_steps.max(steps.len());
            for (place, step) in steps.iter().enumerate() {
                let ended = |event: &&StepEvent| matches!(event, StepEvent::Ended { .. });
                if step.events.iter().filter(ended).count() > 1 {
                    seen.batches.insert(place + 1);
                }
            }
            seen.faults.extend(host.faults());
        });
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for ReplayedChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let (client, messages) = (self.clone(), messages.to_vec());
        let updates = emit_stream(async move |mut out: Emitter<AgentResponseUpdate>| {
            client.play(messages, options, &mut out).await
        });
        Ok(updates.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}
