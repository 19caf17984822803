//! What a step leaves behind: versioned JSON that a person can read, and the leg as it stood behind it.

use std::collections::BTreeSet;

use raf_core::{
    AbandonedCall, AgentResponseUpdate, ApprovalRequest, ChatMessage, Error, ErrorKind,
    MessageRole, Occurrence, PendingCall, Result, RunRecord, ToolResult, Usage,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::function_invoking::leg::Leg;
use crate::function_invoking::records;

/// The version of these forms.
pub(in crate::function_invoking) const FORMAT: u32 = 1;

/// How far a leg is kept.
#[derive(Debug, Default)]
pub(in crate::function_invoking) struct Kept {
    /// Messages of the leg's own that are, up to the results at their end: those are put in call order,
    /// and one that comes later may stand before one that is kept.
    saved: usize,
    /// The results behind them that are.
    results: BTreeSet<Occurrence>,
    /// What the caller brought and the journal lacks.
    pub(in crate::function_invoking) input: Vec<ChatMessage>,
    /// Whether the record has changed since it was written.
    pub(in crate::function_invoking) changed: bool,
}

impl Kept {
    /// Notes that these messages are, and all before a place.
    pub(in crate::function_invoking) fn keep(&mut self, until: usize, messages: &[ChatMessage]) {
        self.saved = self.saved.max(until);
        let results = messages.iter().flat_map(ChatMessage::tool_results);
        self.results
            .extend(results.filter_map(ToolResult::occurrence));
    }

    /// What of these is not: all up to the end, or up to the results of a batch in flight.
    fn lacking(&mut self, new: &[ChatMessage], before_batch: bool) -> Vec<ChatMessage> {
        let until = new.len() - trailing_results(new);
        let end = if before_batch { until } else { new.len() };
        let is_new = |message: &&ChatMessage| {
            let mut places = message.tool_results().filter_map(ToolResult::occurrence);
            !places.any(|place| self.results.contains(&place))
        };
        let from = self.saved.min(end);
        let lacking: Vec<ChatMessage> = new[from..end].iter().filter(is_new).cloned().collect();
        self.keep(until, &lacking);
        lacking
    }

    /// Whether messages stand in the transcript that are not.
    pub(in crate::function_invoking) fn lacks(&self, new: &[ChatMessage]) -> bool {
        self.saved < new.len() - trailing_results(new)
    }
}

/// How many messages at the end are results.
pub(in crate::function_invoking) fn trailing_results(messages: &[ChatMessage]) -> usize {
    let is_result = |message: &&ChatMessage| message.role() == MessageRole::Tool;
    messages.iter().rev().take_while(is_result).count()
}

/// The value of a step: what is new, never what is kept already.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::function_invoking) struct StepValue {
    pub(in crate::function_invoking) format: u32,
    /// What the caller brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::function_invoking) input: Vec<ChatMessage>,
    /// What the run added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::function_invoking) messages: Vec<ChatMessage>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(in crate::function_invoking) decided: Value,
    /// The leg behind the step, for a host that replays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leg: Option<LegState>,
    /// The run behind the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::function_invoking) record: Option<Box<RunRecord>>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// What a leg knows beside its run and its transcript.
#[derive(Debug, Serialize, Deserialize)]
struct LegState {
    first_request: bool,
    nudged: bool,
    /// Whether the run has a record in its store.
    recorded: bool,
    /// Who writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
    usage: Usage,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pending: Vec<PendingCall>,
    /// Requests that were made, to be announced behind the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<ApprovalRequest>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    abandoned: Vec<AbandonedCall>,
}

/// The value of a step that was entered.
pub(super) fn value(leg: &mut Leg, decided: &impl Serialize, before_batch: bool) -> Result<Value> {
    let is_durable = leg.is_durable();
    let replayed = (!is_durable).then(|| (leg_state(leg), records::snapshot(leg)));
    let record = leg.run.record.clone();
    let Some((kept, new)) = leg.kept() else {
        return Ok(Value::Null);
    };
    let messages = kept.lacking(new, before_batch);
    let record = record.filter(|_| std::mem::take(&mut kept.changed));
    let input = std::mem::take(&mut kept.input);
    let (state, record) = match replayed {
        Some((state, record)) => (Some(state), Some(record)),
        None => (None, record),
    };
    let value = StepValue {
        format: FORMAT,
        input,
        messages,
        decided: to_json(decided)?,
        leg: state,
        record,
        unknown: Map::new(),
    };
    to_json(&value)
}

fn leg_state(leg: &Leg) -> LegState {
    LegState {
        first_request: leg.first_request,
        nudged: leg.nudged,
        recorded: leg.run.record.is_some(),
        writer: leg.writer.clone(),
        usage: leg.usage().clone(),
        pending: leg.pending.clone(),
        requests: leg.unannounced.clone(),
        abandoned: leg.abandoned.clone(),
    }
}

/// Takes a step from its value: its messages are emitted, the leg stands where it stood.
///
/// # Errors
/// [`ErrorKind::Store`] for a value that cannot be read, or of a later version.
pub(super) async fn restore<T: DeserializeOwned>(leg: &mut Leg, value: Value) -> Result<T> {
    let value: StepValue = serde_json::from_value(value).map_err(unreadable)?;
    supported(value.format)?;
    for message in value.messages {
        emit_message(leg, message).await;
    }
    if let Some((kept, new)) = leg.kept() {
        let _ = kept.lacking(new, false);
    }
    if let Some(record) = value.record {
        let state = value.leg.as_ref();
        let recorded = state.is_none_or(|state| state.recorded);
        leg.options.session_id.clone_from(&record.session_id);
        leg.run = records::restore(*record)?;
        leg.open = None;
        if !recorded {
            leg.restorable = leg.run.record.take();
        }
    }
    if let Some(state) = value.leg {
        leg.first_request = state.first_request;
        leg.nudged = state.nudged;
        leg.writer = state.writer;
        leg.set_usage(state.usage);
        leg.pending = state.pending;
        leg.unannounced = state.requests;
        leg.abandoned = state.abandoned;
    }
    serde_json::from_value(value.decided).map_err(unreadable)
}

/// Emits a message whole: results by the place of their call.
pub(in crate::function_invoking) async fn emit_message(leg: &mut Leg, message: ChatMessage) {
    let places: Option<Vec<_>> = message.tool_results().map(ToolResult::occurrence).collect();
    match places {
        Some(places) if !places.is_empty() => {
            for (occurrence, result) in places.into_iter().zip(message.tool_results()) {
                let result = result.clone();
                let update = AgentResponseUpdate::ToolCalled { occurrence, result };
                leg.emit(update).await;
            }
        }
        _ => leg.emit(AgentResponseUpdate::Message { message }).await,
    }
}

/// Whether this version can read a form of that version.
///
/// # Errors
/// [`ErrorKind::Store`] if not.
pub(in crate::function_invoking) fn supported(format: u32) -> Result<()> {
    if format <= FORMAT {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Store,
        "a later version wrote a step of the run's journal: update raf to go on with the run",
    )
    .with_code("later_format"))
}

fn to_json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::Store, "a step of the run has no JSON form").with_source(error)
    })
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Store, "the value of a step cannot be read")
        .with_code("corrupt")
        .with_source(error)
}
