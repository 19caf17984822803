//! The exchanges of one run, each from its request to the end of its reply: plain async functions.

use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::Bytes;
use raf_core::{AgentResponseUpdate, Cancellation, Emitter, Error, Finish, Result};
use tokio::time::Instant;

use crate::decoder::Decoder;
use crate::error::Reporter;
use crate::limits::{Limits, Timeouts, exceeded};
use crate::reply::WireReply;
use crate::request::Restore;
use crate::transport::{Address, Exchange, ReadFault, Transport};
use crate::watch::{Interrupted, Watch, has_timers, later};

/// Most bytes of an error body that are read.
const ERROR_BODY: usize = 256 * 1024;

/// How long the end of the body is waited for after the end mark, so that the connection can be used
/// again. Servers send it with the mark or right behind it.
const DRAIN: Duration = Duration::from_millis(5);

/// All that the exchanges of one run need.
#[derive(Debug)]
pub struct DialogueSetup {
    /// Sends.
    pub transport: Transport,
    /// Makes the errors.
    pub reporter: Reporter,
    /// How much may come.
    pub limits: Limits,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// Stops the run.
    pub cancellation: Cancellation,
    /// How long the run may take as a whole.
    pub deadline: Option<Duration>,
}

/// The exchanges of one run with one endpoint, one after the other: they share cancellation and
/// deadline. Cancel-safe in the sense that a drop at any await ends the exchange.
pub struct Dialogue {
    setup: DialogueSetup,
    watch: Watch,
}

/// A good reply whose head has come, and none of its body.
#[derive(Debug)]
pub struct Opened {
    exchange: Exchange,
    first_byte: Instant,
}

/// Sends one request, reads the reply, and says what it says: the whole of a run that is one exchange.
#[expect(
    clippy::manual_async_fn,
    reason = "the arguments of an async function stand twice in its state, and these are large"
)]
pub fn drive<R: WireReply + Send>(
    setup: DialogueSetup,
    url: Address,
    body: Bytes,
    mut reply: R,
    restore: Restore,
    mut out: Emitter<AgentResponseUpdate>,
) -> impl Future<Output = Result<()>> + Send {
    async move {
        let mut dialogue = Dialogue::begin(setup)?;
        let mut opened = dialogue.post(&url, body).await?;
        let finish = dialogue
            .listen(&mut opened, &mut reply, &restore, &mut out)
            .await?;
        if reply.is_done() {
            dialogue.read_rest(&mut opened).await;
        }
        drop(opened);
        out.emit(AgentResponseUpdate::finish(finish)).await;
        Ok(())
    }
}

impl Dialogue {
    /// Starts the clock of the deadline. Sends nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`](raf_core::ErrorKind::Misuse) outside a tokio runtime with timers.
    pub fn begin(setup: DialogueSetup) -> Result<Self> {
        if !has_timers() {
            return Err(Error::misuse(
                "the stream was polled outside a tokio runtime, or in one without timers: run it under \
                 #[tokio::main] or Runtime::block_on, with I/O and time enabled (`enable_all`)",
            ));
        }
        let watch = Watch::new(setup.cancellation.clone(), setup.deadline);
        Ok(Self { setup, watch })
    }

    /// What it was made of.
    pub fn setup(&self) -> &DialogueSetup {
        &self.setup
    }

    /// Sends a request with a JSON body.
    ///
    /// # Errors
    /// No connection, no reply in time, or a status that is not a good one.
    pub async fn post(&mut self, url: &Address, body: Bytes) -> Result<Opened> {
        let Self { setup, watch } = self;
        open(setup, watch, pin!(setup.transport.post(url, body))).await
    }

    /// Asks for a resource.
    ///
    /// # Errors
    /// As [`post`](Dialogue::post).
    pub async fn get(&mut self, url: &Address) -> Result<Opened> {
        let Self { setup, watch } = self;
        open(setup, watch, pin!(setup.transport.get(url))).await
    }

