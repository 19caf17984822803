//! A stream from a plain async function: it writes to an emitter, the stream polls it.
//!
//! No task, no channel: the function runs only while the stream is polled, stays one item ahead at
//! most, and is dropped with the stream.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use futures::future::BoxFuture;

use crate::error::Result;

type Slot<T> = Arc<Mutex<Option<T>>>;

fn lock<T>(slot: &Slot<T>) -> MutexGuard<'_, Option<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writing end that the function of [`emit_stream`] gets.
#[derive(Debug)]
pub struct Emitter<T>(Slot<T>);

impl<T> Emitter<T> {
    /// Hands one item to the consumer; returns when the consumer asks for the next.
    ///
    /// Cancel-safety: an item that was handed over stays handed over. It is at the first poll, unless
    /// the item before it, whose future was dropped, still waits for the consumer.
    pub fn emit(&mut self, item: T) -> impl Future<Output = ()> + use<'_, T> {
        let mut item = Some(item);
        // Not an async function: an argument of one stands twice in its state.
        poll_fn(move |_| {
            let mut slot = lock(&self.0);
            if slot.is_some() {
                return Poll::Pending;
            }
            let Some(item) = item.take() else {
                return Poll::Ready(());
            };
            *slot = Some(item);
            Poll::Pending
        })
    }
}

/// The stream of [`emit_stream`].
pub struct EmitStream<T> {
    body: Option<BoxFuture<'static, Result<()>>>,
    slot: Slot<T>,
    end: Option<crate::Error>,
}

impl<T> std::fmt::Debug for EmitStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmitStream")
            .field("ended", &self.body.is_none())
            .finish_non_exhaustive()
    }
}

/// Makes a stream of what `body` emits. An error that it returns is the last item.
///
/// The body is first polled when the stream is.
///
/// ```
/// use futures::StreamExt;
/// use raf_core::{Emitter, emit_stream};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let stream = emit_stream(async |mut out: Emitter<u32>| {
///     out.emit(1).await;
///     out.emit(2).await;
///     Ok(())
/// });
/// let items: Vec<u32> = stream.map(|item| item.unwrap()).collect().await;
/// assert_eq!(items, [1, 2]);
/// # }
/// ```
pub fn emit_stream<T, F, Fut>(body: F) -> EmitStream<T>
where
    T: Send + 'static,
    F: FnOnce(Emitter<T>) -> Fut,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let slot = Slot::default();
    EmitStream {
        body: Some(Box::pin(body(Emitter(Arc::clone(&slot))))),
        slot,
        end: None,
    }
}

impl<T> Stream for EmitStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(body) = &mut self.body
            && let Poll::Ready(end) = body.as_mut().poll(context)
        {
            self.body = None;
            self.end = end.err();
        }
        if let Some(item) = lock(&self.slot).take() {
            return Poll::Ready(Some(Ok(item)));
        }
        if self.body.is_some() {
            return Poll::Pending;
        }
        Poll::Ready(self.end.take().map(Err))
    }
}

impl<T> Unpin for EmitStream<T> {}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};

    use super::{Emitter, emit_stream};

    #[tokio::test]
    async fn an_item_whose_future_was_dropped_is_not_overwritten() {
        let stream = emit_stream(async |mut out: Emitter<u32>| {
            assert!(out.emit(1).now_or_never().is_none());
            // Not handed over: the first one still waits.
            assert!(out.emit(2).now_or_never().is_none());
            out.emit(3).await;
            assert!(out.emit(4).now_or_never().is_none());
            Ok(())
        });
        let items: Vec<u32> = stream.map(|item| item.unwrap()).collect().await;
        assert_eq!(items, [1, 3, 4]);
    }
}
