//! Asks the handler about what waits: silence, errors and panics leave it open.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::{FutureExt, StreamExt, stream};
use raf_core::{PendingCall, ToolApprovalResponse, WaitsFor};

use super::handler::{HandlerError, IApprovalHandler, PendingQuestion};

/// The id by which an answer names what a call waits for, where a handler can be asked.
pub(super) fn request_id(pending: &PendingCall) -> Option<&str> {
    match &pending.waits_for {
        WaitsFor::Approval(request) => Some(&request.request_id),
        WaitsFor::Data { request_id, .. } => Some(request_id),
        _ => None,
    }
}

/// The handler's answers, in call order.
pub(super) async fn ask_all(
    handler: &dyn IApprovalHandler,
    pending: Vec<PendingCall>,
    at_once: usize,
) -> Vec<ToolApprovalResponse> {
    stream::iter(pending)
        .map(|pending| ask(handler, pending))
        .buffered(at_once)
        .filter_map(std::future::ready)
        .collect()
        .await
}

async fn ask(handler: &dyn IApprovalHandler, pending: PendingCall) -> Option<ToolApprovalResponse> {
    let PendingCall {
        occurrence,
        call,
        waits_for,
        ..
    } = pending;
    match waits_for {
        WaitsFor::Approval(request) => {
            let decided = async { handler.decide(&request).await };
            let answer = settled(decided, &request.request_id, &request.tool).await?;
            Some(answer.respond_to(&request))
        }
        WaitsFor::Data {
            request_id,
            address,
            information,
        } => {
            let question = PendingQuestion {
                request_id,
                occurrence,
                call,
                address,
                information,
            };
            let answered = async { handler.answer(&question).await };
            let tool = question.call.name();
            let answer = settled(answered, &question.request_id, tool).await?;
            Some(answer.respond_to(&question))
        }
        _ => None,
    }
}

async fn settled<T>(
    asked: impl Future<Output = Result<Option<T>, HandlerError>>,
    request_id: &str,
    tool: &str,
) -> Option<T> {
    match AssertUnwindSafe(asked).catch_unwind().await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            tracing::warn!(request_id, tool, %error, "the approval handler failed: the call waits");
            None
        }
        Err(_) => {
            tracing::error!(
                request_id,
                tool,
                "the approval handler panicked: the call waits"
            );
            None
        }
    }
}
