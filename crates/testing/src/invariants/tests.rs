//! Each check passes what is right, and names each planted fault.

use raf_core::{
    AgentResponseUpdate as Update, ApprovalRequest, ChatClientRunOptions, ChatMessage, Error,
    Finish, FinishReason, MessageStatus, Occurrence, PendingCall, Result, RunId, SkipReason,
    ToolApprovalResponse, ToolCall, ToolCallHead, ToolOutcome, ToolResult, WaitsFor,
};
use raf_tools::{ITool, ToolArguments, ToolContext};
use serde_json::json;

use super::*;
use crate::{ScriptedRequest, ScriptedTool};

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "t", "{}")
}

fn reply_of(ids: &[&str]) -> Vec<Update> {
    let mut updates = vec![Update::assistant_start()];
    for (position, id) in (0..).zip(ids) {
        let head = Box::new(ToolCallHead::new(*id, "t"));
        updates.push(Update::ToolCallStart {
            position,
            call: head,
        });
        let call = call(id);
        updates.push(Update::ToolCallEnd { position, call });
    }
    updates.push(Update::message_end());
    updates
}

fn started(position: u32, id: &str) -> Update {
    let occurrence = Occurrence::new(0, position);
    let call = Box::new(ToolCallHead::new(id, "t"));
    Update::ToolStarted { occurrence, call }
}

fn settled(position: u32, id: &str) -> Update {
    let occurrence = Occurrence::new(0, position);
    let result = ToolResult::ok(id, "x");
    Update::ToolCalled { occurrence, result }
}

fn finish(reason: FinishReason) -> Update {
    Update::finish(Finish::new(reason))
}

fn leg() -> Vec<Update> {
    let mut updates = reply_of(&["c1", "c2"]);
    updates.extend([started(0, "c1"), started(1, "c2")]);
    updates.extend([settled(1, "c2"), settled(0, "c1")]);
    updates.extend([Update::assistant_start(), Update::text("done")]);
    updates.extend([Update::message_end(), finish(FinishReason::Stop)]);
    updates
}

fn items(updates: Vec<Update>) -> Vec<Result<Update>> {
    updates.into_iter().map(Ok).collect()
}

#[track_caller]
fn check(updates: Vec<Update>, fault: &str) {
    let faults = check_updates(&items(updates));
    assert!(faults.iter().any(|text| text.contains(fault)), "{faults:?}");
}

/// The leg with one change.
fn changed(change: impl FnOnce(&mut Vec<Update>)) -> Vec<Update> {
    let mut updates = leg();
    change(&mut updates);
    updates
}

#[test]
fn a_leg_in_order_passes() {
    assert_holds(check_updates(&items(leg())));
}

#[test]
fn planted_faults_of_order_are_named() {
    check(changed(|leg| drop(leg.remove(0))), "outside a message");
    check(changed(|leg| drop(leg.remove(5))), "starts within another");
    check(changed(|leg| drop(leg.remove(1))), "ends without a start");
    check(changed(|leg| drop(leg.remove(2))), "has not ended");
    check(changed(|leg| leg.swap(6, 9)), "started after its outcome");
    check(
        changed(|leg| leg.insert(7, started(0, "c1"))),
        "started twice",
    );
    check(
        changed(|leg| leg.push(Update::text("x"))),
        "after the terminal item",
    );
    check(changed(|leg| drop(leg.pop())), "without a terminal item");
}

#[test]
fn planted_faults_of_outcomes_are_named() {
    check(changed(|leg| drop(leg.remove(9))), "no outcome");
    check(changed(|leg| leg[8] = settled(0, "c1")), "a second outcome");
    check(
        changed(|leg| leg[8] = settled(1, "c1")),
        "is call 'c2', not 'c1'",
    );
    check(changed(|leg| leg[8] = settled(2, "c2")), "is of no call");
    let skipped = Update::ToolCalled {
        occurrence: Occurrence::new(0, 1),
        result: ToolResult::new("c2", ToolOutcome::skipped(SkipReason::Limit), "x"),
    };
    check(
        changed(|leg| leg[8] = skipped),
        "was started, yet its outcome is",
    );
    let inner = finish(FinishReason::ToolCalls);
    check(changed(|leg| leg[13] = inner), "inner finish reason");
    let paused = finish(FinishReason::AwaitingApproval);
    check(changed(|leg| leg[13] = paused), "nothing is pending");
}

#[test]
fn a_pending_call_needs_no_outcome() {
    let mut updates = reply_of(&["c1"]);
    let mut end = Finish::new(FinishReason::AwaitingToolResults);
    let waiting = PendingCall::new(Occurrence::new(0, 0), call("c1"), WaitsFor::ToolResult);
    end.pending = vec![waiting];
    updates.push(Update::finish(end));
    assert_holds(check_updates(&items(updates)));
}

