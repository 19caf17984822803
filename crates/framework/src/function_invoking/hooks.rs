//! Hooks of a run: before a request, after a reply, before and after a batch of calls.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures::FutureExt;
use raf_core::{ChatClientRunOptions, ChatMessage, Content, RunId, ToolCall, ToolResult, Usage};

use super::leg::Leg;
use super::round::Request;
use super::run::Stop;

/// Looks into a run at four places, and may change a request, veto calls, or end the run.
///
/// Hooks are asked in the order in which they were added, each sees what those before it changed, and
/// the first that says [`HookDecision::Stop`] ends the run as `Terminated(Hook)`; the calls of the
/// reply that are open then are skipped. A panic counts as a stop: a guard that fails lets nothing
/// pass. A hook is polled with the run, and cancelled with it.
#[async_trait]
pub trait IRunHook: Debug + Send + Sync {
    /// Before a model request. What it changes holds for this request alone; the messages are made
    /// valid again afterwards. Default: goes on.
    async fn before_request(&self, request: &mut HookRequest) -> HookDecision {
        let _ = request;
        HookDecision::GoOn
    }

    /// After a reply that ended well. Default: goes on.
    async fn after_reply(&self, reply: &HookReply) -> HookDecision {
        let _ = reply;
        HookDecision::GoOn
    }

    /// Before the calls of a reply run or are put before a person. Default: goes on.
    async fn before_batch(&self, batch: &mut HookBatch) -> HookDecision {
        let _ = batch;
        HookDecision::GoOn
    }

    /// After every call of a reply has its result. Default: goes on.
    async fn after_batch(&self, results: &HookResults) -> HookDecision {
        let _ = results;
        HookDecision::GoOn
    }
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDecision {
    /// It does.
    GoOn,
    /// It ends, as `Terminated(Hook)`.
    Stop,
}

/// A model request that is about to be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookRequest {
    /// The run.
    pub run_id: RunId,
    /// Which request of the run, from 0.
    pub round: u32,
    /// What is sent.
    pub messages: Vec<ChatMessage>,
    /// The options of this request, tool declarations among them. A tool that is taken out here is
    /// hidden, not forbidden: veto its calls for that.
    pub options: ChatClientRunOptions,
}

/// A reply that ended well.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookReply {
    /// The run.
    pub run_id: RunId,
    /// Which request of the run, from 0.
    pub round: u32,
    /// What the model said, calls included.
    pub contents: Vec<Content>,
    /// What the provider reported.
    pub usage: Option<Usage>,
}

/// The calls of a reply, before they run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookBatch {
    /// The run.
    pub run_id: RunId,
    /// The round that they belong to.
    pub round: u32,
    calls: Vec<ToolCall>,
    vetoes: BTreeMap<u32, String>,
}

impl HookBatch {
    /// The calls, in call order: the index is the position.
    pub fn calls(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Keeps a call from running: it is denied, and the model reads the reason.
    pub fn veto(&mut self, position: u32, reason: impl Into<String>) {
        self.vetoes.insert(position, reason.into());
    }
}

/// The results of a reply's calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookResults {
    /// The run.
    pub run_id: RunId,
    /// The round that they belong to.
    pub round: u32,
    /// The results of this leg, in call order.
    pub results: Vec<ToolResult>,
}

/// What the hooks of one place come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HooksEnd {
    GoOn,
    /// A hook ends the run.
    Stop,
    /// Something else does.
    Stopped(Stop),
}

type Hooks = [std::sync::Arc<dyn IRunHook>];

/// Lets the hooks change a request.
pub(super) async fn before_request(hooks: &Hooks, leg: &Leg, sent: &mut Request) -> HooksEnd {
    if hooks.is_empty() {
        return HooksEnd::GoOn;
    }
    // Boxed: most runs have no hook, and it would stand in the state of each.
    let mut request = Box::new(HookRequest {
        run_id: leg.run.id.clone(),
        round: leg.run.counters.rounds,
        messages: std::mem::take(&mut sent.messages),
        options: std::mem::take(&mut sent.options),
    });
    let mut end = HooksEnd::GoOn;
    for hook in hooks {
        end = guarded(leg, hook.before_request(&mut request)).await;
        if end != HooksEnd::GoOn {
            break;
        }
    }
    sent.messages = raf_core::normalise(&request.messages);
    sent.options = request.options;
    end
}

/// Shows the hooks a reply.
pub(super) async fn after_reply(
    hooks: &Hooks,
    leg: &Leg,
    round: u32,
    contents: &[Content],
    usage: Option<&Usage>,
) -> HooksEnd {
    if hooks.is_empty() {
        return HooksEnd::GoOn;
    }
    let reply = HookReply {
        run_id: leg.run.id.clone(),
        round,
        contents: contents.to_vec(),
        usage: usage.cloned(),
    };
    for hook in hooks {
        let end = guarded(leg, hook.after_reply(&reply)).await;
        if end != HooksEnd::GoOn {
            return end;
        }
    }
    HooksEnd::GoOn
}

/// Lets the hooks veto calls: the positions, and why.
pub(super) async fn before_batch(
    hooks: &Hooks,
    leg: &Leg,
    round: u32,
    calls: &[ToolCall],
) -> (HooksEnd, BTreeMap<u32, String>) {
    if hooks.is_empty() {
        return (HooksEnd::GoOn, BTreeMap::new());
    }
    let mut batch = HookBatch {
        run_id: leg.run.id.clone(),
        round,
        calls: calls.to_vec(),
        vetoes: BTreeMap::new(),
    };
    for hook in hooks {
        let end = guarded(leg, hook.before_batch(&mut batch)).await;
        if end != HooksEnd::GoOn {
            return (end, BTreeMap::new());
        }
    }
    (HooksEnd::GoOn, batch.vetoes)
}

/// Shows the hooks the results of a batch.
pub(super) async fn after_batch(hooks: &Hooks, leg: &Leg, round: u32) -> HooksEnd {
    if hooks.is_empty() {
        return HooksEnd::GoOn;
    }
    let of_round = |result: &&ToolResult| {
        result
            .occurrence()
            .is_some_and(|occurrence| occurrence.round == round)
    };
    let results = HookResults {
        run_id: leg.run.id.clone(),
        round,
        results: leg
            .new_messages()
            .iter()
            .flat_map(ChatMessage::tool_results)
            .filter(of_round)
            .cloned()
            .collect(),
    };
    for hook in hooks {
        let end = guarded(leg, hook.after_batch(&results)).await;
        if end != HooksEnd::GoOn {
            return end;
        }
    }
    HooksEnd::GoOn
}

/// Waits for a hook, unless the run is stopped; its panic is a stop.
async fn guarded(leg: &Leg, hook: impl Future<Output = HookDecision>) -> HooksEnd {
    let stopped = leg.stopped();
    tokio::select! {
        biased;
        stop = stopped => HooksEnd::Stopped(stop),
        decision = AssertUnwindSafe(hook).catch_unwind() => match decision {
            Ok(HookDecision::GoOn) => HooksEnd::GoOn,
            Ok(HookDecision::Stop) => HooksEnd::Stop,
            Err(_) => {
                tracing::error!(run = leg.run.id.as_str(), "a run hook panicked: the run is stopped");
                HooksEnd::Stop
            }
        },
    }
}
