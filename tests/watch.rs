//! Looks at a loop from above and from below while it runs: what it emitted, what it asked of the
//! model and when, and what was still alive when its terminal item was delivered.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientMetadata, ChatClientRunOptions, ChatMessage, FinishReason,
    IChatClient, Result, UpdateStream, Usage,
};
use raf_testing::{Probe, ScriptedRequest, ToolLog};

/// One item of a stream.
pub type Item = Result<AgentResponseUpdate>;

type Hook = Arc<dyn Fn(usize, &Item) + Send + Sync>;

/// What was seen of one leg.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Whether there was a stream: the request was not refused by itself.
    pub opened: bool,
    /// The items, as they were delivered.
    pub items: Vec<Item>,
    /// The model requests, as they were made.
    pub requests: Vec<SeenRequest>,
    /// What was alive when the terminal item was delivered; empty if there was none.
    pub alive: Vec<Alive>,
}

/// One model request, and what came of it.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    /// As it was made.
    pub request: ScriptedRequest,
    /// How many items of the leg had been delivered before.
    pub items_before: usize,
    /// What its reply said, as it came.
    pub updates: Vec<AgentResponseUpdate>,
    /// The reason that its reply ended with; unset if it did not end well.
    pub ended: Option<FinishReason>,
    given_up: Usage,
    last_report: Option<Usage>,
}

/// Something that was alive at the end of a leg.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alive {
    /// So many bodies of this tool.
    Bodies(String, usize),
    /// So many streams of the model.
    Streams(usize),
}

/// The shared eye of the two decorators. A cheap handle.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    seen: Seen,
    logs: Vec<(String, ToolLog)>,
    probe: Option<Probe>,
    hook: Option<Hook>,
}

impl Watch {
    /// An eye on these tools and on the streams of this model.
    pub fn new(logs: Vec<(String, ToolLog)>, probe: Probe) -> Self {
        Self(Arc::new(Mutex::new(State {
            logs,
            probe: Some(probe),
            ..State::default()
        })))
    }

    /// Calls this with each item, and its place in the leg, when it is delivered.
    pub fn on_item(&self, hook: impl Fn(usize, &Item) + Send + Sync + 'static) {
        self.lock().hook = Some(Arc::new(hook));
    }

    /// Takes what was seen since the last time; the hook goes too.
    pub fn take(&self) -> Seen {
        let mut state = self.lock();
        state.hook = None;
        std::mem::take(&mut state.seen)
    }

    /// A client that shows what this client emits.
    pub fn above(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let watch = self.clone();
        Arc::new(Above { inner, watch })
    }

    /// A client that shows what is asked of this client.
    pub fn below(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let watch = self.clone();
        Arc::new(Below { inner, watch })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, item: &Item) {
        let (index, hook) = {
            let mut state = self.lock();
            if matches!(item, Err(_) | Ok(AgentResponseUpdate::Finish { .. })) {
                state.seen.alive = state.alive();
            }
            state.seen.items.push(item.clone());
            (state.seen.items.len() - 1, state.hook.clone())
        };
        if let Some(hook) = hook {
            hook(index, item);
        }
    }

    fn asked(&self, messages: &[ChatMessage], options: ChatClientRunOptions) -> usize {
        let mut state = self.lock();
        let index = state.seen.requests.len();
        let items_before = state.seen.items.len();
        state.seen.requests.push(SeenRequest {
            request: ScriptedRequest::new(index, messages, options),
            items_before,
            updates: Vec::new(),
            ended: None,
            given_up: Usage::default(),
            last_report: None,
        });
        index
    }

    fn replied(&self, request: usize, item: &Item) {
        let mut state = self.lock();
        let Some(seen) = state.seen.requests.get_mut(request) else {
            return;
        };
        seen.updates.extend(item.as_ref().ok().cloned());
        match item {
            Ok(AgentResponseUpdate::Usage { usage }) => seen.last_report = Some((**usage).clone()),
            Ok(AgentResponseUpdate::AttemptReset { .. }) => {
                if let Some(usage) = seen.last_report.take() {
                    seen.given_up += &usage;
                }
            }
            Ok(AgentResponseUpdate::Finish { finish }) => {
                seen.ended = Some(finish.reason.clone());
                if !finish.usage.is_empty() {
                    seen.last_report = Some(finish.usage.clone());
                }
            }
            _ => {}
        }
    }
}

impl State {
    fn alive(&self) -> Vec<Alive> {
        let bodies = self
            .logs
            .iter()
            .map(|(tool, log)| Alive::Bodies(tool.clone(), log.running()))
            .filter(|alive| !matches!(alive, Alive::Bodies(_, 0)));
        let live = self.probe.as_ref().map_or(0, Probe::live);
        let streams = (live > 0).then_some(Alive::Streams(live));
        bodies.chain(streams).collect()
    }
}

impl SeenRequest {
    /// The tokens that its reply reported: the last report of each attempt.
    pub fn usage(&self) -> Usage {
        let mut usage = self.given_up.clone();
        if let Some(last) = &self.last_report {
            usage += last;
        }
        usage
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Above {
    inner: Arc<dyn IChatClient>,
    watch: Watch,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for Above {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let watch = self.watch.clone();
        let items = self.inner.run(messages, options).await?;
        watch.lock().seen.opened = true;
        Ok(items.inspect(move |item| watch.deliver(item)).boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}

#[derive(Debug)]
struct Below {
    inner: Arc<dyn IChatClient>,
    watch: Watch,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl IChatClient for Below {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        let watch = self.watch.clone();
        let request = watch.asked(messages, options.clone());
        let items = self.inner.run(messages, options).await?;
        Ok(items
            .inspect(move |item| watch.replied(request, item))
            .boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}