#[test]
fn a_failed_leg_and_a_dropped_one_are_judged_by_what_they_show() {
    let mut failed = items(leg());
    *failed.last_mut().unwrap() = Err(Error::misuse("x"));
    assert_holds(check_updates(&failed));
    let cut = items(leg()[..7].to_vec());
    assert_holds(check_partial_updates(&cut));
    assert!(!check_updates(&cut).is_empty());
}

#[test]
fn results_of_an_earlier_leg_are_not_strange() {
    let updates = vec![
        settled(0, "c1"),
        Update::assistant_start(),
        Update::text("done"),
        Update::message_end(),
        finish(FinishReason::Stop),
    ];
    assert_holds(check_updates(&items(updates)));
}

#[test]
fn a_reset_forgets_its_calls() {
    let mut updates = reply_of(&["c1"]);
    updates.truncate(2);
    let reason = "lost".into();
    updates.push(Update::AttemptReset { reason });
    updates.extend([Update::assistant_start(), Update::text("x")]);
    updates.extend([Update::message_end(), finish(FinishReason::Stop)]);
    assert_holds(check_updates(&items(updates)));
    let mut cut = reply_of(&["c1"]);
    cut.remove(2);
    let status = MessageStatus::Incomplete;
    cut[2] = Update::MessageEnd { status };
    cut.push(finish(FinishReason::Length));
    assert_holds(check_updates(&items(cut)));
}

#[test]
fn pairing_is_checked_in_requests_and_transcripts() {
    let good = vec![
        ChatMessage::user("go"),
        ChatMessage::assistant_calls([call("c1"), call("c2")]),
        ChatMessage::tool(ToolResult::ok("c1", "x")),
        ChatMessage::tool(ToolResult::ok("c2", "x")),
    ];
    let request = |messages: &[ChatMessage]| {
        vec![ScriptedRequest::new(
            0,
            messages,
            ChatClientRunOptions::new(),
        )]
    };
    assert_holds(check_requests(&request(&good)));
    assert_holds(check_transcript(&good, &[]));
    let missing = [good[0].clone(), good[1].clone(), good[3].clone()];
    let faults = check_requests(&request(&missing)).join("; ");
    assert!(faults.contains("'c1' has no result"), "{faults}");
    assert!(check_transcript(&missing, &[])[0].contains("'c1' of 't' has no result"));
    let waiting = PendingCall::new(Occurrence::new(0, 0), call("c1"), WaitsFor::ToolResult);
    assert_holds(check_transcript(&missing, &[waiting]));
    let mut swapped = good.clone();
    swapped.swap(2, 3);
    assert!(!check_transcript(&swapped, &[]).is_empty());
    let mut twice = good.clone();
    twice.push(good[3].clone());
    assert!(check_transcript(&twice, &[])[0].contains("without its call"));
}

#[test]
fn a_changed_prefix_is_noticed() {
    let request = |index, texts: &[&str]| {
        let messages: Vec<ChatMessage> =
            texts.iter().map(|text| ChatMessage::user(*text)).collect();
        ScriptedRequest::new(index, &messages, ChatClientRunOptions::new())
    };
    let requests = [request(0, &["a"]), request(1, &["a", "b"])];
    assert_holds(check_prefixes(&requests));
    let requests = [request(0, &["a"]), request(1, &["x", "b"])];
    assert!(check_prefixes(&requests)[0].contains("request 1: message 0"));
}

#[tokio::test]
async fn entries_are_checked_against_each_other_and_against_answers() {
    let tool = ScriptedTool::new("t").gated();
    let run = RunId::from("r");
    let context = || ToolContext::builder("c1", "t").run_id(run.clone()).build();
    tool.call(context(), ToolArguments::new()).await.unwrap();
    let entries = tool.log().calls();
    assert_holds(check_entries(&entries));
    let place = Occurrence::new(0, 0);
    let request = ApprovalRequest::new(run.clone(), place, &call("c1"), "t", json!({}));
    let yes = [ToolApprovalResponse::approve(&request.request_id)];
    let no = [ToolApprovalResponse::deny(&request.request_id, "")];
    let requests = [request];
    assert_holds(check_gated_entries(&entries, &requests, &yes));
    assert!(check_gated_entries(&entries, &requests, &no)[0].contains("nobody said yes"));
    assert!(check_gated_entries(&entries, &[], &yes)[0].contains("nobody was asked"));
    tool.call(context(), ToolArguments::new()).await.unwrap();
    assert!(check_entries(&tool.log().calls())[0].contains("entered twice"));
}
