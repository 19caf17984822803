//! A leg by the store alone: what a process does that was killed while a run waited, and begun again. It
//! has no conversation and no answers but those that the store keeps.

use std::any::{Any, TypeId};
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, future};
use raf_core::{
    AgentResponseUpdate as Update, AnswerOutcome, ChatClientMetadata, ChatClientRunOptions,
    ChatMessage, Error, IChatClient, IRunStore, Result, RunId, UpdateStream, normalise,
};
use raf_framework::RunStoreOptionsExt;

use super::kept;
use super::watch::Watch;

/// Goes on with the run that waits by its id, where the caller brings nothing but answers: they are kept in
/// the store, and the messages come from its journal. What the caller knows is not said again.
#[derive(Debug)]
pub(crate) struct StoreAlone {
    pub(crate) inner: Arc<dyn IChatClient>,
    pub(crate) store: Arc<dyn IRunStore>,
    pub(crate) watch: Watch,
    /// The run that waits.
    pub(crate) run_id: RunId,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for StoreAlone {
    async fn run(
        &self,
        messages: &[ChatMessage],
        mut options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let journal = kept::transcript(&*self.store, &self.run_id).await?;
        let asked = normalise(messages);
        if !kept::is_same(&normalise(&journal), &asked) {
            return self.inner.run(messages, options).await;
        }
        let mut refused = Vec::new();
        for answer in std::mem::take(&mut options.tool_approval_responses) {
            // Who asks is told by the leg.
            if answer.decision.is_none() || self.store.answer(&answer).await? != AnswerOutcome::Kept
            {
                refused.push(answer);
            }
        }
        options.tool_approval_responses = refused;
        let options = options.with_run_id(self.run_id.clone());
        self.watch.marks_are_those_of(&asked);
        let items = self.inner.run(&[], options).await?;
        let (mut known, mut is_known) = (0, true);
        let new = items.filter_map(move |item| {
            is_known &= match &item {
                Ok(Update::Message { .. }) => true,
                Ok(Update::ToolCalled { result, .. }) => {
                    let mut results = journal.iter().flat_map(ChatMessage::tool_results);
                    results.any(|known| known == result)
                }
                _ => false,
            };
            known += usize::from(is_known);
            future::ready((!is_known).then(|| item.map_err(|error| without(error, known))))
        });
        Ok(new.boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

/// The error without what the caller knows.
fn without(mut error: Error, known: usize) -> Error {
    let Some(mut leg) = error.take_leg() else {
        return error;
    };
    leg.messages.drain(..known.min(leg.messages.len()));
    error.with_leg(leg)
}
