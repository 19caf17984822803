//! The one thread that has the connection: it takes what waits and commits it together.
//!
//! What was handed over is done whole, whether or not somebody still waits for it: a dropped future
//! changes nothing. Writes that come while one is being made durable share the next commit.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use raf_core::{Error, Result, RetryStatus};
use rusqlite::Connection;

use super::fault::Fault;
use crate::error::{closed, failed};

/// How many pieces of work share a commit at most.
const MAX_BATCH: usize = 256;
/// How often what waits for another process is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// The handle on the thread. Its drop ends the thread, after what was handed over.
#[derive(Debug)]
pub(super) struct DatabaseThread {
    work: Mutex<Option<Sender<Box<dyn IWork>>>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread does from time to time.
pub(super) struct Beat {
    pub(super) every: Duration,
    pub(super) body: BeatBody,
}

type BeatBody = Box<dyn FnMut(&Connection) -> Result<(), Fault> + Send>;

impl DatabaseThread {
    /// Starts the thread with its connection.
    pub(super) fn start(connection: Connection, beat: Beat) -> Result<Self> {
        let (sender, receiver) = channel();
        let thread = Builder::new()
            .name("raf-store-sqlite".to_owned())
            .spawn(move || serve(&connection, &receiver, beat))
            .map_err(|error| {
                failed(
                    "thread",
                    RetryStatus::Temporary,
                    "the system starts no thread for the store",
                )
                .with_source(error)
            })?;
        Ok(Self {
            work: Mutex::new(Some(sender)),
            thread: Some(thread),
        })
    }

    /// Reads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        self.ask(false, once(body)).await
    }

    /// Writes, in one transaction.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T> {
        self.ask(true, once(body)).await
    }

    /// Tries a write again and again until it gives something, or nobody waits any more.
    pub(super) async fn write_until<T: Send + 'static>(
        &self,
        body: impl FnMut(&Connection) -> Result<Option<T>, Fault> + Send + 'static,
    ) -> Result<T> {
        self.ask(true, body).await
    }

    /// Writes without waiting for it.
    pub(super) fn write_later(
        &self,
        body: impl FnOnce(&Connection) -> Result<(), Fault> + Send + 'static,
    ) {
        let (mut work, _) = Work::new(true, once(body));
        work.is_wanted_always = true;
        self.hand_over(Box::new(work));
    }

    async fn ask<T: Send + 'static>(
        &self,
        writes: bool,
        body: impl FnMut(&Connection) -> Result<Option<T>, Fault> + Send + 'static,
    ) -> Result<T> {
        let (work, answer) = Work::new(writes, body);
        self.hand_over(Box::new(work));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    fn hand_over(&self, work: Box<dyn IWork>) {
        let sender = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            // Without a thread the work is dropped, and who waits reads that.
            let _ = sender.send(work);
        }
    }
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

/// A body that is asked once.
fn once<T>(
    body: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
) -> impl FnMut(&Connection) -> Result<Option<T>, Fault> + Send + 'static {
    let mut body = Some(body);
    move |connection| match body.take() {
        Some(body) => body(connection).map(Some),
        None => Err(Fault::Told(closed())),
    }
}

/// One piece of work, whatever it gives.
trait IWork: Send {
    fn writes(&self) -> bool;
    /// Whether somebody waits for it.
    fn is_wanted(&self) -> bool;
    /// Does it within a transaction; whether what it did is to be kept.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Whether it is to be tried again.
    fn waits(&self) -> bool;
    /// Tells the result, now that the transaction was committed or not.
    fn tell(self: Box<Self>, committed: &Result<()>);
}

