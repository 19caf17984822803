//! A run of a session is resumed in that session alone, whatever the messages of another one say.

use std::sync::Arc;

use raf_core::{
    AgentResponse, ChatClientExt, ChatClientRunOptions, ChatMessage, ErrorKind, FinishReason,
    ToolApprovalResponse, WaitsFor,
};
use raf_framework::FunctionInvokingChatClient;
use raf_testing::{Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::ToolRegistry;

struct Server {
    pay: ScriptedTool,
    model: ScriptedChatClient,
    client: FunctionInvokingChatClient,
}

impl Server {
    fn new() -> Self {
        let pay = ScriptedTool::returning("pay", "paid").gated();
        let tools = ToolRegistry::builder().with_tool(pay.clone()).build();
        let model = ScriptedChatClient::new([Reply::calls([("c1", "pay", "{}")])])
            .with_fallback(Reply::text("hello"));
        let inner = Arc::new(model.clone());
        let client = FunctionInvokingChatClient::new(inner, tools.expect("a good tool"));
        Self { pay, model, client }
    }

    /// The run of Alice that waits, and her conversation.
    async fn paused(&self) -> (AgentResponse, Vec<ChatMessage>) {
        let mut conversation = vec![ChatMessage::user("pay the rent")];
        let options = session(Some("alice"));
        let paused = self.client.get_response(&conversation, options).await;
        let paused = paused.expect("it pauses");
        assert_eq!(paused.finish_reason, FinishReason::AwaitingApproval);
        conversation.extend(paused.messages.iter().cloned());
        (paused, conversation)
    }
}

fn session(id: Option<&str>) -> ChatClientRunOptions {
    let options = ChatClientRunOptions::new();
    match id {
        Some(id) => options.with_session_id(id),
        None => options,
    }
}

fn yes(paused: &AgentResponse) -> ToolApprovalResponse {
    match &paused.pending[0].waits_for {
        WaitsFor::Approval(request) => ToolApprovalResponse::approve(&request.request_id),
        other => panic!("{other:?} is no approval"),
    }
}

/// The pending list would tell request ids and arguments: nothing of it is shown.
#[tokio::test(start_paused = true)]
async fn copied_messages_show_nothing_of_the_run_elsewhere() {
    for other in [Some("mallory"), None] {
        let server = Server::new();
        let (paused, conversation) = server.paused().await;
        assert_eq!(conversation[1].paused_run_id(), paused.run_id);
        let copied = server.client.get_response(&conversation, session(other));
        let copied = copied.await.expect("the call is filled, the model asked");
        assert_eq!(copied.finish_reason, FinishReason::Stop);
        assert!(copied.pending.is_empty());
        assert_ne!(copied.run_id, paused.run_id);

        // Alice's run waits as before.
        let options = session(Some("alice")).with_tool_approval_responses([yes(&paused)]);
        let response = server.client.get_response(&conversation, options).await;
        assert_eq!(response.expect("it goes on").text(), "hello");
        assert_eq!(server.pay.log().entries(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_elsewhere_is_to_an_unknown_request() {
    for other in [Some("mallory"), None] {
        let server = Server::new();
        let (paused, conversation) = server.paused().await;
        let options = session(other).with_tool_approval_responses([yes(&paused)]);
        let refused = server.client.get_response(&conversation, options).await;
        let refused = refused.expect_err("it is refused");
        assert_eq!(refused.kind(), ErrorKind::ApprovalRefused);
        assert_eq!(refused.code(), Some("unknown_request"));
        assert!(refused.leg().is_some_and(|leg| leg.pending.is_empty()));

        let value = paused.paused_run.expect("it waits");
        let options = session(other).with_paused_run(value);
        let refused = server.client.get_response(&conversation, options).await;
        assert_eq!(refused.expect_err("misuse").kind(), ErrorKind::Misuse);
        assert_eq!(server.pay.log().entries(), 0);
        assert_eq!(server.model.request_count(), 1);
    }
}
