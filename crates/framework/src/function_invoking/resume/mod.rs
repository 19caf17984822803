//! The start of a leg: does it go on with a run that waits, and with what? Answers are matched with
//! the record, never with the messages (contract E2, E3, I1, I3).

mod ahead;
mod find;
mod step;

use raf_core::{
    AgentResponseUpdate, Error, ErrorKind, MessageRole, PendingCall, RefusalReason, Result, RunId,
    RunRecord, ToolApprovalResponse,
};
use raf_tools::{CallState, HoldPolicy, OpenBatch, Preparation, ToolSet};

use self::find::{is_of_session, open_record, shown_calls};
use self::step::Step;
use super::durable::{self, Beyond, Nested, Recovered};
use super::leg::Leg;
use super::options::{ForeignCallPolicy, FunctionInvokingOptions, NewMessagePolicy};
use super::plan;
use super::policy::PolicyFacts;
use super::records::{self, Saving};
use super::run::Run;
use super::steps::{RunEnd, close_left_behind};

/// What a leg begins with.
pub(super) enum Beginning {
    /// A nested run that ended before the run around it heard of it.
    Ended(RunEnd),
    /// A model request.
    Ask,
    /// A run whose owner died between batches: it is asked again, and nothing is added.
    Continue,
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
    let mut answers = std::mem::take(&mut leg.options.tool_approval_responses);
    let mut journal = None;
    let found = match durable::nested_record(leg).await? {
        Some(Nested::Open(record, entries)) => {
            journal = Some(entries);
            Some((*record, true))
        }
        Some(Nested::Ended(end)) => return Ok(Beginning::Ended(end)),
        None => found(leg, &answers).await?,
    };
    let Some((mut record, by_id)) = found else {
        return without_record(leg, &answers, options).await;
    };
    let recovered = durable::recover(leg, &mut record, journal).await?;
    if leg.root.is_some() {
        // A nested run that is entered again gets answers again on which it has acted.
        answers.retain(|answer| record.settlement(&answer.request_id).is_none());
    }
    if let Some(ahead) = ahead::reply_ahead(leg, &recovered, &record).await? {
        refuse(leg, &answers).await?;
        return ahead::go_on(leg, record, &ahead, options).await;
    }
    if recovered.interrupted && record.calls.is_empty() {
        let is_left_behind = match recovered.beyond {
            // A reply that is not its own is that of a run which answers in its place.
            Beyond::MovedOn(_) | Beyond::Reply(_) => true,
            // Who names the run goes on with it.
            Beyond::Message => !by_id,
            Beyond::Nothing => false,
        };
        if is_left_behind {
            return left_behind(leg, record, &recovered, by_id, &answers, options).await;
        }
        refuse(leg, &answers).await?;
        leg.run = records::restore(record)?;
        leg.first_request = leg.run.counters.rounds == 0;
        return Ok(Beginning::Continue);
    }
    // Answers that came while nobody worked at the run.
    answers.extend(leg.store.answers(&record.run_id).await?);
    let rules_scope = scope(leg, &record.run_id);
    let run_id = record.run_id.clone();
    let shown = shown_calls(&leg.transcript(), &record);
    if shown.as_ref().is_some_and(|shown| shown.moved_on) {
        return left_behind(leg, record, &recovered, by_id, &answers, options).await;
    }
    // Whatever comes of it, the caller is told of this run.
    leg.pending = record.pending();
    leg.run = records::restore(record.clone())?;
    let preparation = Preparation {
        tools,
        options: &options.execution,
        run_id: &run_id,
        extensions: &leg.options.extensions,
    };
    let mut batch = OpenBatch::from_record(preparation, record.round, &record.calls)?;
    recovered
        .in_flight
        .settle_unknown(&mut batch, tools, leg.is_durable());
    if leg.steps.is_some() {
        durable::report_again(&mut batch, leg);
    }
    let rules = leg.store.remembered(&rules_scope).await?;
    let session_id = leg.options.session_id.clone();
    let facts = PolicyFacts {
        policy: options.approval_policy.as_deref(),
        rules: &rules,
        denied: &[],
        session_id: session_id.as_deref(),
        untrusted_context: options.approval_policy.is_some() && leg.has_untrusted_text(),
    };
    for call in batch.clone().calls() {
        let state = plan::judged_again(call.state.clone(), tools, facts);
        batch.set(call.occurrence, state);
    }
    let mut step = Step::new(record, batch.clone());
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
    if !step.acted
        && !superseded
        && !batch.is_done()
        && !step.has_unfinished()
        && !recovered.interrupted
    {
        if let Some(refusal) = step.refusals.first() {
            leg.store.release(&run_id, &leg.claim).await?;
            return Err(refused(refusal));
        }
        leg.run = records::restore(step.record)?;
        return Ok(Beginning::StillWaiting(batch));
    }
    leg.run = records::restore(step.record)?;
    for used in recovered.used {
        leg.count_nested(used);
    }
    leg.run.denied.append(&mut step.denied);
    leg.first_request = superseded;
    // The rules come first: were one lost behind the save, the yes that it came with would be too.
    for rule in step.remember {
        leg.store.remember(&rules_scope, rule).await?;
    }
    let hold = HoldPolicy {
        mode: options.execution.mode,
        whole_batch: options.hold_whole_batch,
    };
    records::save(leg, &batch, Saving::Begin(hold)).await?;
    leg.pending.clear();
    Ok(Beginning::GoOn { batch, superseded })
}

