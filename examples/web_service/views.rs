//! What is shown of runs and of what waits: to clients as JSON, to a person as text.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use raf_core::{ChatMessage, MessageRole, PendingRequest, Result, RunId, RunRecord};
use serde::Serialize;
use serde_json::Value;

use crate::settings::Stores;

/// Where a run stands, as the store has it.
#[derive(Debug, Serialize)]
pub(crate) struct RunView {
    pub(crate) run_id: RunId,
    pub(crate) session_id: Option<String>,
    pub(crate) state: RunState,
    /// The conversation of its session.
    pub(crate) messages: Vec<ChatMessage>,
    /// What it waits for.
    pub(crate) approvals: Vec<ApprovalView>,
}

/// JSON form: snake case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    /// A server plays it, or will when the lease of one that died has lapsed.
    Working,
    /// It waits for a person.
    Waiting,
    /// It is at its end.
    Ended,
}

impl RunView {
    /// What the store has of a run; `None` if it has none.
    ///
    /// # Errors
    /// A failing store.
    pub(crate) async fn load(stores: &Stores, run_id: &RunId) -> Result<Option<Self>> {
        // The record first: what a closed run said is in its session by then.
        let Some(record) = stores.runs.load(run_id).await? else {
            return Ok(None);
        };
        let session_id = record.session_id.clone();
        let session = match &session_id {
            Some(id) => stores.sessions.load(id).await?,
            None => None,
        };
        let pending = stores.runs.list_pending(session_id.as_deref()).await?;
        let own = pending.iter().filter(|waits| waits.run_id == *run_id);
        Ok(Some(Self {
            run_id: run_id.clone(),
            session_id,
            state: RunState::of(&record),
            messages: session.map_or_else(Vec::new, |session| session.messages),
            approvals: own.filter_map(ApprovalView::of).collect(),
        }))
    }

    /// What the agent said last, if the run is at its end.
    pub(crate) fn answer(&self) -> Option<String> {
        let last = self.messages.last()?;
        let answers = self.state == RunState::Ended && last.role() == MessageRole::Assistant;
        answers.then(|| last.text())
    }
}

impl RunState {
    fn of(record: &RunRecord) -> Self {
        match record {
            _ if record.closed => Self::Ended,
            _ if record.working => Self::Working,
            _ => Self::Waiting,
        }
    }
}

/// A call that waits for a person's yes.
#[derive(Debug, Serialize)]
pub(crate) struct ApprovalView {
    pub(crate) request_id: String,
    pub(crate) run_id: RunId,
    pub(crate) session_id: Option<String>,
    /// The agent that asks.
    pub(crate) asked_by: Option<String>,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// Milliseconds since 1970 began, as the next one.
    pub(crate) asked_at_ms: Option<u64>,
    pub(crate) answer_until_ms: Option<u64>,
    /// Whether there is an answer that no worker has acted on yet.
    pub(crate) answered: bool,
}

impl ApprovalView {
    /// All that waits, oldest run first.
    ///
    /// # Errors
    /// A failing store.
    pub(crate) async fn all(stores: &Stores) -> Result<Vec<Self>> {
        let pending = stores.runs.list_pending(None).await?;
        Ok(pending.iter().filter_map(Self::of).collect())
    }

    fn of(waits: &PendingRequest) -> Option<Self> {
        let request = waits.approval()?;
        Some(Self {
            request_id: request.request_id.clone(),
            run_id: waits.run_id.clone(),
            session_id: waits.session_id.clone(),
            asked_by: request.asked_by.clone(),
            tool: request.tool.clone(),
            arguments: request.arguments.clone(),
            asked_at_ms: request.asked_at_ms,
            answer_until_ms: waits.answerable_until_ms,
            answered: waits.answered,
        })
    }
}

impl fmt::Display for ApprovalView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |milliseconds: Option<u64>, otherwise: &str| match milliseconds {
            Some(time) => httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(time)),
            None => otherwise.to_owned(),
        };
        let (who, session) = (self.asked_by.as_deref(), self.session_id.as_deref());
        writeln!(f, "{}", self.request_id)?;
        writeln!(f, "  wants to run: {} {}", self.tool, self.arguments)?;
        write!(f, "  asked by:     {}", who.unwrap_or("an agent"))?;
        writeln!(f, ", in session {}", session.unwrap_or("none"))?;
        writeln!(f, "  asked at:     {}", time(self.asked_at_ms, "not said"))?;
        let until = time(self.answer_until_ms, "whenever");
        write!(f, "  answer until: {until}")?;
        if self.answered {
            write!(f, "\n  answered already")?;
        }
        Ok(())
    }
}
