//! Which run a leg goes on with: found by paused run, message, answer or session, held by the leg, and
//! only if the conversation is its own: it shows the calls, or all that the journal has.

use raf_core::{
    ChatMessage, Error, ErrorKind, MessageRole, Result, RunRecord, ToolApprovalResponse, ToolCall,
    ToolResult,
};

use crate::function_invoking::durable::is_conversation_of;
use crate::function_invoking::leg::Leg;
use crate::function_invoking::records;

/// The open record that this leg belongs to, held by the leg. Of a session it is also a run without open
/// calls whose owner died, if this is its conversation: unless the caller has a name for the run that begins.
pub(super) async fn open_record(
    leg: &mut Leg,
    answers: &[ToolApprovalResponse],
    is_named: bool,
) -> Result<Option<RunRecord>> {
    let mut candidates = Vec::new();
    if let Some(paused) = leg.options.paused_run.take() {
        if !paused.is_supported() {
            return Err(Error::misuse(
                "the paused run was written by a later version: update raf to resume it",
            ));
        }
        let record = paused.into_record();
        if !is_of_session(&record, leg) {
            return Err(Error::misuse(
                "the paused run belongs to another session: give the session id that it was \
                 started with",
            ));
        }
        // With both a store and a value, the store's record wins.
        if leg.store.load(&record.run_id).await?.is_none() {
            let _ = leg.store.create(&record, None).await?;
        }
        candidates.push(record.run_id);
    }
    let asking = leg
        .input()
        .iter()
        .rev()
        .find(|message| message.tool_calls().next().is_some());
    candidates.extend(asking.and_then(ChatMessage::paused_run_id));
    for answer in answers {
        candidates.extend(leg.store.find_request(&answer.request_id).await?);
    }
    if let Some(session) = leg.options.session_id.clone() {
        let open = leg.store.list_open(Some(&session)).await?;
        candidates.extend(open.into_iter().rev().map(|record| record.run_id));
    }
    for run_id in candidates {
        let Some(record) = leg.store.load(&run_id).await? else {
            continue;
        };
        if record.closed || !is_of_session(&record, leg) {
            continue;
        }
        let is_shown = shown_calls(leg.input(), &record).is_some();
        if !is_shown {
            let is_of_dead = record.working && record.calls.is_empty();
            let is_of_session = record.session_id.is_some() && !is_named;
            if !is_of_dead || !is_of_session || !is_conversation_of(leg, &run_id).await? {
                continue;
            }
        }
        let claimed = match records::claim(leg, &run_id).await {
            // It is in flight, and its calls are not what this conversation is about.
            Err(error) if !is_shown && error.kind() == ErrorKind::BusySession => continue,
            claimed => claimed?,
        };
        if let Some(record) = claimed.filter(|record| !record.closed) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Whether a leg may go on with a run: a run of a session belongs to that session alone, whatever the
/// messages and answers of another one say.
pub(super) fn is_of_session(record: &RunRecord, leg: &Leg) -> bool {
    record.session_id.is_none() || record.session_id == leg.options.session_id
}

/// The calls of a record as the messages show them.
pub(super) struct Shown {
    pub(super) calls: Vec<ToolCall>,
    /// Results that no loop made, in order.
    pub(super) results: Vec<ToolResult>,
    /// A message of the user stands behind them.
    pub(super) new_message: bool,
    /// A reply of the model stands behind them: the conversation went on without an answer.
    pub(super) moved_on: bool,
}

/// Finds the message that asks for the calls of a record: it names the run, or its calls have the
/// same ids.
pub(super) fn shown_calls(messages: &[ChatMessage], record: &RunRecord) -> Option<Shown> {
    let ids: Vec<&str> = record.calls.iter().map(|call| call.call.id()).collect();
    let place = messages.iter().rposition(|message| {
        let asks = message.role() == MessageRole::Assistant
            && message.tool_calls().count() == ids.len()
            && !ids.is_empty();
        // A run can have moved on to a round that the caller never saw: its leg was dropped.
        asks && match (message.paused_run_id(), message.paused_round()) {
            (Some(run_id), Some(round)) => run_id == record.run_id && round == record.round,
            (Some(run_id), None) => run_id == record.run_id,
            (None, _) => {
                let shown = message.tool_calls().map(ToolCall::id);
                shown.eq(ids.iter().copied())
            }
        }
    })?;
    let behind = &messages[place + 1..];
    Some(Shown {
        calls: messages[place].tool_calls().cloned().collect(),
        results: behind
            .iter()
            .flat_map(ChatMessage::tool_results)
            .filter(|result| result.occurrence().is_none())
            .cloned()
            .collect(),
        new_message: behind
            .iter()
            .any(|message| message.role() == MessageRole::User),
        moved_on: behind
            .iter()
            .any(|message| message.role() == MessageRole::Assistant),
    })
}
