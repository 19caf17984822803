//! A chat client that follows a script and remembers what it was asked.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use raf_core::{
    ChatClientMetadata, ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream,
    emit_stream,
};

use crate::probe::Probe;
use crate::reply::{Reply, play};
use crate::request::ScriptedRequest;
use crate::script::Script;

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
    script: Script,
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
        Self(Arc::new(Inner {
            metadata,
            probe: Probe::new(),
            script: Script::new(replies),
        }))
    }

    /// Gives this reply to every request beyond the script.
    pub fn with_fallback(self, reply: Reply) -> Self {
        self.0.script.set_fallback(reply);
        self
    }

    /// Adds a reply at the end of the script, while it is in use too.
    pub fn push(&self, reply: Reply) {
        self.0.script.push(reply);
    }

    /// The requests so far, in the order in which they were sent (first polled).
    pub fn requests(&self) -> Vec<ScriptedRequest> {
        self.0.script.requests()
    }

    /// How many requests were sent so far.
    pub fn request_count(&self) -> usize {
        self.0.script.request_count()
    }

    /// How many replies of the script are left.
    pub fn remaining(&self) -> usize {
        self.0.script.remaining()
    }

    /// Counts what was done with the streams.
    pub fn probe(&self) -> &Probe {
        &self.0.probe
    }

    /// What went against the script: requests beyond it, expectations that were not met.
    pub fn violations(&self) -> Vec<String> {
        self.0.script.violations()
    }

    /// Checks that the whole script was used and nothing went against it.
    ///
    /// # Panics
    /// If a reply is left, a request came beyond the script, or an expectation was not met.
    #[track_caller]
    pub fn assert_done(&self) {
        self.0.script.assert_done();
    }
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
        let request = ScriptedRequest::new(0, messages, options);
        let script = self.0.script.clone();
        if script.refuses_at_start()
            && let Some(error) = script.answer(request.clone())?.error_at_start
        {
            return Err(error);
        }
        let stream = emit_stream(move |out| async move {
            let reply = script.answer(request)?;
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
