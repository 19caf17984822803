//! The scripted client follows its script, and says so when it is not followed.

use futures::StreamExt;
use raf_core::{
    AgentResponseUpdate as Update, ChatClientExt, ChatClientRunOptions, ChatMessage, Error,
    ErrorKind, FinishReason, IChatClient, ToolApprovalResponse, ToolChoice, get_service,
};

use super::ScriptedChatClient;
use crate::{Latch, Probe, Reply};

fn user(text: &str) -> Vec<ChatMessage> {
    vec![ChatMessage::user(text)]
}

#[tokio::test]
async fn replies_come_in_order_and_requests_are_kept() {
    let client = ScriptedChatClient::new([Reply::text("one"), Reply::text("two")]);
    assert_eq!(client.get_text("a").await.unwrap(), "one");
    assert_eq!(client.remaining(), 1);
    assert_eq!(client.get_text("b").await.unwrap(), "two");
    let requests = client.requests();
    assert_eq!(requests[1].lines(), ["U:b"]);
    assert_eq!(requests[1].index, 1);
    client.assert_done();
}

#[tokio::test]
async fn nothing_is_taken_before_the_first_poll() {
    let client = ScriptedChatClient::new([Reply::text("one")]);
    let stream = client.run(&user("a"), ChatClientRunOptions::new()).await;
    assert_eq!(client.request_count(), 0);
    assert_eq!((client.probe().runs(), client.probe().opened()), (1, 0));
    drop(stream);
    assert_eq!((client.probe().live(), client.remaining()), (0, 1));
}

#[tokio::test]
async fn a_request_beyond_the_script_is_misuse_and_a_violation() {
    let client = ScriptedChatClient::new([]);
    let error = client.get_text("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("no reply left"), "{error}");
    assert_eq!(client.violations().len(), 1);
    let caught = std::panic::catch_unwind(|| client.assert_done());
    assert!(caught.is_err());
}

#[tokio::test]
#[should_panic(expected = "1 of the scripted replies were not asked for")]
async fn an_unused_reply_is_reported() {
    ScriptedChatClient::new([Reply::text("one")]).assert_done();
}

#[tokio::test]
async fn an_expectation_that_is_not_met_is_an_error_and_a_violation() {
    let reply = Reply::text("ok").expect(|request| assert_eq!(request.user_text(), "a"));
    let client = ScriptedChatClient::new([reply.clone(), reply]);
    assert_eq!(client.get_text("a").await.unwrap(), "ok");
    let error = client.get_text("b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(client.violations()[0].contains("request 1 is not as expected"));
}

#[tokio::test]
async fn a_rule_sees_the_request() {
    let client = ScriptedChatClient::always(Reply::from_fn(|request| {
        match &request.options.tool_choice {
            Some(choice) if choice.is_forced() => Reply::new().call("c1", "show", "{}"),
            _ => Reply::text("42"),
        }
    }));
    let forced = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Required);
    let response = client.get_response(&user("a"), forced).await.unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(client.get_text("a").await.unwrap(), "42");
    client.assert_done();
}

#[tokio::test]
async fn a_gate_holds_the_stream_until_it_is_opened() {
    let latch = Latch::new();
    let client = ScriptedChatClient::new([Reply::text("a").gate(&latch).then_text("b")]);
    let messages = user("x");
    let mut stream = client
        .run(&messages, ChatClientRunOptions::new())
        .await
        .unwrap();
    stream.next().await.unwrap().unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), Update::text("a"));
    assert!(futures::poll!(stream.next()).is_pending());
    latch.open();
    assert_eq!(stream.next().await.unwrap().unwrap(), Update::text("b"));
}

#[tokio::test]
async fn a_reply_can_be_refused_before_there_is_a_stream() {
    let refused = Reply::error_at_start(Error::configuration("no key"));
    let client = ScriptedChatClient::new([refused]);
    let refusal = client.run(&user("a"), ChatClientRunOptions::new()).await;
    let error = refusal.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!((client.request_count(), client.probe().runs()), (1, 0));
    client.assert_done();
}

#[tokio::test]
async fn answers_to_approval_requests_are_refused_as_a_provider_does() {
    let client = ScriptedChatClient::new([Reply::text("a")]);
    let options = ChatClientRunOptions::new()
        .with_tool_approval_responses([ToolApprovalResponse::approve("r1")]);
    let error = client.run(&user("a"), options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(client.remaining(), 1);
}

#[tokio::test]
async fn a_token_ends_a_reply_that_waits_for_it() {
    let client = ScriptedChatClient::new([Reply::text("a").hang_until_cancelled()]);
    let options = ChatClientRunOptions::new();
    options.cancellation.cancel();
    let error = client.get_response(&user("a"), options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(error.leg().unwrap().messages[0].text(), "a");
}

#[test]
fn services_are_found_and_debug_holds_no_text() {
    let client = ScriptedChatClient::new([Reply::text("secret words")]);
    assert!(get_service::<ScriptedChatClient>(&client).is_some());
    assert!(get_service::<Probe>(&client).is_some());
    assert!(get_service::<String>(&client).is_none());
    assert!(!format!("{client:?}").contains("secret"));
}