struct Work<T, B> {
    writes: bool,
    is_wanted_always: bool,
    body: B,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, B> Work<T, B> {
    fn new(writes: bool, body: B) -> (Self, oneshot::Receiver<Result<T>>) {
        let (reply, answer) = oneshot::channel();
        let work = Self {
            writes,
            is_wanted_always: false,
            body,
            result: None,
            reply,
        };
        (work, answer)
    }
}

impl<T, B> IWork for Work<T, B>
where
    T: Send,
    B: FnMut(&Connection) -> Result<Option<T>, Fault> + Send,
{
    fn writes(&self) -> bool {
        self.writes
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted_always || !self.reply.is_canceled()
    }

    fn run(&mut self, connection: &Connection) -> bool {
        self.result = (self.body)(connection).map_err(Error::from).transpose();
        !matches!(self.result, Some(Err(_)))
    }

    fn waits(&self) -> bool {
        self.result.is_none()
    }

    fn tell(self: Box<Self>, committed: &Result<()>) {
        let result = match (self.result, committed) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) => Err(error),
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(closed()),
        };
        // Who waited may have gone away.
        let _ = self.reply.send(result);
    }
}

/// The thread: batches, retries, beats.
fn serve(connection: &Connection, work: &Receiver<Box<dyn IWork>>, mut beat: Beat) {
    let mut waiting: Vec<Box<dyn IWork>> = Vec::new();
    let mut next_beat = Instant::now() + beat.every;
    loop {
        let pause = next_beat.saturating_duration_since(Instant::now());
        let pause = if waiting.is_empty() {
            pause
        } else {
            pause.min(RETRY)
        };
        let mut batch = match work.recv_timeout(pause) {
            Ok(first) => vec![first],
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        while let Ok(more) = work.try_recv() {
            batch.push(more);
            if batch.len() >= MAX_BATCH {
                break;
            }
        }
        waiting.retain(|work| work.is_wanted());
        batch.append(&mut waiting);
        if !batch.is_empty() {
            waiting = commit(connection, batch);
        }
        if Instant::now() >= next_beat {
            next_beat = Instant::now() + beat.every;
            if let Err(fault) = in_transaction(connection, &mut *beat.body) {
                let error = Error::from(fault);
                tracing::warn!(%error, "the store's sign of life could not be written");
            }
        }
    }
}

fn in_transaction(
    connection: &Connection,
    body: &mut dyn FnMut(&Connection) -> Result<(), Fault>,
) -> Result<(), Fault> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = body(connection).and_then(|()| Ok(connection.execute_batch("COMMIT")?));
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    done
}

/// Does a batch in one transaction; gives back what is to be tried again.
fn commit(connection: &Connection, mut batch: Vec<Box<dyn IWork>>) -> Vec<Box<dyn IWork>> {
    let committed = transact(connection, &mut batch).map_err(Error::from);
    if committed.is_err() && !connection.is_autocommit() {
        // What cannot be rolled back is rolled back when the connection is closed.
        let _ = connection.execute_batch("ROLLBACK");
    }
    let mut waiting = Vec::new();
    for work in batch {
        if work.waits() && committed.is_ok() {
            waiting.push(work);
        } else {
            work.tell(&committed);
        }
    }
    waiting
}

fn transact(connection: &Connection, batch: &mut [Box<dyn IWork>]) -> Result<(), Fault> {
    let writes = batch.iter().any(|work| work.writes());
    connection.execute_batch(if writes { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
    let alone = batch.len() == 1;
    for work in batch {
        if alone {
            if !work.run(connection) {
                // Its own error is told; nothing else was done.
                return rolled_back(connection);
            }
            continue;
        }
        connection.execute_batch("SAVEPOINT one")?;
        let keep = work.run(connection);
        if connection.is_autocommit() {
            // SQLite took back the whole transaction (a full disk): all of the batch fails.
            return Err(Fault::Told(failed(
                "rolled_back",
                RetryStatus::Temporary,
                "a write that shared this one's transaction failed: try again",
            )));
        }
        connection.execute_batch(if keep {
            "RELEASE one"
        } else {
            "ROLLBACK TO one; RELEASE one"
        })?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}

fn rolled_back(connection: &Connection) -> Result<(), Fault> {
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    Ok(())
}
