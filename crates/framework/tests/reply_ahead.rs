//! A conversation that is ahead of the journal of a run whose process died: by a reply, by what settled its
//! calls, by a turn of the user.
#![allow(clippy::unwrap_used, reason = "what is set up here is right")]

use std::sync::Arc;

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate, ChatClientExt, ChatClientRunOptions, ChatMessage, Content, FinishReason,
    IChatClient, IRunStore, InMemoryRunStore, MessageRole, MessageStatus, Occurrence, ResponseFold,
    SkipReason, ToolOutcome, ToolResult,
};
use raf_framework::{FunctionInvokingChatClient, FunctionInvokingOptions, RunStoreOptionsExt};
use raf_testing::{Behaviour, Reply, ScriptedChatClient, ScriptedTool};
use raf_tools::ToolRegistry;

const NOT_STARTED: ToolOutcome = ToolOutcome::Cancelled { started: false };

struct Bench {
    store: Arc<dyn IRunStore>,
    pay: Arc<ScriptedTool>,
    transfer: Arc<ScriptedTool>,
    model: ScriptedChatClient,
    client: FunctionInvokingChatClient,
}

impl Bench {
    /// A model that pays twice at once, with two tools, until something was done.
    fn new(pay: ScriptedTool, options: FunctionInvokingOptions) -> Self {
        let model = ScriptedChatClient::always(Reply::from_fn(|request| {
            let mut done = results(&request.messages);
            if done.any(|result| result.outcome() != NOT_STARTED) {
                return Reply::text("Done.");
            }
            Reply::new()
                .call("c0", "pay", "{}")
                .call("c1", "transfer", "{}")
        }));
        let pay = Arc::new(pay);
        let transfer = Arc::new(ScriptedTool::returning("transfer", "sent"));
        let tools = ToolRegistry::builder()
            .with_shared_tool(pay.clone())
            .with_shared_tool(transfer.clone())
            .build()
            .unwrap();
        let inner = Arc::new(model.clone());
        Self {
            store: Arc::new(InMemoryRunStore::new().with_durable(true)),
            pay,
            transfer,
            model,
            client: FunctionInvokingChatClient::with_options(inner, tools, options),
        }
    }

    fn options(&self) -> ChatClientRunOptions {
        ChatClientRunOptions::new()
            .with_run_store(Arc::clone(&self.store))
            .with_run_id("r".into())
    }

    /// Begins the run and dies behind an update: the conversation as its user has it.
    async fn dies_behind(&self, last: impl Fn(&AgentResponseUpdate) -> bool) -> Vec<ChatMessage> {
        let mut conversation = vec![ChatMessage::user("Pay.")];
        let mut updates = self
            .client
            .run(&conversation, self.options())
            .await
            .unwrap();
        let mut seen = ResponseFold::new();
        while let Some(update) = updates.next().await {
            let update = update.unwrap();
            seen.push(&update);
            if last(&update) {
                break;
            }
        }
        conversation.extend_from_slice(seen.messages());
        conversation
    }

    /// Another process, for a user whose conversation went on without the run: how its calls were settled.
    async fn goes_on_without_it(
        &self,
        mut conversation: Vec<ChatMessage>,
    ) -> Vec<(Occurrence, ToolOutcome)> {
        conversation.push(ChatMessage::assistant("I have begun."));
        conversation.push(ChatMessage::user("Well?"));
        let done = self.client.get_response(&conversation, self.options());
        let done = done.await.unwrap();
        assert_eq!(done.text(), "Done.");
        assert_eq!(self.pay.log().entries(), 1);
        settled(&done.messages)
    }

    async fn dies_behind_its_reply(&self) -> Vec<ChatMessage> {
        let is_end = |update: &_| matches!(update, AgentResponseUpdate::MessageEnd { .. });
        let conversation = self.dies_behind(is_end).await;
        assert_eq!(conversation.len(), 2);
        assert_eq!(self.pay.log().entries(), 0);
        conversation
    }
}

fn results(messages: &[ChatMessage]) -> impl Iterator<Item = &ToolResult> {
    messages.iter().flat_map(ChatMessage::tool_results)
}

fn settled(messages: &[ChatMessage]) -> Vec<(Occurrence, ToolOutcome)> {
    let place = |result: &ToolResult| (result.occurrence().unwrap(), result.outcome());
    results(messages).map(place).collect()
}

fn at(round: u32, position: u32) -> Occurrence {
    Occurrence::new(round, position)
}

#[tokio::test]
async fn i7_calls_that_no_record_knows_are_not_run_and_the_next_round_has_its_own_number() {
    let pay = ScriptedTool::returning("pay", "paid");
    let bench = Bench::new(pay, FunctionInvokingOptions::new());
    let conversation = bench.dies_behind_its_reply().await;
    let done = bench.client.get_response(&conversation, bench.options());
    let done = done.await.unwrap();
    assert_eq!(done.run_id, Some("r".into()));
    assert_eq!(done.text(), "Done.");
    let expected = [
        (at(0, 0), NOT_STARTED),
        (at(0, 1), NOT_STARTED),
        (at(1, 0), ToolOutcome::Ok),
        (at(1, 1), ToolOutcome::Ok),
    ];
    assert_eq!(settled(&done.messages), expected);
    assert_eq!(bench.pay.log().entries(), 1);
    assert!(bench.store.load(&"r".into()).await.unwrap().unwrap().closed);
}

