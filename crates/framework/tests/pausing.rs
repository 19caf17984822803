//! The thinnest path through a pause: ask, answer, resume.

use std::sync::Arc;

use raf_core::{
    ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason, PausedRun,
    ToolApprovalResponse, ToolOutcome, WaitsFor,
};
use raf_framework::{ForeignCallPolicy, FunctionInvokingChatClient, FunctionInvokingOptions};
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool, transcript_lines};
use raf_tools::ToolRegistry;

fn request_id(pending: &raf_core::PendingCall) -> String {
    match &pending.waits_for {
        WaitsFor::Approval(request) => request.request_id.clone(),
        other => panic!("{other:?} is no approval"),
    }
}

#[tokio::test(start_paused = true)]
async fn e1_only_the_gated_call_waits_and_runs_once_after_a_yes() {
    let delete = Arc::new(ScriptedTool::returning("delete_record", "deleted").gated());
    let list = Arc::new(ScriptedTool::returning("list_records", "[r1,r2]"));
    let tools = ToolRegistry::builder()
        .with_shared_tool(delete.clone())
        .with_shared_tool(list.clone())
        .build()
        .unwrap();
    let model = Arc::new(ScriptedChatClient::new([
        Reply::calls([
            ("c1", "delete_record", r#"{"id":"X"}"#),
            ("c2", "list_records", "{}"),
        ]),
        Reply::text("Deleted X. Left: r1, r2."),
    ]));
    let client = FunctionInvokingChatClient::new(model.clone(), tools.clone());
    let mut conversation = vec![ChatMessage::user("delete X, then list what is left")];
    let paused = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
    assert_eq!(paused.pending.len(), 1);
    assert_eq!((delete.log().entries(), list.log().entries()), (0, 1));
    let id = request_id(&paused.pending[0]);
    conversation.extend(paused.messages);

    let value = serde_json::to_string(&paused.paused_run.unwrap()).unwrap();
    let json = serde_json::to_string(&conversation).unwrap();
    let mut conversation: Vec<ChatMessage> = serde_json::from_str(&json).unwrap();

    // Nothing new: the same pending list, no request.
    let waiting = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    assert_eq!(request_id(&waiting.pending[0]), id);
    assert!(waiting.messages.is_empty());
    assert_eq!(model.request_count(), 1);

    // Another process: no shared store, the value holds the record.
    let paused_run: PausedRun = serde_json::from_str(&value).unwrap();
    let other = FunctionInvokingChatClient::with_options(
        model.clone(),
        tools,
        FunctionInvokingOptions::new(),
    );
    let yes = ChatClientRunOptions::new()
        .with_tool_approval_responses([ToolApprovalResponse::approve(&id)])
        .with_paused_run(paused_run);
    let done = other
        .get_response(&conversation, yes.clone())
        .await
        .unwrap();
    assert_eq!(done.finish_reason, FinishReason::Stop);
    assert_eq!((delete.log().entries(), list.log().entries()), (1, 1));
    assert_eq!(
        transcript_lines(&model.requests()[1].messages),
        [
            "U:delete X, then list what is left",
            "A:[c1,c2]",
            "R(c1, ok: 'deleted')",
            "R(c2, ok: '[r1,r2]')"
        ]
    );
    conversation.extend(done.messages);

    // The same yes once more: nothing runs.
    let error = other.get_response(&conversation, yes).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ApprovalRefused);
    assert_eq!(error.code(), Some("already_settled"));
    assert_eq!(delete.log().entries(), 1);
    assert_eq!(model.request_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn e7_a_new_message_supersedes_and_a_late_yes_is_stale() {
    let restart = Arc::new(ScriptedTool::returning("restart", "restarted").gated());
    let tools = ToolRegistry::builder()
        .with_shared_tool(restart.clone())
        .build()
        .unwrap();
    let model = Arc::new(ScriptedChatClient::new([
        Reply::text("I need to restart it.").call("c1", "restart", "{}"),
        Reply::text("12 days"),
    ]));
    let client = FunctionInvokingChatClient::new(model.clone(), tools);
    let mut conversation = vec![ChatMessage::user("restart the service")];
    let paused = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    let id = request_id(&paused.pending[0]);
    conversation.extend(paused.messages);
    conversation.push(ChatMessage::user("wait, what is its uptime?"));
    let answered = client
        .get_response(&conversation, ChatClientRunOptions::new())
        .await
        .unwrap();
    assert_eq!(answered.finish_reason, FinishReason::Stop);
    let result = answered.messages[0].tool_results().next().unwrap();
    assert_eq!(
        result.outcome(),
        ToolOutcome::skipped(raf_core::SkipReason::Superseded)
    );
    conversation.extend(answered.messages);
    let late = ChatClientRunOptions::new()
        .with_tool_approval_responses([ToolApprovalResponse::approve(id)]);
    let error = client.get_response(&conversation, late).await.unwrap_err();
    assert_eq!(error.code(), Some("stale"));
    assert_eq!(restart.log().entries(), 0);
    assert_eq!(model.request_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn i3_calls_without_a_record_are_filled_or_rejected_never_run() {
    let tool = Arc::new(ScriptedTool::returning("f", "x"));
    let conversation = [
        ChatMessage::user("go"),
        ChatMessage::assistant_calls([raf_core::ToolCall::new("x1", "f", "{}")]),
    ];
    for (policy, requests) in [(ForeignCallPolicy::Fill, 1), (ForeignCallPolicy::Reject, 0)] {
        let tools = ToolRegistry::builder()
            .with_shared_tool(tool.clone())
            .build()
            .unwrap();
        let model = Arc::new(ScriptedChatClient::new([Reply::text("ok")]));
        let options = FunctionInvokingOptions::new().with_foreign_call_policy(policy);
        let client = FunctionInvokingChatClient::with_options(model.clone(), tools, options);
        let ended = client
            .get_response(&conversation, ChatClientRunOptions::new())
            .await;
        assert_eq!(model.request_count(), requests, "{policy:?}");
        match ended {
            Ok(_) => {
                let lines = transcript_lines(&model.requests()[0].messages);
                assert!(lines[2].starts_with("R(x1, cancelled"), "{}", lines[2]);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Misuse),
        }
    }
    assert_eq!(tool.log().entries(), 0);
}
