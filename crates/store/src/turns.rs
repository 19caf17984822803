//! Turns within a process: who waits for a session gets it in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use raf_core::{BusyPolicy, Error, ErrorKind, Result};

/// The queues of all sessions; a session without one is free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<Queues>>);

type Queues = HashMap<String, VecDeque<oneshot::Sender<Turn>>>;

impl Turns {
    /// The next free turn of a session.
    pub(crate) async fn take(&self, session_id: &str, policy: BusyPolicy) -> Result<Turn> {
        let turn = {
            let mut queues = lock(&self.0);
            match (queues.get_mut(session_id), policy) {
                (None, _) => {
                    queues.insert(session_id.to_owned(), VecDeque::new());
                    return Ok(Turn::new(&self.0, session_id));
                }
                (Some(_), BusyPolicy::Refuse) => return Err(busy(session_id)),
                (Some(waiting), BusyPolicy::Queue) => {
                    let (sender, turn) = oneshot::channel();
                    waiting.push_back(sender);
                    turn
                }
            }
        };
        turn.await.map_err(|_| {
            Error::new(
                ErrorKind::Store,
                "the store was closed while a run waited for its turn",
            )
        })
    }
}

/// The right to ask the store for a session's lease. Its drop hands it to the next who waits.
#[derive(Debug)]
pub(crate) struct Turn {
    queues: Arc<Mutex<Queues>>,
    session_id: String,
    live: bool,
}

impl Turn {
    fn new(queues: &Arc<Mutex<Queues>>, session_id: &str) -> Self {
        Self {
            queues: Arc::clone(queues),
            session_id: session_id.to_owned(),
            live: true,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.live {
            return;
        }
        let mut queues = lock(&self.queues);
        while let Some(next) = queues
            .get_mut(&self.session_id)
            .and_then(VecDeque::pop_front)
        {
            match next.send(Self::new(&self.queues, &self.session_id)) {
                Ok(()) => return,
                // Who waited has gone away.
                Err(mut unwanted) => unwanted.live = false,
            }
        }
        queues.remove(&self.session_id);
    }
}

fn lock(queues: &Mutex<Queues>) -> MutexGuard<'_, Queues> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another run writes to the session.
pub(crate) fn busy(session_id: &str) -> Error {
    Error::new(
        ErrorKind::BusySession,
        "another run writes to this session: wait for its end, or let the run queue \
         (`BusyPolicy::Queue`)",
    )
    .with_context("session", session_id)
}
