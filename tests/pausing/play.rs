//! How a leg of a case is played: to its end, or until it is dropped.

use std::sync::Arc;

use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, IChatClient, ResponseFold,
};
use raf_framework::FunctionInvokingChatClient;
use raf_tools::{ToolRegistry, ToolRegistryBuilder};

use super::reading::{by_items, input_now, until_stuck};
use super::{PausingCase, Reload};
use crate::canonical;
use crate::case::Form;
use crate::leg::Leg;
use crate::watch::Watch;

impl PausingCase {
    /// Plays a leg over the conversation as it stands; what is wrong with it stands in the leg.
    pub async fn play(&mut self, mut options: ChatClientRunOptions) -> Leg {
        let by_value = matches!(self.reload, Reload::NewProcess | Reload::StoreAndValue);
        if by_value && options.paused_run.is_none() {
            options.paused_run.clone_from(&self.paused_run);
        }
        let answers = options.tool_approval_responses.clone();
        let (client, watch) = self.stack();
        let input = self.conversation.clone();
        let known = self.reloads_by_itself.then(|| input_now(&input, &options));
        let entered: Vec<usize> = self.logs.iter().map(|(_, log)| log.entries()).collect();
        let mut faults = Vec::new();
        let response = match self.form {
            Form::Stream => by_items(&*client, &input, options.clone(), &mut faults).await,
            Form::Fold => client.get_response(&input, options.clone()).await,
        };
        if known.is_some_and(|known| known != input_now(&input, &options)) {
            faults.push("A3: the caller's messages or options were changed".to_owned());
        }
        let logs = self.logs.iter().zip(entered);
        let mut leg = Leg {
            input,
            seen: watch.take(),
            response,
            entries: logs
                .flat_map(|((_, log), before)| log.calls().split_off(before))
                .collect(),
            faults,
        };
        self.conversation.extend(leg.messages());
        let found = self.ledger.take(&leg, &answers, &self.conversation);
        leg.faults.extend(found);
        let requests = leg.requests().iter().map(|seen| seen.request.clone());
        self.requests.extend(requests);
        if !self.reloads_by_itself {
            if let Ok(response) = &leg.response {
                self.paused_run.clone_from(&response.paused_run);
            }
            return leg;
        }
        self.summary.push(format!("leg of {:?}", leg.input.len()));
        let lines = canonical::leg(&leg).into_iter();
        // Why an answer to a run that ended is refused depends on who remembers that run.
        let words = self.ledger.outside_words(&leg);
        let words = words.into_iter().map(|word| match word.rsplit_once(' ') {
            Some((refused, _)) if word.starts_with("approval_refused") => refused.to_owned(),
            _ => word,
        });
        let lines = lines.chain(words);
        let lines: Vec<String> = lines.map(|line| self.ledger.without_ids(&line)).collect();
        self.summary.extend(lines);
        if let Ok(response) = &leg.response {
            self.paused_run.clone_from(&response.paused_run);
            if !response.pending.is_empty() {
                self.reload();
            }
        }
        leg
    }

    /// Plays a leg over the conversation as it stands and drops it after so many polls, or, without a
    /// number, when nothing goes on any more; what was seen until then, and whether it was dropped.
    /// Nothing of a dropped leg reaches the caller. A leg that ends before that is played whole.
    pub async fn play_dropped(
        &mut self,
        options: ChatClientRunOptions,
        polls: impl Into<Option<usize>>,
    ) -> (Leg, bool) {
        let answers = options.tool_approval_responses.clone();
        let (client, watch) = self.stack();
        let input = self.conversation.clone();
        let entered: Vec<usize> = self.logs.iter().map(|(_, log)| log.entries()).collect();
        let mut stream = client.run(&input, options).await.expect("it can be run");
        let (items, ended) = match polls.into() {
            Some(polls) => {
                let run = raf_testing::poll_n(&mut stream, polls).await;
                (run.items, run.ended)
            }
            None => until_stuck(&mut stream).await,
        };
        drop(stream);
        while self.logs.iter().any(|(_, log)| log.running() > 0) {
            tokio::task::yield_now().await;
        }
        let mut fold = ResponseFold::new();
        let mut failure = None;
        for item in items {
            match item {
                Ok(update) => fold.push(&update),
                Err(error) => failure = Some(error),
            }
        }
        let response = match failure {
            Some(error) => Err(fold.fail(error)),
            None => fold.finish(),
        };
        let logs = self.logs.iter().zip(entered);
        let mut leg = Leg {
            input,
            seen: watch.take(),
            response,
            entries: logs
                .flat_map(|((_, log), before)| log.calls().split_off(before))
                .collect(),
            faults: Vec::new(),
        };
        let terminal = leg
            .items()
            .last()
            .is_some_and(|item| matches!(item, Err(_) | Ok(AgentResponseUpdate::Finish { .. })));
        if ended || terminal {
            self.conversation.extend(leg.messages());
            leg.faults = self.ledger.take(&leg, &answers, &self.conversation);
            if let Ok(response) = &leg.response {
                self.paused_run.clone_from(&response.paused_run);
            }
        } else {
            leg.faults = self.ledger.take_dropped(&leg, &answers);
        }
        (leg, !(ended || terminal))
    }

    pub(super) fn stack(&mut self) -> (Arc<dyn IChatClient>, Watch) {
        let watch = self
            .watch
            .take()
            .unwrap_or_else(|| Watch::new(self.logs.clone(), self.model.probe().clone()));
        self.watch = Some(watch.clone());
        if let Some(client) = &self.client {
            return (Arc::clone(client), watch);
        }
        let tools = self.tools.iter().map(Arc::clone);
        let build = || {
            tools
                .fold(
                    ToolRegistry::builder(),
                    ToolRegistryBuilder::with_shared_tool,
                )
                .build()
                .expect("tools of a case have names of their own")
        };
        let registry = self.registry.get_or_insert_with(build).clone();
        let options = self.options.clone().with_run_store(Arc::clone(&self.store));
        let below = watch.below(Arc::new(self.model.clone()));
        let client = watch.above(Arc::new(FunctionInvokingChatClient::with_options(
            below, registry, options,
        )));
        self.client = Some(Arc::clone(&client));
        (client, watch)
    }
}
