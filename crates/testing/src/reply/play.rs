//! Plays a reply as a provider streams it.

use raf_core::{
    AgentResponseUpdate, Cancellation, Emitter, Error, ErrorKind, Finish, FinishReason,
    MessageRole, MessageStatus, Result, Usage,
};

use super::{Reply, Step};

/// Says the reply, framed as a message, up to its finish or its fault.
pub(crate) async fn play(
    reply: Reply,
    cancellation: Cancellation,
    mut out: Emitter<AgentResponseUpdate>,
) -> Result<()> {
    if let Some(error) = reply.error_at_start {
        return Err(error);
    }
    let steps = reply.streamed_steps();
    let faulty = steps.iter().any(Step::is_fault);
    let last_in_message = steps.iter().rposition(Step::is_in_message);
    let mut open = false;
    let mut usage = Usage::default();
    for (index, step) in steps.into_iter().enumerate() {
        if step.is_in_message() && !open && !reply.raw {
            open = true;
            out.emit(start(&reply)).await;
        }
        match &step {
            Step::Gate(latch) => latch.wait().await,
            Step::Error(error) => return Err(error.clone()),
            Step::Hang => std::future::pending().await,
            Step::HangUntilCancelled => {
                cancellation.token().cancelled().await;
                return Err(cancelled());
            }
            Step::Cut { .. } => return Ok(()),
            Step::Reset(_) => open = false,
            Step::Usage(report) => usage = report.clone(),
            _ => {}
        }
        if let Some(update) = step.to_update() {
            out.emit(update).await;
        }
        if open && !faulty && Some(index) == last_in_message {
            open = false;
            out.emit(end(&reply)).await;
        }
    }
    if reply.raw {
        return Ok(());
    }
    if last_in_message.is_none() {
        out.emit(start(&reply)).await;
        out.emit(end(&reply)).await;
    }
    let finish = Finish::new(reply.finish_reason()).with_usage(usage);
    out.emit(AgentResponseUpdate::finish(finish)).await;
    Ok(())
}

fn start(reply: &Reply) -> AgentResponseUpdate {
    AgentResponseUpdate::MessageStart {
        role: MessageRole::Assistant,
        message_id: reply.message_id.clone(),
    }
}

fn end(reply: &Reply) -> AgentResponseUpdate {
    let status = match reply.finish_reason() {
        FinishReason::Length | FinishReason::ContentFilter => MessageStatus::Incomplete,
        _ => MessageStatus::Complete,
    };
    AgentResponseUpdate::MessageEnd { status }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the run was cancelled by its token")
}
