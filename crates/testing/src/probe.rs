//! Counts what a layer does with the stream below it: for the laws of laziness and dropping.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use raf_core::{AgentResponseUpdate, Result, UpdateStream};

/// Counters of the streams that a fake handed out. A cheap handle: clones count together.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    runs: AtomicUsize,
    opened: AtomicUsize,
    polls: AtomicUsize,
    items: AtomicUsize,
    ended: AtomicUsize,
    dropped: AtomicUsize,
    polled_after_end: AtomicUsize,
}

impl Probe {
    /// Counters at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often `run` was called.
    pub fn runs(&self) -> usize {
        self.0.runs.load(Ordering::SeqCst)
    }

    /// How many streams were polled at least once: the requests that a provider would have sent.
    pub fn opened(&self) -> usize {
        self.0.opened.load(Ordering::SeqCst)
    }

    /// How often the streams were polled.
    pub fn polls(&self) -> usize {
        self.0.polls.load(Ordering::SeqCst)
    }

    /// How many items were pulled out of the streams, errors included.
    pub fn items(&self) -> usize {
        self.0.items.load(Ordering::SeqCst)
    }

    /// How many streams were read to their end (`None`).
    pub fn ended(&self) -> usize {
        self.0.ended.load(Ordering::SeqCst)
    }

    /// How many streams were dropped, at whatever point.
    pub fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// How often a stream was polled after its `None`.
    pub fn polled_after_end(&self) -> usize {
        self.0.polled_after_end.load(Ordering::SeqCst)
    }

    /// How many streams are still held by someone.
    pub fn live(&self) -> usize {
        self.runs().saturating_sub(self.dropped())
    }

    /// Counts a call of `run` and what becomes of its stream.
    pub fn watch<S>(&self, stream: S) -> UpdateStream
    where
        S: Stream<Item = Result<AgentResponseUpdate>> + Send + 'static,
    {
        self.0.runs.fetch_add(1, Ordering::SeqCst);
        ProbedStream {
            probe: self.clone(),
            inner: Box::pin(stream),
            opened: false,
            ended: false,
        }
        .boxed()
    }
}

struct ProbedStream {
    probe: Probe,
    inner: UpdateStream,
    opened: bool,
    ended: bool,
}

impl Stream for ProbedStream {
    type Item = Result<AgentResponseUpdate>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let counters = Arc::clone(&self.probe.0);
        counters.polls.fetch_add(1, Ordering::SeqCst);
        if !std::mem::replace(&mut self.opened, true) {
            counters.opened.fetch_add(1, Ordering::SeqCst);
        }
        if self.ended {
            counters.polled_after_end.fetch_add(1, Ordering::SeqCst);
            return Poll::Ready(None);
        }
        let next = self.inner.as_mut().poll_next(context);
        match &next {
            Poll::Ready(Some(_)) => {
                counters.items.fetch_add(1, Ordering::SeqCst);
            }
            Poll::Ready(None) => {
                self.ended = true;
                counters.ended.fetch_add(1, Ordering::SeqCst);
            }
            Poll::Pending => {}
        }
        next
    }
}

impl Drop for ProbedStream {
    fn drop(&mut self) {
        self.probe.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}
