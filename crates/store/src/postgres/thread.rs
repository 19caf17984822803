//! The one thread that has the connections: what was handed over is done whole, whether or not somebody
//! still waits for it.
//!
//! It has a runtime of its own, so that a store works under any executor. Nothing is spawned there:
//! work and connections are futures of one set.

use std::future::Future;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use raf_core::{Result, RetryStatus};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::fault::Fault;
use super::pool::{Connection, Pool, PoolSettings};
use crate::error::{closed, failed};

/// How often what waits for another process is tried again.
const RETRY: Duration = Duration::from_millis(20);
/// How long the drop of a store waits for what was handed over.
const CLOSING: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce(Rc<Pool>) -> LocalBoxFuture<'static, ()> + Send>;

/// The handle on the thread. Its drop ends the thread, after what was handed over.
#[derive(Debug)]
pub(super) struct DatabaseThread {
    work: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread does from time to time.
pub(super) struct Beat {
    pub(super) every: Duration,
    pub(super) body: BeatBody,
}

type BeatBody = Box<dyn Fn(Rc<Connection>) -> LocalBoxFuture<'static, Result<(), Fault>> + Send>;

impl DatabaseThread {
    /// Starts the thread.
    pub(super) fn start(settings: PoolSettings, beat: Beat) -> Result<Self> {
        let starts = |error: std::io::Error| {
            let words = "the system starts no thread for the store";
            failed("thread", RetryStatus::Temporary, words).with_source(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(starts)?;
        let (sender, receiver) = mpsc::unbounded();
        let thread = Builder::new()
            .name("raf-store-postgres".to_owned())
            .spawn(move || runtime.block_on(serve(settings, receiver, beat)))
            .map_err(starts)?;
        Ok(Self {
            work: Mutex::new(Some(sender)),
            thread: Some(thread),
        })
    }

    /// Does something with a connection.
    pub(super) async fn ask<T, B, F>(&self, body: B) -> Result<T>
    where
        T: Send + 'static,
        B: FnOnce(Rc<Connection>) -> F + Send + 'static,
        F: Future<Output = Result<T, Fault>> + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.hand_over(Box::new(move |pool| {
            Box::pin(async move {
                let result = with_connection(&pool, body).await;
                // Who waited may have gone away.
                let _ = reply.send(result.map_err(Into::into));
            })
        }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Tries something again and again until it gives something, or nobody waits any more.
    pub(super) async fn ask_until<T, B, F>(&self, body: B) -> Result<T>
    where
        T: Send + 'static,
        B: Fn(Rc<Connection>) -> F + Send + 'static,
        F: Future<Output = Result<Option<T>, Fault>> + 'static,
    {
        let (reply, answer) = oneshot::channel::<Result<T>>();
        self.hand_over(Box::new(move |pool| {
            Box::pin(async move {
                while !reply.is_canceled() {
                    let tried = with_connection(&pool, &body).await;
                    if let Some(result) = tried.map_err(Into::into).transpose() {
                        let _ = reply.send(result);
                        return;
                    }
                    tokio::time::sleep(RETRY).await;
                }
            })
        }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Does something without waiting for it.
    pub(super) fn later<B, F>(&self, body: B)
    where
        B: FnOnce(Rc<Connection>) -> F + Send + 'static,
        F: Future<Output = Result<(), Fault>> + 'static,
    {
        self.hand_over(Box::new(move |pool| {
            Box::pin(async move {
                if let Err(fault) = with_connection(&pool, body).await {
                    let error = raf_core::Error::from(fault);
                    tracing::warn!(%error, "the store could not let something go; its lease will lapse");
                }
            })
        }));
    }

    fn hand_over(&self, job: Job) {
        let sender = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            // Without a thread the job is dropped, and who waits reads that.
            let _ = sender.unbounded_send(job);
        }
    }
}

/// Does something with a connection of the pool. Who meets one that was lost leaves fresh ones to the next.
async fn with_connection<T, F>(
    pool: &Pool,
    body: impl FnOnce(Rc<Connection>) -> F,
) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let done = match pool.connection().await {
        Ok(connection) => body(connection).await,
        Err(fault) => Err(fault),
    };
    if done.as_ref().is_err_and(Fault::is_lost_connection) {
        pool.start_afresh();
    }
    done
}

impl Drop for DatabaseThread {
    fn drop(&mut self) {
        let mut sender = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        sender.take();
        drop(sender);
        if let Some(thread) = self.thread.take() {
            // It ends after what was handed over; a panic there has been told to who waited.
            let _ = thread.join();
        }
    }
}

/// The thread: work, connections, beats.
async fn serve(settings: PoolSettings, mut work: mpsc::UnboundedReceiver<Job>, beat: Beat) {
    let (drivers, mut new_drivers) = mpsc::unbounded();
    let pool = Rc::new(Pool::new(settings, drivers));
    let mut connections = FuturesUnordered::new();
    let mut jobs = FuturesUnordered::new();
    let mut beats = interval_at(Instant::now() + beat.every, beat.every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(driver) = new_drivers.next() => connections.push(driver),
            Some(()) = connections.next(), if !connections.is_empty() => {}
            Some(()) = jobs.next(), if !jobs.is_empty() => {}
            job = work.next() => match job {
                Some(job) => jobs.push(job(Rc::clone(&pool))),
                None => break,
            },
            _ = beats.tick(), if pool.was_used() => {
                if let Ok(connection) = pool.connection_now() {
                    jobs.push(one_beat((beat.body)(connection)));
                }
            }
        }
    }
    let finishing = async {
        while !jobs.is_empty() {
            tokio::select! {
                Some(driver) = new_drivers.next() => connections.push(driver),
                Some(()) = connections.next(), if !connections.is_empty() => {}
                Some(()) = jobs.next() => {}
            }
        }
    };
    if timeout(CLOSING, finishing).await.is_err() {
        tracing::warn!("the store was closed before all that was handed over was answered");
    }
}

fn one_beat(body: LocalBoxFuture<'static, Result<(), Fault>>) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        if let Err(fault) = body.await {
            let error = raf_core::Error::from(fault);
            tracing::warn!(%error, "the store's sign of life could not be written");
        }
    })
}
