//! The start of a leg: does it go on with a run that waits, and with what? Answers are matched with
//! the record, never with the messages (contract E2, E3, I1, I3).

use raf_core::{
    AgentResponseUpdate, ApprovalDecision, ApprovalRule, ApprovalScope, ChatMessage, ClosedReason,
    Error, ErrorKind, MessageRole, PendingCall, RefusalReason, Result, RunId, RunRecord,
    Settlement, ToolApprovalResponse, ToolCall, ToolResult, canonical_json,
};
use raf_tools::{Applied, CallState, OpenBatch, Preparation, SettledCall, ToolSet};
use serde_json::Value;

use super::leg::Leg;
use super::options::{FunctionInvokingOptions, NewMessagePolicy};
use super::policy::{self, PolicyFacts};
use super::records;

/// What a leg begins with.
pub(super) enum Beginning {
    /// A model request.
    Ask,
    /// A batch of a run that waited.
    GoOn {
        batch: OpenBatch,
        /// A new message of the user came: what stays undecided is superseded.
        superseded: bool,
    },
    /// Nothing: the run waits as before.
    StillWaiting(OpenBatch),
}

/// Looks at answers, paused run and messages, and acts on what fits.
///
/// # Errors
/// Refused answers with nothing else to do, a busy run, a tool that cannot be found, a failing
/// store. Nothing runs for any of them, and what was pending stays pending.
pub(super) async fn begin(
    leg: &mut Leg,
    tools: &ToolSet,
    options: &FunctionInvokingOptions,
) -> Result<Beginning> {
    let answers = std::mem::take(&mut leg.options.tool_approval_responses);
    let Some(record) = open_record(leg, &answers).await? else {
        return without_record(leg, &answers).await;
    };
    let rules_scope = scope(leg, &record.run_id);
    let run_id = record.run_id.clone();
    let shown = shown_calls(leg.input(), &record);
    if shown.as_ref().is_some_and(|shown| shown.moved_on) {
        leg.run = records::restore(record)?;
        records::close(leg, ClosedReason::Superseded).await?;
        leg.run = super::leg::Run::new();
        return without_record(leg, &answers).await;
    }
    leg.pending = record.pending();
    let preparation = Preparation {
        tools,
        options: &options.execution,
        run_id: &run_id,
        extensions: &leg.options.extensions,
    };
    let mut batch = OpenBatch::from_record(preparation, record.round, &record.calls)?;
    let mut step = Step::new(record, batch.clone());
    let rules = leg.store.remembered(&rules_scope).await?;
    let session_id = leg.options.session_id.clone();
    let facts = PolicyFacts {
        policy: options.approval_policy.as_deref(),
        rules: &rules,
        denied: &[],
        session_id: session_id.as_deref(),
        untrusted_context: options.approval_policy.is_some() && leg.has_untrusted_text(),
    };
    for answer in &answers {
        step.answer(&mut batch, answer, shown.as_ref(), facts);
    }
    if let Some(shown) = &shown {
        step.results_of_caller(&mut batch, shown);
    }
    step.elsewhere(leg).await?;
    let superseded = shown.is_some_and(|shown| shown.new_message);
    let undecided = batch
        .calls()
        .iter()
        .any(|call| call.state.is_undecided() || matches!(call.state, CallState::DeclaredOnly));
    if superseded && undecided && options.new_message_policy == NewMessagePolicy::Reject {
        leg.store.release(&run_id, &leg.claim).await?;
        return Err(Error::misuse(
            "a new message came while calls are pending: answer them first",
        ));
    }
    for refusal in &step.refusals {
        leg.emit(AgentResponseUpdate::ToolApprovalRefused {
            request_id: refusal.0.as_str().into(),
            reason: refusal.1,
        })
        .await;
    }
    if !step.acted && !superseded && !batch.is_done() && !step.has_unfinished() {
        if let Some(refusal) = step.refusals.first() {
            leg.store.release(&run_id, &leg.claim).await?;
            return Err(refused(refusal));
        }
        leg.run = records::restore(step.record)?;
        return Ok(Beginning::StillWaiting(batch));
    }
    leg.run = records::restore(step.record)?;
    leg.run.denied.append(&mut step.denied);
    leg.first_request = superseded;
    records::save(leg, &batch, true).await?;
    for rule in step.remember {
        leg.store.remember(&rules_scope, rule).await?;
    }
    leg.pending.clear();
    Ok(Beginning::GoOn { batch, superseded })
}

/// What waits in the run that the leg would go on with, for a leg that is stopped before it begins.
/// Nothing is acted on.
///
/// # Errors
/// As [`begin`], of which this is the look-up.
pub(super) async fn waiting(leg: &mut Leg) -> Result<Vec<PendingCall>> {
    let answers = leg.options.tool_approval_responses.clone();
    let Some(record) = open_record(leg, &answers).await? else {
        return Ok(Vec::new());
    };
    leg.store.release(&record.run_id, &leg.claim).await?;
    let moved_on = shown_calls(leg.input(), &record).is_some_and(|shown| shown.moved_on);
    Ok(if moved_on {
        Vec::new()
    } else {
        record.pending()
    })
}

