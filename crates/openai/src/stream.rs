//! One exchange, from the request to the end of its stream: a plain async function.

use std::time::Duration;

use bytes::Bytes;
use raf_core::{AgentResponseUpdate, Cancellation, Emitter, Error, Finish, Result};
use tokio::time::Instant;

use crate::decoder::Decoder;
use crate::error::Reporter;
use crate::limits::{Limits, Timeouts, exceeded};
use crate::response::Reply;
use crate::transport::{Address, Exchange, ReadFault, Transport};
use crate::watch::{Interrupted, Watch, has_timers, later};

/// Most bytes of an error body that are read.
const ERROR_BODY: usize = 256 * 1024;

/// How long the end of the body is waited for after the end mark, so that the connection can be used
/// again. Servers send it with the mark or right behind it.
const DRAIN: Duration = Duration::from_millis(5);

/// All that one exchange needs.
pub(crate) struct Job {
    pub(crate) transport: Transport,
    pub(crate) url: Address,
    pub(crate) body: Bytes,
    pub(crate) reporter: Reporter,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) cancellation: Cancellation,
    pub(crate) deadline: Option<Duration>,
    /// Whose opaque data the reply holds: the dialect's name.
    pub(crate) provider: String,
    pub(crate) think_tags: bool,
    /// Turns tool names and arguments back to what the caller knows.
    pub(crate) restore: crate::request::Restore,
}

/// Sends the request, reads the reply, and says what it says.
pub(crate) async fn drive(job: Job, mut out: Emitter<AgentResponseUpdate>) -> Result<()> {
    if !has_timers() {
        return Err(Error::misuse(
            "the stream was polled outside a tokio runtime, or in one without timers: run it under \
             #[tokio::main] or Runtime::block_on, with I/O and time enabled (`enable_all`)",
        ));
    }
    let mut watch = Watch::new(job.cancellation.clone(), job.deadline);
    let first_byte = later(Instant::now(), job.timeouts.first_byte);
    let late = || job.reporter.timeout("first_byte", job.timeouts.first_byte);
    let sent = job.transport.post(&job.url, job.body.clone());
    let mut exchange = watch
        .guard(first_byte, sent)
        .await
        .map_err(|interrupted| interrupted.into_error(late))??;
    if !exchange.head.is_success() {
        let body = error_body(&mut exchange, &mut watch, &job.timeouts).await;
        return Err(job.reporter.http(&exchange.head, &body));
    }
    let mut reply = Reply::new(
        &job.provider,
        job.reporter.clone(),
        &job.limits,
        job.think_tags,
    );
    reply.set_request_id(exchange.head.request_id());
    let mut decoder = Decoder::new(&job.limits);
    let mut clock = Clock::new(first_byte, job.timeouts);
    let finish = loop {
        let read = watch.guard(clock.until(&reply), exchange.read()).await;
        let step = take_in(read, &mut decoder, &mut reply, &mut clock);
        if step.is_err() {
            reply.abandon();
        }
        for update in reply.updates.drain(..) {
            out.emit(job.restore.update(update)).await;
        }
        if let Some(finish) = step? {
            break finish;
        }
    };
    if reply.is_done() {
        drain(&mut exchange, &mut watch).await;
    }
    out.emit(AgentResponseUpdate::finish(finish)).await;
    Ok(())
}

type Read = Result<Result<Option<Bytes>, ReadFault>, Interrupted>;

/// Takes one read in; returns how the reply ended, if it did.
fn take_in(
    read: Read,
    decoder: &mut Decoder,
    reply: &mut Reply,
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
        Ok(Err(fault)) => Err(fault.attach(reply.truncated())),
        Err(interrupted) => Err(interrupted.into_error(|| clock.error(reply.reporter()))),
    }
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

    fn until(&self, reply: &Reply) -> Instant {
        if reply.has_ended() {
            return later(self.last_event, self.timeouts.linger);
        }
        self.first_byte.unwrap_or_else(|| {
            let idle = later(self.last_bytes, self.timeouts.idle);
            idle.min(later(self.last_event, self.timeouts.stall))
        })
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
pub(crate) async fn error_body(
    exchange: &mut Exchange,
    watch: &mut Watch,
    timeouts: &Timeouts,
) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < ERROR_BODY {
        let until = Instant::now() + timeouts.idle.min(Duration::from_secs(10));
        match watch.guard(until, exchange.read()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            _ => break,
        }
    }
    body.truncate(ERROR_BODY);
    body
}

/// The whole body of a good reply.
pub(crate) async fn whole_body(
    exchange: &mut Exchange,
    watch: &mut Watch,
    timeouts: &Timeouts,
    limits: &Limits,
    reporter: &Reporter,
) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let until = later(Instant::now(), timeouts.idle);
        let late = || reporter.timeout("idle", timeouts.idle);
        let read = watch.guard(until, exchange.read()).await;
        match read.map_err(|interrupted| interrupted.into_error(late))? {
            Ok(Some(bytes)) => body.extend_from_slice(&bytes),
            Ok(None) => return Ok(body),
            Err(fault) => return Err(fault.attach(reporter.truncated())),
        }
        if body.len() > limits.body_bytes {
            return Err(exceeded("body_bytes", limits.body_bytes));
        }
    }
}

/// Reads what is left, if it comes at once.
async fn drain(exchange: &mut Exchange, watch: &mut Watch) {
    let until = Instant::now() + DRAIN;
    loop {
        match watch.guard(until, exchange.read()).await {
            Ok(Ok(Some(_))) if Instant::now() < until => {}
            Ok(Ok(None)) => {
                // Lets the connection's own task put it back before the next request asks for one.
                return tokio::task::yield_now().await;
            }
            _ => return,
        }
    }
}
