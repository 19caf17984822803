//! Looks at a loop from above and from below while it runs: what it emitted, what it asked of the
//! model, and what was still alive when its terminal item was delivered.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientMetadata, ChatClientRunOptions, ChatMessage, FinishReason,
    IChatClient, Result, UpdateStream, Usage,
};
use raf_testing::{Probe, ScriptedRequest, ToolLog};

use super::kept::is_same_message;

/// One item of a stream.
pub(crate) type Item = Result<AgentResponseUpdate>;

type Hook = Arc<dyn Fn(&Item) + Send + Sync>;

/// What was seen of one leg.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Whether there was a stream: the request was not refused by itself.
    pub(crate) opened: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) requests: Vec<SeenRequest>,
    /// Those of runs nested in its calls.
    pub(crate) nested: Vec<SeenRequest>,
    /// What was alive when the terminal item was delivered, in words.
    pub(crate) alive: Vec<(String, usize)>,
}

impl Seen {
    fn requests_of(&mut self, nested: bool) -> &mut Vec<SeenRequest> {
        if nested {
            return &mut self.nested;
        }
        &mut self.requests
    }
}

/// One model request, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) request: ScriptedRequest,
    /// How many items of the leg had been delivered before.
    pub(crate) items_before: usize,
    pub(crate) updates: Vec<AgentResponseUpdate>,
    pub(crate) ended: Option<FinishReason>,
    given_up: Usage,
    last_report: Option<Usage>,
}

impl SeenRequest {
    /// The tokens that its reply reported: the last report of each attempt.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = self.given_up.clone();
        if let Some(last) = &self.last_report {
            usage += last;
        }
        usage
    }
}

/// The shared eye of the two decorators. A cheap handle.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    dropped: AtomicBool,
}

#[derive(Default)]
struct State {
    seen: Seen,
    logs: Vec<(String, ToolLog)>,
    probe: Option<Probe>,
    hook: Option<Hook>,
    /// Messages of the caller whose marks count as sent.
    marked: Vec<ChatMessage>,
}

impl Watch {
    /// Looks at these tools and, if there is a probe, at the model's streams.
    pub(crate) fn look_at(&self, logs: Vec<(String, ToolLog)>, probe: Option<Probe>) {
        let mut state = self.lock();
        state.logs = logs;
        state.probe = probe;
    }

    /// Calls this with each item when it is delivered, until the leg is taken.
    pub(crate) fn on_item(&self, hook: impl Fn(&Item) + Send + Sync + 'static) {
        self.0.dropped.store(false, Ordering::SeqCst);
        self.lock().hook = Some(Arc::new(hook));
    }

    /// Until the leg is taken, a message that is sent counts as this one of the caller's if it is the same
    /// but for whose run it asks for: a journal does not say so.
    pub(crate) fn marks_are_those_of(&self, messages: &[ChatMessage]) {
        self.lock().marked = messages.to_vec();
    }

    /// From now on the leg's stream is not polled: whoever holds it is about to drop it.
    pub(crate) fn hold(&self) {
        self.0.dropped.store(true, Ordering::SeqCst);
    }

    /// Takes what was seen since the last time.
    pub(crate) fn take(&self) -> Seen {
        let mut state = self.lock();
        state.hook = None;
        state.marked.clear();
        std::mem::take(&mut state.seen)
    }

    /// A client that shows what this client emits.
    pub(crate) fn above(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let watch = self.clone();
        Arc::new(Above { inner, watch })
    }

    /// A client that shows what is asked of this client.
    pub(crate) fn below(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let watch = self.clone();
        let nested = false;
        Arc::new(Below {
            inner,
            watch,
            nested,
        })
    }

    /// A client that shows what runs nested in calls ask of this client.
    pub(crate) fn within(&self, inner: Arc<dyn IChatClient>) -> Arc<dyn IChatClient> {
        let (watch, nested) = (self.clone(), true);
        Arc::new(Below {
            inner,
            watch,
            nested,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, item: &Item) {
        let hook = {
            let mut state = self.lock();
            if matches!(item, Err(_) | Ok(AgentResponseUpdate::Finish { .. })) {
                state.seen.alive = state.alive();
            }
            state.seen.items.push(item.clone());
            state.hook.clone()
        };
        if let Some(hook) = hook {
            hook(item);
        }
    }

    fn asked(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
        nested: bool,
    ) -> usize {
        let mut state = self.lock();
        let as_marked = |message: &ChatMessage| {
            let mut marked = state.marked.iter();
            let own = marked.find(|own| is_same_message(own, message));
            own.unwrap_or(message).clone()
        };
        let messages: Vec<ChatMessage> = messages.iter().map(as_marked).collect();
        let items_before = state.seen.items.len();
        let requests = state.seen.requests_of(nested);
        let index = requests.len();
        requests.push(SeenRequest {
            request: ScriptedRequest::new(index, &messages, options),
            items_before,
            updates: Vec::new(),
            ended: None,
            given_up: Usage::default(),
            last_report: None,
        });
        index
    }

    fn replied(&self, request: usize, item: &Item, nested: bool) {
        let mut state = self.lock();
        let Some(seen) = state.seen.requests_of(nested).get_mut(request) else {
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
    fn alive(&self) -> Vec<(String, usize)> {
        let running = self.logs.iter().filter(|(_, log)| log.running() > 0);
        let bodies = running.map(|(tool, log)| (format!("bodies of '{tool}'"), log.running()));
        let live = self.probe.as_ref().map_or(0, Probe::live);
        let streams = (live > 0).then(|| ("streams of the model".to_owned(), live));
        bodies.chain(streams).collect()
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
        let mut items = self.inner.run(messages, options).await?;
        watch.lock().seen.opened = true;
        let watched = futures::stream::poll_fn(move |context| {
            if watch.0.dropped.load(Ordering::SeqCst) {
                return std::task::Poll::Pending;
            }
            let next = items.poll_next_unpin(context);
            if let std::task::Poll::Ready(Some(item)) = &next {
                watch.deliver(item);
            }
            next
        });
        Ok(watched.boxed())
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
    nested: bool,
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
        let nested = self.nested;
        let request = watch.asked(messages, options.clone(), nested);
        let items = self.inner.run(messages, options).await?;
        Ok(items
            .inspect(move |item| watch.replied(request, item, nested))
            .boxed())
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.inner.metadata()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.service(id)
    }
}