#[tokio::test]
async fn a2_what_was_settled_before_the_process_died_is_not_settled_again() {
    let pay = ScriptedTool::returning("pay", "paid");
    let bench = Bench::new(pay, FunctionInvokingOptions::new());
    let mut conversation = bench.dies_behind_its_reply().await;
    let result = ToolResult::builder("c0", NOT_STARTED).name("pay");
    conversation.push(ChatMessage::tool(result.occurrence(at(0, 0)).build()));
    let done = bench.client.get_response(&conversation, bench.options());
    let done = done.await.unwrap();
    let of_reply = settled(&done.messages).into_iter();
    let of_reply: Vec<_> = of_reply.filter(|(place, _)| place.round == 0).collect();
    assert_eq!(of_reply, [(at(0, 1), NOT_STARTED)]);
}

#[tokio::test(start_paused = true)]
async fn i1_a_result_that_only_the_conversation_has_settles_no_call() {
    let pay = ScriptedTool::new("pay").always(Behaviour::hang());
    let mut options = FunctionInvokingOptions::new();
    options.execution.max_concurrency = 1;
    let bench = Bench::new(pay, options);
    let is_start = |update: &_| matches!(update, AgentResponseUpdate::ToolStarted { .. });
    let mut conversation = bench.dies_behind(is_start).await;
    let result = ToolResult::builder("c1", ToolOutcome::Ok).name("transfer");
    let result = result.occurrence(at(0, 1)).text("sent before");
    conversation.push(ChatMessage::tool(result.build()));
    let done = bench.client.get_response(&conversation, bench.options());
    done.await.unwrap();
    assert_eq!(bench.transfer.log().entries(), 1, "its record is open");
    assert_eq!(bench.pay.log().entries(), 1);
}

#[tokio::test]
async fn i7_a_reply_that_was_cut_is_no_answer() {
    for (status, is_asked) in [
        (MessageStatus::Complete, false),
        (MessageStatus::Incomplete, true),
    ] {
        let pay = ScriptedTool::returning("pay", "paid");
        let bench = Bench::new(pay, FunctionInvokingOptions::new());
        let is_start = |update: &_| matches!(update, AgentResponseUpdate::MessageStart { .. });
        bench.dies_behind(is_start).await;
        let reply = ChatMessage::builder(MessageRole::Assistant).content(Content::text("I have"));
        let conversation = [ChatMessage::user("Pay."), reply.status(status).build()];
        let done = bench.client.get_response(&conversation, bench.options());
        let done = done.await.unwrap();
        assert_eq!(done.finish_reason, FinishReason::Stop, "{status:?}");
        let again = bench.model.requests().len() > 1;
        assert_eq!(again, is_asked, "{status:?}");
    }
}

#[tokio::test]
async fn c2_an_answer_to_the_last_request_ends_the_run_as_that_does() {
    let pay = ScriptedTool::returning("pay", "paid");
    let options = FunctionInvokingOptions::new()
        .with_max_rounds(1)
        .with_wrap_up(true);
    let bench = Bench::new(pay, options);
    let is_start = |update: &_| matches!(update, AgentResponseUpdate::MessageStart { .. });
    bench.dies_behind(is_start).await;
    let conversation = [
        ChatMessage::user("Pay."),
        ChatMessage::assistant("I may not."),
    ];
    let done = bench.client.get_response(&conversation, bench.options());
    assert_eq!(done.await.unwrap().finish_reason, FinishReason::MaxRounds);
}

#[tokio::test(start_paused = true)]
async fn i7_what_was_in_flight_is_told_of_where_the_conversation_went_on_without_it() {
    let pay = ScriptedTool::new("pay").always(Behaviour::hang());
    let mut options = FunctionInvokingOptions::new();
    options.execution.max_concurrency = 1;
    let bench = Bench::new(pay, options);
    let is_start = |update: &_| matches!(update, AgentResponseUpdate::ToolStarted { .. });
    let conversation = bench.dies_behind(is_start).await;
    let superseded = ToolOutcome::skipped(SkipReason::Superseded);
    let expected = [(at(0, 0), ToolOutcome::Unknown), (at(0, 1), superseded)];
    assert_eq!(bench.goes_on_without_it(conversation).await, expected);
}

#[tokio::test]
async fn i7_a_result_that_the_journal_has_is_told_where_the_conversation_lacks_it() {
    let mut options = FunctionInvokingOptions::new();
    options.execution.max_concurrency = 1;
    let bench = Bench::new(ScriptedTool::returning("pay", "paid"), options);
    let is_told = |update: &_| matches!(update, AgentResponseUpdate::ToolCalled { .. });
    let mut conversation = bench.dies_behind(is_told).await;
    conversation.pop();
    let superseded = ToolOutcome::skipped(SkipReason::Superseded);
    let expected = [(at(0, 0), ToolOutcome::Ok), (at(0, 1), superseded)];
    assert_eq!(bench.goes_on_without_it(conversation).await, expected);
}
