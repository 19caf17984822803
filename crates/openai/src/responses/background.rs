//! The exchanges of one run: mostly one; another where the server has lost what it held, and further
//! ones where a background response is taken up again.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{
    AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Emitter, Error, ErrorKind, Finish,
    Result,
};
use raf_wire::{Address, Dialogue, DialogueSetup, Opened, WireReply};

use super::cancel::PATIENCE;
use super::client::Inner;
use super::reading::ResponsesReply;
use super::request::Built;
use super::run_options::ResponsesContinuation;

/// How often a stream that breaks off is taken up again without that anything new comes.
const MOST_RESUMES: u32 = 5;

/// The first wait before a response is asked for again; it doubles up to the longest one.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// What a run needs beyond its setup.
pub(super) struct Run {
    pub(super) client: Arc<Inner>,
    pub(super) model: String,
    pub(super) options: ChatClientRunOptions,
    pub(super) url: Address,
    pub(super) built: Built,
    /// The conversation, where the server may not have what the request goes on with.
    pub(super) whole: Option<Vec<ChatMessage>>,
    pub(super) continuation: Option<ResponsesContinuation>,
}

/// Asks, reads the reply, and says what it says.
pub(super) async fn drive(
    setup: DialogueSetup,
    mut run: Run,
    mut out: Emitter<AgentResponseUpdate>,
) -> Result<()> {
    let reporter = setup.reporter.clone();
    let limits = setup.limits;
    let mut dialogue = Dialogue::begin(setup)?;
    let mut resumed = None;
    let mut opened = match &run.continuation {
        Some(token) => {
            let url = run
                .client
                .resume_url(&token.response_id, token.starting_after);
            resumed = Some(token.response_id.clone());
            dialogue.get(&url).await?
        }
        None => ask(&mut dialogue, &mut run).await?,
    };
    let mut asked = std::mem::take(&mut run.built.asked);
    if let Some(id) = resumed {
        asked.response_id = Some(id);
        asked.can_resume = true;
        asked.is_stored = true;
    }
    let can_resume = asked.can_resume;
    let mut reply = ResponsesReply::new(asked, reporter, &limits);
    let mut fruitless = 0;
    let mut polls = 0;
    let finish = loop {
        let before = reply.last_sequence();
        let heard = dialogue
            .listen(&mut opened, &mut reply, &run.built.restore, &mut out)
            .await;
        if let Err(error) = &heard
            && can_resume
        {
            cancel_with_run(&run.client, error, &reply).await;
        }
        let wait = match heard {
            Ok(_) if can_resume && reply.is_unfinished() => {
                polls += 1;
                wait(polls)
            }
            Ok(finish) => break finish,
            Err(error) if can_resume && is_cut(&error) => {
                let is_fruitless = reply.last_sequence() == before;
                fruitless = if is_fruitless { fruitless + 1 } else { 1 };
                if fruitless > MOST_RESUMES || reply.response_id().is_none() {
                    return Err(give_up(error, &mut reply, &mut out).await);
                }
                wait(fruitless)
            }
            Err(error) => return Err(give_up(error, &mut reply, &mut out).await),
        };
        reply.goes_on();
        opened = match again(&mut dialogue, &run, &mut reply, wait).await {
            Ok(opened) => opened,
            Err(error) => {
                cancel_with_run(&run.client, &error, &reply).await;
                return Err(give_up(error, &mut reply, &mut out).await);
            }
        };
    };
    if reply.is_done() {
        dialogue.drain(opened).await;
    }
    end(finish, &mut out).await;
    Ok(())
}

async fn end(finish: Finish, out: &mut Emitter<AgentResponseUpdate>) {
    out.emit(AgentResponseUpdate::finish(finish)).await;
}

/// Sends the request; if the server does not have what it goes on with, once more as a whole.
async fn ask(dialogue: &mut Dialogue, run: &mut Run) -> Result<Opened> {
    let sent = dialogue.post(&run.url, run.built.body.clone()).await;
    match (sent, run.whole.take()) {
        (Err(error), Some(messages)) if is_unknown_previous(&error) => {
            tracing::warn!(
                "the server does not have the response that the conversation goes on with: all of it \
                 is sent"
            );
            run.built = run
                .client
                .build(&messages, &run.options, &run.model, true)?;
            dialogue.post(&run.url, run.built.body.clone()).await
        }
        (sent, _) => sent,
    }
}

/// Asks for the response again, behind what was read of it.
async fn again(
    dialogue: &mut Dialogue,
    run: &Run,
    reply: &mut ResponsesReply,
    wait: Duration,
) -> Result<Opened> {
    let mut tries = 0;
    let mut wait_for = wait;
    loop {
        dialogue.pause(wait_for).await?;
        let id = reply.response_id().unwrap_or_default();
        let url = run.client.resume_url(id, reply.last_sequence());
        match dialogue.get(&url).await {
            Err(error) if error.is_temporary() && tries < MOST_RESUMES => {
                tries += 1;
                wait_for = error.retry_after().unwrap_or_else(|| self::wait(tries));
            }
            opened => return opened,
        }
    }
}

/// Whoever cancels a run wants nothing more of its response. One whose deadline passed, or that failed, can
/// be taken up again. The run ends in its own error, whatever becomes of this.
async fn cancel_with_run(client: &Inner, error: &Error, reply: &ResponsesReply) {
    let (ErrorKind::Cancelled, Some(id)) = (error.kind(), reply.response_id()) else {
        return;
    };
    if let Err(error) = client.cancel(id, Some(PATIENCE)).await {
        tracing::warn!(response_id = id, %error, "the response goes on: it could not be cancelled");
    }
}

/// The error of a run that ends with it: usage goes out before, and how to go on goes along.
async fn give_up(
    error: Error,
    reply: &mut ResponsesReply,
    out: &mut Emitter<AgentResponseUpdate>,
) -> Error {
    reply.fail();
    for update in reply.updates().drain(..) {
        out.emit(update).await;
    }
    match reply.response_id() {
        Some(id) => error.with_context("response_id", id),
        None => error,
    }
}

fn wait(tries: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(8));
    doubled.min(LONGEST_WAIT)
}

/// Whether the stream broke off, and the response goes on.
fn is_cut(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::TruncatedStream | ErrorKind::Transport | ErrorKind::EmptyResponse
    ) || (error.kind() == ErrorKind::Timeout
        && !error
            .context()
            .iter()
            .any(|(name, value)| *name == "timeout" && value == "deadline"))
}

/// Whether the server says that it does not have the response, or keeps none. The code tells; servers
/// without codes say it in words (wire cases 583 to 585).
fn is_unknown_previous(error: &Error) -> bool {
    if error.code() == Some("previous_response_not_found") {
        return true;
    }
    let is_refused = matches!(error.status(), Some(400 | 404));
    is_refused
        && error
            .message()
            .to_ascii_lowercase()
            .contains("previous response")
}
