//! A chat client that follows a script and remembers what it was asked.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, Error, IChatClient, Result,
    UpdateStream, emit_stream,
};

use crate::probe::Probe;
use crate::reply::{Reply, play};
use crate::request::ScriptedRequest;

/// A model that replies as scripted, one [`Reply`] per request, in order.
///
/// It behaves as a provider does: nothing is taken from the script before the stream is first
/// polled, and answers to approval requests are refused. A cheap handle: give a clone to the stack,
/// keep one to look at the requests. A request beyond the script fails with
/// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) and is held against the test by
/// [`assert_done`](ScriptedChatClient::assert_done).
///
/// ```
/// use raf_core::ChatClientExt;
/// use raf_testing::{Reply, ScriptedChatClient};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> raf_core::Result<()> {
/// let client = ScriptedChatClient::new([Reply::text("Hello").usage(3, 1)]);
/// assert_eq!(client.get_text("Hi").await?, "Hello");
/// assert_eq!(client.requests()[0].lines(), ["U:Hi"]);
/// client.assert_done();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ScriptedChatClient(Arc<Inner>);

struct Inner {
    metadata: ChatClientMetadata,
    probe: Probe,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    fallback: Option<Reply>,
    requests: Vec<ScriptedRequest>,
    violations: Vec<String>,
}

impl ScriptedChatClient {
    /// A client that gives these replies, then no more.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with_metadata(
            replies,
            ChatClientMetadata::new("scripted").with_model("scripted-model"),
        )
    }

    /// A client that gives the same reply to every request.
    pub fn always(reply: Reply) -> Self {
        Self::new([]).with_fallback(reply)
    }

    /// A client that says of itself what is given here.
    pub fn with_metadata(
        replies: impl IntoIterator<Item = Reply>,
        metadata: ChatClientMetadata,
    ) -> Self {
        let state = State {
            replies: replies.into_iter().collect(),
            ..State::default()
        };
        Self(Arc::new(Inner {
            metadata,
            probe: Probe::new(),
            state: Mutex::new(state),
        }))
    }

    /// Gives this reply to every request beyond the script.
    pub fn with_fallback(self, reply: Reply) -> Self {
        self.0.lock().fallback = Some(reply);
        self
    }

    /// Adds a reply at the end of the script, while it is in use too.
    pub fn push(&self, reply: Reply) {
        self.0.lock().replies.push_back(reply);
    }

    /// The requests so far, in the order in which they were sent (first polled).
    pub fn requests(&self) -> Vec<ScriptedRequest> {
        self.0.lock().requests.clone()
    }

    /// How many requests were sent so far.
    pub fn request_count(&self) -> usize {
        self.0.lock().requests.len()
    }

    /// How many replies of the script are left.
    pub fn remaining(&self) -> usize {
        self.0.lock().replies.len()
    }

    /// Counts what was done with the streams.
    pub fn probe(&self) -> &Probe {
        &self.0.probe
    }

    /// What went against the script: requests beyond it, expectations that were not met.
    pub fn violations(&self) -> Vec<String> {
        self.0.lock().violations.clone()
    }

    /// Checks that the whole script was used and nothing went against it.
    ///
    /// # Panics
    /// If a reply is left, a request came beyond the script, or an expectation was not met.
    #[track_caller]
    pub fn assert_done(&self) {
        let mut faults = self.violations();
        let left = self.remaining();
        if left > 0 {
            faults.push(format!(
                "{left} of the scripted replies were not asked for; {} requests came",
                self.request_count()
            ));
        }
        assert!(
            faults.is_empty(),
            "the script was not followed:\n- {}",
            faults.join("\n- ")
        );
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a next reply that is refused before there is a stream.
    fn refuse_at_start(&self, request: &mut ScriptedRequest) -> Option<Error> {
        let mut state = self.lock();
        let next = state.replies.front().or(state.fallback.as_ref())?;
        let error = next.error_at_start.clone()?;
        let reply = state.replies.pop_front().or_else(|| state.fallback.clone());
        request.index = state.requests.len();
        state.requests.push(request.clone());
        drop(state);
        match reply.map(|reply| self.check(&reply, request)) {
            Some(Err(violation)) => Some(violation),
            _ => Some(error),
        }
    }

    /// Takes the next reply for a request that is sent now.
    fn answer(&self, mut request: ScriptedRequest) -> Result<Reply> {
        let reply = {
            let mut state = self.lock();
            request.index = state.requests.len();
            state.requests.push(request.clone());
            state.replies.pop_front().or_else(|| state.fallback.clone())
        };
        let Some(mut reply) = reply else {
            return Err(self.violation(format!(
                "request {} came, but the script has no reply left for it: {:?}",
                request.index,
                request.lines()
            )));
        };
        self.check(&reply, &request)?;
        while let Some(rule) = reply.rule.take() {
            reply = rule(&request);
            self.check(&reply, &request)?;
        }
        Ok(reply)
    }

    fn check(&self, reply: &Reply, request: &ScriptedRequest) -> Result<()> {
        let Some(check) = &reply.expectation else {
            return Ok(());
        };
        catch_unwind(AssertUnwindSafe(|| check(request))).map_err(|panic| {
            self.violation(format!(
                "request {} is not as expected: {}",
                request.index,
                panic_text(&*panic)
            ))
        })
    }

    fn violation(&self, text: String) -> Error {
        let error = Error::misuse(format!("the script was not followed: {text}"));
        self.lock().violations.push(text);
        error
    }
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "a panic without words".to_owned())
}

#[async_trait]
impl IChatClient for ScriptedChatClient {
    async fn run(
        &self,
        messages: &[ChatMessage],
        options: ChatClientRunOptions,
    ) -> Result<UpdateStream> {
        options.refuse_resume_data()?;
        let cancellation = options.cancellation.clone();
        let mut request = ScriptedRequest::new(0, messages, options);
        if let Some(error) = self.0.refuse_at_start(&mut request) {
            return Err(error);
        }
        let inner = Arc::clone(&self.0);
        let stream = emit_stream(move |out| async move {
            let reply = inner.answer(request)?;
            play(reply, cancellation, out).await
        });
        Ok(self.0.probe.watch(stream))
    }

    fn metadata(&self) -> ChatClientMetadata {
        self.0.metadata.clone()
    }

    fn service(&self, id: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        if id == TypeId::of::<Self>() {
            return Some(self);
        }
        (id == TypeId::of::<Probe>()).then_some(&self.0.probe)
    }
}

impl fmt::Debug for ScriptedChatClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedChatClient")
            .field("requests", &self.request_count())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