/// The run to go on with, and whether the caller named it.
async fn found(
    leg: &mut Leg,
    answers: &[ToolApprovalResponse],
) -> Result<Option<(RunRecord, bool)>> {
    let is_named = durable::is_named(leg);
    if let Some(record) = durable::named_record(leg).await? {
        return Ok(Some((record, true)));
    }
    let open = open_record(leg, answers, is_named).await?;
    Ok(open.map(|record| (record, false)))
}

/// Closes a run that the conversation has left behind. A message of the user begins a new one; who has none
/// and wants that run is told.
async fn left_behind(
    leg: &mut Leg,
    record: RunRecord,
    recovered: &Recovered,
    by_id: bool,
    answers: &[ToolApprovalResponse],
    options: &FunctionInvokingOptions,
) -> Result<Beginning> {
    let run_id = record.run_id.clone();
    leg.run = records::restore(record.clone())?;
    for used in recovered.used.clone() {
        leg.count_nested(used);
    }
    ahead::settle_in_flight(leg, recovered, &record).await;
    ahead::settle_left_behind(leg, recovered, &record).await?;
    close_left_behind(leg).await?;
    if !by_id || ends_with_user(leg) {
        return without_record(leg, answers, options).await;
    }
    if let Some(refusal) = refuse(leg, answers).await? {
        return Err(refused(&refusal));
    }
    leg.run.id = run_id;
    // A run of the session whose question came later has answered this one too.
    let answer = ahead::answer(leg.input().last_chunk::<1>().map_or(&[], |last| last));
    let answer = answer.filter(|_| recovered.interrupted && record.calls.is_empty());
    let end = answer.map_or(RunEnd::Superseded, RunEnd::Finished);
    Ok(Beginning::Ended(end))
}

fn ends_with_user(leg: &Leg) -> bool {
    let last = leg.input().last();
    last.is_some_and(|message| message.role() == MessageRole::User)
}

/// What waits in the run that the leg would go on with, for a leg that is stopped before it begins.
/// Nothing is acted on.
///
/// # Errors
/// As [`begin`], of which this is the look-up.
pub(super) async fn waiting(leg: &mut Leg) -> Result<Vec<PendingCall>> {
    let answers = leg.options.tool_approval_responses.clone();
    let Some(record) = open_record(leg, &answers, durable::is_named(leg)).await? else {
        return Ok(Vec::new());
    };
    leg.store.release(&record.run_id, &leg.claim).await?;
    // The caller is told of this run; its record is not the leg's to close.
    leg.run = Run {
        record: None,
        ..records::restore(record.clone())?
    };
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
        None => format!("run:{run_id}"),
    }
}

/// A leg without an open record: every answer is refused; a new message is answered all the same.
async fn without_record(
    leg: &mut Leg,
    answers: &[ToolApprovalResponse],
    options: &FunctionInvokingOptions,
) -> Result<Beginning> {
    let first = refuse(leg, answers).await?;
    match first {
        Some(refusal) if !ends_with_user(leg) => Err(refused(&refusal)),
        _ if options.foreign_call_policy == ForeignCallPolicy::Reject => {
            reject_foreign_calls(leg)?;
            Ok(Beginning::Ask)
        }
        _ => Ok(Beginning::Ask),
    }
}

/// Refuses answers that nothing waits for; says which was the first.
async fn refuse(
    leg: &mut Leg,
    answers: &[ToolApprovalResponse],
) -> Result<Option<(String, RefusalReason)>> {
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
    Ok(first)
}

/// Refuses a conversation that ends in calls of which there is no record (contract I3).
fn reject_foreign_calls(leg: &Leg) -> Result<()> {
    let messages = leg.transcript();
    let asking = messages
        .iter()
        .rposition(|message| message.tool_calls().next().is_some());
    let Some(place) = asking else { return Ok(()) };
    let results = messages[place..]
        .iter()
        .flat_map(raf_core::ChatMessage::tool_results)
        .count();
    if results >= messages[place].tool_calls().count() {
        return Ok(());
    }
    Err(Error::misuse(
        "the conversation ends in calls without results of which there is no record: they are \
         foreign, forged or lost. Give their results, or leave the calls out",
    ))
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
