//! What waits for the outside: requests are made, kept in the record, then announced.

use std::time::{Duration, SystemTime};

use raf_core::{
    AgentResponseUpdate, ApprovalRequest, FinishReason, Result, RunRecord, ToolOutcome, WaitsFor,
};
use raf_tools::OpenBatch;

use super::leg::Leg;
use super::options::FunctionInvokingOptions;
use super::records::{self, Saving};

/// Makes the requests of what waits, each once, and keeps the record. They are announced behind that.
pub(super) async fn pause(
    batch: &mut OpenBatch,
    leg: &mut Leg,
    options: &FunctionInvokingOptions,
) -> Result<FinishReason> {
    for (occurrence, result) in std::mem::take(&mut leg.unshown) {
        let update = AgentResponseUpdate::ToolCalled { occurrence, result };
        leg.emit(update).await;
    }
    let requests = {
        let (now, leg) = (now_ms(), &*leg);
        batch.make_requests(|request| asked(request, leg, options, now))
    };
    if let Err(error) = records::save(leg, batch, Saving::Pause).await {
        // Nobody could answer: the calls get their outcome, so that the transcript stays valid.
        let outcome = ToolOutcome::Cancelled { started: false };
        for settled in batch.settle_rest(outcome) {
            leg.settle(settled).await;
        }
        return Err(error);
    }
    leg.unannounced = requests;
    let decides = |call: &raf_core::PendingCall| !matches!(call.waits_for, WaitsFor::ToolResult);
    Ok(if batch.pending().iter().any(decides) {
        FinishReason::AwaitingApproval
    } else {
        FinishReason::AwaitingToolResults
    })
}

/// A request with who asks, since when, and until when it may be answered.
fn asked(
    request: ApprovalRequest,
    leg: &Leg,
    options: &FunctionInvokingOptions,
    now: u64,
) -> ApprovalRequest {
    let lifetime = options.approval_lifetime.map(milliseconds);
    let until = lifetime.map(|lifetime| now.saturating_add(lifetime));
    request
        .with_asker(leg.asked_by.clone(), leg.options.session_id.clone())
        .with_times(now, until)
}

/// The time of day in milliseconds since 1970 began: looked at within a step, whose value keeps it.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    milliseconds(since.unwrap_or_default())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Says what waits, once its record is kept.
pub(super) async fn announce(leg: &mut Leg) {
    let record = leg.run.record.as_deref();
    leg.pending = record.map(RunRecord::pending).unwrap_or_default();
    for request in std::mem::take(&mut leg.unannounced) {
        let request = Box::new(request);
        leg.emit(AgentResponseUpdate::ToolApprovalRequest { request })
            .await;
    }
}