/// Where the rules of a run are kept.
pub(super) fn scope(leg: &Leg, run_id: &RunId) -> String {
    match &leg.options.session_id {
        Some(session) => format!("session:{session}"),
        None => run_id.to_string(),
    }
}

/// The open record that this leg belongs to, held by the leg.
async fn open_record(leg: &mut Leg, answers: &[ToolApprovalResponse]) -> Result<Option<RunRecord>> {
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
        if record.closed
            || !is_of_session(&record, leg)
            || shown_calls(leg.input(), &record).is_none()
        {
            continue;
        }
        let claimed = records::claim(leg, &run_id).await?;
        if let Some(record) = claimed.filter(|record| !record.closed) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Whether a leg may go on with a run: a run of a session belongs to that session alone, whatever the
/// messages and answers of another one say.
fn is_of_session(record: &RunRecord, leg: &Leg) -> bool {
    record.session_id.is_none() || record.session_id == leg.options.session_id
}

/// A leg without an open record: every answer is refused; a new message is answered all the same.
async fn without_record(leg: &mut Leg, answers: &[ToolApprovalResponse]) -> Result<Beginning> {
    let mut first = None;
    for answer in answers.iter().filter(|answer| answer.decision.is_some()) {
        let reason = refusal_of(leg, &answer.request_id).await?;
        first.get_or_insert((answer.request_id.clone(), reason));
        leg.emit(AgentResponseUpdate::ToolApprovalRefused {
            request_id: answer.request_id.as_str().into(),
            reason,
        })
        .await;
    }
    let new_message = leg
        .input()
        .last()
        .is_some_and(|message| message.role() == MessageRole::User);
    match first {
        Some(refusal) if !new_message => Err(refused(&refusal)),
        _ => Ok(Beginning::Ask),
    }
}

/// Why an answer that fits no open call of this conversation is refused.
async fn refusal_of(leg: &Leg, request_id: &str) -> Result<RefusalReason> {
    let Some(run_id) = leg.store.find_request(request_id).await? else {
        return Ok(RefusalReason::UnknownRequest);
    };
    let record = leg.store.load(&run_id).await?;
    Ok(match record.filter(|record| is_of_session(record, leg)) {
        None => RefusalReason::UnknownRequest,
        Some(record) => match record.settlement(request_id) {
            Some(settlement) => settlement.refusal(),
            // Open, yet the conversation does not show its call.
            None => RefusalReason::ArgsMismatch,
        },
    })
}

fn refused(refusal: &(String, RefusalReason)) -> Error {
    let (request_id, reason) = refusal;
    Error::new(
        ErrorKind::ApprovalRefused,
        format!("the answer to request '{request_id}' was refused: {reason}. Nothing was run"),
    )
    .with_code(reason.as_str())
}

/// The calls of a record as the messages show them.
struct Shown {
    calls: Vec<ToolCall>,
    /// Results that no loop made, in order.
    results: Vec<ToolResult>,
    /// A message of the user stands behind them.
    new_message: bool,
    /// A reply of the model stands behind them: the conversation went on without an answer.
    moved_on: bool,
}

/// Finds the message that asks for the calls of a record: it names the run, or its calls have the
/// same ids.
fn shown_calls(messages: &[ChatMessage], record: &RunRecord) -> Option<Shown> {
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

/// Whether two calls ask for the same thing.
fn is_same_call(shown: &ToolCall, recorded: &ToolCall) -> bool {
    let arguments = |call: &ToolCall| match call.parsed_arguments() {
        Ok(arguments) => canonical_json(&Value::Object(arguments.clone())),
        Err(_) => call.arguments().to_owned(),
    };
    shown.name() == recorded.name() && arguments(shown) == arguments(recorded)
}

/// What the answers of a leg come to, before anything is written.
struct Step {
    record: RunRecord,
    /// The batch as recorded.
    before: OpenBatch,
    acted: bool,
    refusals: Vec<(String, RefusalReason)>,
    denied: Vec<(String, String)>,
    remember: Vec<ApprovalRule>,
    /// Answers that name no request of this run.
    foreign: Vec<String>,
}

impl Step {
    fn new(record: RunRecord, before: OpenBatch) -> Self {
        Self {
            record,
            before,
            acted: false,
            refusals: Vec::new(),
            denied: Vec::new(),
            remember: Vec::new(),
            foreign: Vec::new(),
        }
    }

    fn answer(
        &mut self,
        batch: &mut OpenBatch,
        answer: &ToolApprovalResponse,
        shown: Option<&Shown>,
        facts: PolicyFacts<'_>,
    ) {
        let Some(decision) = &answer.decision else {
            return;
        };
        let request_id = answer.request_id.clone();
        if let Some(settlement) = self.record.settlement(&request_id) {
            self.refusals.push((request_id, settlement.refusal()));
            return;
        }
        if let Some(recorded) = self.record.open_request(&request_id) {
            let call = shown.and_then(|shown| shown.calls.get(recorded.position as usize));
            if !call.is_some_and(|call| is_same_call(call, &recorded.call)) {
                self.refusals
                    .push((request_id, RefusalReason::ArgsMismatch));
                return;
            }
        }
        match batch.apply(answer) {
            Ok(Applied::Settled {
                request_id,
                occurrence,
                approved,
            }) => {
                self.acted = true;
                self.record.settle(&request_id, Settlement::Answered);
                if approved {
                    self.approved(batch, occurrence, answer, facts);
                } else if matches!(decision, ApprovalDecision::Deny { .. }) {
                    self.denied(occurrence);
                }
            }
            Ok(Applied::Routed { request_id, .. }) => {
                self.acted = true;
                self.record.settle(&request_id, Settlement::Answered);
            }
            Ok(_) => {}
            Err(RefusalReason::UnknownRequest) => self.foreign.push(request_id),
            Err(reason) => self.refusals.push((request_id, reason)),
        }
    }

    /// A policy can take back what was approved; a wider yes becomes a rule.
    fn approved(
        &mut self,
        batch: &mut OpenBatch,
        occurrence: raf_core::Occurrence,
        answer: &ToolApprovalResponse,
        facts: PolicyFacts<'_>,
    ) {
        let call = batch
            .calls()
            .iter()
            .find(|call| call.occurrence == occurrence);
        let Some(CallState::Ready(ready)) = call.map(|call| call.state.clone()) else {
            return;
        };
        if let Some(text) = policy::tightens(&ready, facts) {
            let outcome = raf_core::ToolOutcome::Denied;
            let settled = SettledCall::new(occurrence, &ready.call, outcome, Some(text));
            batch.set(occurrence, CallState::Settled(settled));
            return;
        }
        if let Some(remember) = answer.remember {
            self.remember.push(ApprovalRule {
                tool: ready.tool.name().to_owned(),
                arguments: match remember {
                    ApprovalScope::ArgumentsInSession => Some(policy::canonical(&ready)),
                    _ => None,
                },
            });
        }
    }

    fn denied(&mut self, occurrence: raf_core::Occurrence) {
        let call = self
            .before
            .calls()
            .iter()
            .find(|call| call.occurrence == occurrence);
        if let Some(CallState::Gated { ready, .. }) = call.map(|call| &call.state) {
            let tool = ready.tool.name().to_owned();
            self.denied.push((tool, policy::canonical(ready)));
        }
    }

    /// Results that the caller gives: those of declared-only tools settle their calls, one for a call
    /// that waits for a decision is of the wrong category (contract I4).
    fn results_of_caller(&mut self, batch: &mut OpenBatch, shown: &Shown) {
        let mut results: Vec<&ToolResult> = shown.results.iter().collect();
        for call in self.before.calls() {
            let given = results
                .iter()
                .position(|result| result.call_id() == call.call.id());
            let Some(given) = given else { continue };
            match &call.state {
                CallState::DeclaredOnly => {
                    batch.answered_by_caller(call.occurrence, results.remove(given));
                    self.acted = true;
                }
                state if state.is_undecided() => {
                    results.remove(given);
                    let position = call.occurrence.position as usize;
                    let record = self.record.calls.get(position);
                    let request_id = record.and_then(|call| call.status.request_id());
                    if let Some(request_id) = request_id {
                        let refusal = (request_id.to_owned(), RefusalReason::WrongCategory);
                        self.refusals.push(refusal);
                    }
                }
                _ => {}
            }
        }
    }

    /// Answers that belong to other runs or to none.
    async fn elsewhere(&mut self, leg: &Leg) -> Result<()> {
        for request_id in std::mem::take(&mut self.foreign) {
            let reason = match refusal_of(leg, &request_id).await? {
                // Open, yet of another conversation.
                RefusalReason::ArgsMismatch => RefusalReason::UnknownRequest,
                other => other,
            };
            self.refusals.push((request_id, reason));
        }
        Ok(())
    }

    /// Whether the record holds calls that an earlier leg left in the middle: bodies without an
    /// outcome, approved calls that were not run.
    fn has_unfinished(&self) -> bool {
        let hold = raf_tools::HoldPolicy {
            mode: raf_tools::ExecutionMode::Parallel,
            whole_batch: false,
        };
        self.record
            .calls
            .iter()
            .any(|call| matches!(call.status, raf_core::CallStatus::Started))
            && !self.before.clone().take_runnable(hold).is_empty()
    }
}