    /// Reads the reply to its end and emits what it says. How it ended is not emitted, but returned.
    ///
    /// # Errors
    /// What ended it otherwise. What it had said until then has been emitted.
    pub async fn listen<R: WireReply>(
        &mut self,
        opened: &mut Opened,
        reply: &mut R,
        restore: &Restore,
        out: &mut Emitter<AgentResponseUpdate>,
    ) -> Result<Finish> {
        let exchange = &mut opened.exchange;
        // Not kept while the reply is read.
        reply.head(&std::mem::take(&mut exchange.head));
        let mut decoder = Decoder::new(&self.setup.limits);
        let mut clock = Clock::new(opened.first_byte, self.setup.timeouts);
        let mut waits_for = None;
        loop {
            let read = pin!(exchange.read());
            let wait = clock.wait(reply);
            if waits_for != Some(wait) {
                waits_for = Some(wait);
                self.watch.begin();
            }
            let read = self.watch.guard_on(|| clock.until(wait), read).await;
            let step = take_in(read, &mut decoder, reply, &mut clock);
            if step.is_err() {
                reply.abandon();
            }
            for update in reply.updates().drain(..) {
                out.emit(restore.update(update)).await;
            }
            if let Some(finish) = step? {
                return Ok(finish);
            }
        }
    }

    /// Reads the whole body of a reply, within the limits.
    ///
    /// # Errors
    /// It broke off, took too long, or was too large.
    pub async fn body(&mut self, mut opened: Opened) -> Result<Vec<u8>> {
        let Self { setup, watch } = self;
        let reporter = &setup.reporter;
        let mut body = Vec::new();
        loop {
            let until = later(Instant::now(), setup.timeouts.idle);
            let late = || reporter.timeout("idle", setup.timeouts.idle);
            let read = watch.guard(until, pin!(opened.exchange.read())).await;
            match read.map_err(|interrupted| interrupted.into_error(late))? {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(body),
                Err(fault) => return Err(fault.attach(reporter.truncated())),
            }
            if body.len() > setup.limits.body_bytes {
                return Err(exceeded("body_bytes", setup.limits.body_bytes));
            }
        }
    }

    /// Waits, unless the run is stopped before.
    ///
    /// # Errors
    /// The run was cancelled, or its deadline passed.
    pub async fn pause(&mut self, wait: Duration) -> Result<()> {
        let until = later(Instant::now(), wait);
        let never = pin!(std::future::pending::<()>());
        match self.watch.guard(until, never).await {
            Err(Interrupted::TimedOut) | Ok(()) => Ok(()),
            Err(interrupted) => Err(interrupted.into_error(|| self.setup.reporter.truncated())),
        }
    }

    /// Reads what is left of a reply that has ended, if it comes at once, so that the connection can
    /// be used again.
    pub async fn drain(&mut self, mut opened: Opened) {
        self.read_rest(&mut opened).await;
    }

    async fn read_rest(&mut self, opened: &mut Opened) {
        let until = Instant::now() + DRAIN;
        loop {
            let read = pin!(opened.exchange.read());
            match self.watch.guard(until, read).await {
                Ok(Ok(Some(_))) if Instant::now() < until => {}
                Ok(Ok(None)) => {
                    // Lets the connection's own task put it back before the next request asks for one.
                    return tokio::task::yield_now().await;
                }
                _ => return,
            }
        }
    }
}

/// Waits for the head of a good reply.
async fn open(
    setup: &DialogueSetup,
    watch: &mut Watch,
    sent: Pin<&mut impl Future<Output = Result<Exchange>>>,
) -> Result<Opened> {
    let first_byte = later(Instant::now(), setup.timeouts.first_byte);
    let late = || {
        setup
            .reporter
            .timeout("first_byte", setup.timeouts.first_byte)
    };
    let mut exchange = watch
        .guard(first_byte, sent)
        .await
        .map_err(|interrupted| interrupted.into_error(late))??;
    if !exchange.head.is_success() {
        let body = error_body(&mut exchange, watch, &setup.timeouts).await;
        let reporter = setup.reporter.keeping(&exchange.signed);
        return Err(reporter.http(&exchange.head, &body));
    }
    Ok(Opened {
        exchange,
        first_byte,
    })
}

