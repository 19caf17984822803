//! What waits for an answer, over all runs of a store: the inbox of whoever decides.

use crate::approval::{ApprovalRequest, PendingCall};
use crate::identity::RunId;
use crate::record::RunRecord;

/// A request that waits for an answer of the outside.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PendingRequest {
    /// The run that waits.
    pub run_id: RunId,
    /// The session that the run belongs to.
    pub session_id: Option<String>,
    /// What waits: the call, its tool, its arguments, who asked, when, until when.
    pub pending: PendingCall,
    /// Whether an answer is kept that no leg has acted on yet.
    pub answered: bool,
    /// Until when it may be answered, in milliseconds since 1970 began, by the store's clock: the end of its
    /// own time, or of its run's if that comes first. `None`: there is no end, or the store does not say.
    pub answerable_until_ms: Option<u64>,
}

impl PendingRequest {
    /// What waits for an answer in a record; `answered` says of a request id whether one is kept.
    pub fn of(record: &RunRecord, answered: impl Fn(&str) -> bool) -> Vec<Self> {
        let asks = |call: &PendingCall| call.request_id().is_some();
        let pending = record.pending().into_iter().filter(asks);
        pending
            .map(|pending| Self {
                run_id: record.run_id.clone(),
                session_id: record.session_id.clone(),
                answered: pending.request_id().is_some_and(&answered),
                answerable_until_ms: pending.approval().and_then(|asked| asked.expires_at_ms),
                pending,
            })
            .collect()
    }

    /// Says when its run expires. For stores.
    pub fn with_run_expiry(mut self, run_expires_at_ms: u64) -> Self {
        let own = self.answerable_until_ms.unwrap_or(u64::MAX);
        self.answerable_until_ms = Some(own.min(run_expires_at_ms));
        self
    }

    /// The id by which an answer names it.
    pub fn request_id(&self) -> &str {
        self.pending.request_id().unwrap_or_default()
    }

    /// The request for a person's yes, if that is what waits.
    pub fn approval(&self) -> Option<&ApprovalRequest> {
        self.pending.approval()
    }
}