impl std::fmt::Debug for Dialogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialogue")
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

type Read = Result<Result<Option<Bytes>, ReadFault>, Interrupted>;

/// Takes one read in; returns how the reply ended, if it did.
fn take_in<R: WireReply>(
    read: Read,
    decoder: &mut Decoder,
    reply: &mut R,
    clock: &mut Clock,
) -> Result<Option<Finish>> {
    match read {
        Ok(Ok(Some(bytes))) => {
            clock.bytes_came();
            if decoder.push(&bytes, reply)? {
                clock.event_came();
            }
            if reply.is_done() {
                return reply.conclude().map(Some);
            }
            Ok(None)
        }
        Ok(Ok(None)) => {
            decoder.finish(reply)?;
            reply.conclude().map(Some)
        }
        // What came before counts if it was an end.
        Ok(Err(_)) | Err(Interrupted::TimedOut) if reply.has_ended() => reply.conclude().map(Some),
        Ok(Err(fault)) => Err(fault.attach(reply.reporter().truncated())),
        Err(interrupted) => Err(interrupted.into_error(|| clock.error(reply.reporter()))),
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The first byte of the body, until then.
    FirstByte(Instant),
    /// More of the reply.
    More,
    /// What may come behind its end.
    Rest,
}

/// When the next wait is too long, and by which of the timeouts.
struct Clock {
    timeouts: Timeouts,
    first_byte: Option<Instant>,
    last_bytes: Instant,
    last_event: Instant,
}

impl Clock {
    fn new(first_byte: Instant, timeouts: Timeouts) -> Self {
        let now = Instant::now();
        Self {
            timeouts,
            first_byte: Some(first_byte),
            last_bytes: now,
            last_event: now,
        }
    }

    fn bytes_came(&mut self) {
        self.last_bytes = Instant::now();
        if self.first_byte.take().is_some() {
            self.last_event = self.last_bytes;
        }
    }

    fn event_came(&mut self) {
        self.last_event = self.last_bytes;
    }

    fn wait(&self, reply: &impl WireReply) -> Wait {
        match self.first_byte {
            _ if reply.has_ended() => Wait::Rest,
            Some(until) => Wait::FirstByte(until),
            None => Wait::More,
        }
    }

    /// When a wait is too long: later with each event, and never sooner.
    fn until(&self, wait: Wait) -> Instant {
        match wait {
            Wait::FirstByte(until) => until,
            Wait::More => {
                let idle = later(self.last_bytes, self.timeouts.idle);
                idle.min(later(self.last_event, self.timeouts.stall))
            }
            Wait::Rest => later(self.last_event, self.timeouts.linger),
        }
    }

    fn error(&self, reporter: &Reporter) -> Error {
        let timeouts = &self.timeouts;
        if self.first_byte.is_some() {
            reporter.timeout("first_byte", timeouts.first_byte)
        } else if later(self.last_bytes, timeouts.idle) <= later(self.last_event, timeouts.stall) {
            reporter.timeout("idle", timeouts.idle)
        } else {
            reporter.timeout("stall", timeouts.stall)
        }
    }
}

/// What can be read of an error body: the error counts even if its body breaks off.
async fn error_body(exchange: &mut Exchange, watch: &mut Watch, timeouts: &Timeouts) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ERROR_BODY {
        let until = Instant::now() + timeouts.idle.min(Duration::from_secs(10));
        match watch.guard(until, pin!(exchange.read())).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    body.truncate(ERROR_BODY);
    body
}
