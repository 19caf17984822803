//! Laws of what passes through a layer: content, identity, the caller's own things.

use std::sync::Arc;

use raf_core::{
    ChatClientExt, ChatClientMetadata, ChatClientRunOptions, ChatMessage, Content, Error,
    ErrorKind, FinishReason, RefusalContent, ResponseMetadata, ToolApprovalResponse, ToolCall,
    UnknownContent, Usage, collect, get_service,
};
use serde_json::json;

use super::{Subject, question, read};
use crate::{Probe, Reply, ScriptedChatClient};

/// The response is the fold of the stream: text, finish reason and usage are the same in both.
pub async fn streams_fold_to_the_response(subject: &Subject) {
    let reply = Reply::text_pieces(["one ", "two"])
        .reasoning("hm")
        .usage(7, 3);
    let inner = ScriptedChatClient::new([reply.clone(), reply]);
    let layer = subject.around(&inner);
    let stream = layer.run(&question(), ChatClientRunOptions::new()).await;
    let stream = stream.expect("a good request is not refused");
    let folded = read(stream).await.fold.finish().expect("it ends well");
    let options = ChatClientRunOptions::new();
    let response = layer
        .get_response(&question(), options)
        .await
        .expect("it ends well");
    assert_eq!(folded.text(), "one two");
    assert_eq!(folded.finish_reason, FinishReason::Stop);
    assert_eq!(response.messages, folded.messages);
    assert_eq!(response.finish_reason, folded.finish_reason);
    assert_eq!(response.usage, folded.usage);
}

/// Parts that nobody knows come out as they went in, in their place.
pub async fn unknown_content_passes_unchanged_in_order(subject: &Subject) {
    let unknown = |number: u64| {
        let value = json!({"type": "hologram", "number": number, "deep": {"list": [1, null]}});
        Content::Unknown(UnknownContent::new(value))
    };
    let reply = Reply::text("a")
        .content(unknown(1))
        .then_text("b")
        .content(unknown(2))
        .content(Content::Refusal(RefusalContent::new("no")));
    let inner = ScriptedChatClient::new([reply]);
    let response = respond(subject, &inner).await;
    let expected = [
        Content::text("a"),
        unknown(1),
        Content::text("b"),
        unknown(2),
        Content::Refusal(RefusalContent::new("no")),
    ];
    assert_eq!(response.messages[0].contents(), expected);
}

/// Calls come out with their ids and their argument text, however broken.
pub async fn tool_calls_pass_unchanged(subject: &Subject) {
    let reply = Reply::text("calling").interleaved_calls([
        ("c1", "add", vec!["{\"a\"", ": 1}"]),
        ("c1", "unknown-tool", vec!["{not json"]),
        ("", "add", vec![""]),
    ]);
    let inner = ScriptedChatClient::new([reply]);
    let response = respond(subject, &inner).await;
    let calls: Vec<ToolCall> = response.messages[0].tool_calls().cloned().collect();
    let expected = [
        ToolCall::new("c1", "add", "{\"a\": 1}"),
        ToolCall::new("c1", "unknown-tool", "{not json"),
        ToolCall::new("", "add", ""),
    ];
    assert_eq!(calls, expected);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
}

/// Tokens count once, and what the provider says of its reply arrives.
pub async fn usage_and_metadata_pass_unchanged(subject: &Subject) {
    let mut metadata = ResponseMetadata::default();
    metadata.response_id = Some("resp-1".to_owned());
    metadata.extra.insert("region".to_owned(), json!("eu"));
    let reply = Reply::text("").metadata(metadata.clone()).usage(5, 1);
    let inner = ScriptedChatClient::new([reply.then_text("a").usage(5, 2)]);
    let response = respond(subject, &inner).await;
    assert_eq!(response.usage, Usage::new(5, 2));
    assert_eq!(response.metadata.response_id, metadata.response_id);
    assert_eq!(response.metadata.extra, metadata.extra);
}

/// What the innermost client says of itself, and its services, are found from above.
pub async fn metadata_and_services_reach_the_innermost(subject: &Subject) {
    let metadata = ChatClientMetadata::new("innermost")
        .with_model("a-model")
        .with_endpoint("http://innermost.example");
    let inner = ScriptedChatClient::with_metadata([], metadata.clone());
    let layer = subject.around(&inner);
    assert_eq!(layer.metadata(), metadata);
    assert!(
        get_service::<Probe>(&*layer).is_some(),
        "a service below is not found"
    );
    assert!(get_service::<Arc<Probe>>(&*layer).is_none());
}

/// `Debug` names the layer and what is below it, and holds nothing that was said.
pub async fn debug_shows_the_stack_and_no_text(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("answer-text")]);
    let layer = subject.around(&inner);
    let options = ChatClientRunOptions::new().with_extra_body("key", json!("secret-value"));
    let stream = layer.run(&question(), options).await;
    read(stream.expect("a good request is not refused")).await;
    let debug = format!("{layer:?}");
    assert!(
        debug.contains(subject.name),
        "the layer's name is not in {debug}"
    );
    assert!(
        debug.contains("ScriptedChatClient"),
        "what is below is not in {debug}"
    );
    for text in ["answer-text", "question-text", "secret-value"] {
        assert!(!debug.contains(text), "'{text}' is in {debug}");
    }
}

/// What the caller gave is as it was, and its messages reach the model as the same handles.
pub async fn messages_and_options_of_the_caller_are_unchanged(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("a")]);
    let messages = vec![ChatMessage::system("be brief"), ChatMessage::user("go")];
    let options = ChatClientRunOptions::new()
        .with_model("mine")
        .with_temperature(0.5)
        .with_session_id("s1");
    let before = (messages.clone(), format!("{options:?}"));
    let stream = subject.around(&inner).run(&messages, options.clone()).await;
    read(stream.expect("a good request is not refused")).await;
    let same = |left: &ChatMessage, right: &ChatMessage| left.is_same(right) && left == right;
    assert!(
        messages
            .iter()
            .zip(&before.0)
            .all(|(now, then)| same(now, then))
    );
    assert_eq!(format!("{options:?}"), before.1);
    let sent = &inner.requests()[0].messages;
    for message in &messages {
        assert!(
            sent.iter().any(|sent| sent.is_same(message)),
            "the caller's message was copied or lost: {:?}",
            inner.requests()[0].lines()
        );
    }
}

/// What the inner client refuses before there is a stream is refused above, with its kind.
pub async fn a_refusal_at_the_start_is_kept(subject: &Subject) {
    let refusal = Error::new(ErrorKind::Configuration, "no key");
    let inner = ScriptedChatClient::new([Reply::error_at_start(refusal)]);
    let error = fail(subject, &inner, ChatClientRunOptions::new()).await;
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

/// Answers to approval requests that nobody takes end in an error, not in silence.
pub async fn resume_data_is_not_lost(subject: &Subject) {
    let inner = ScriptedChatClient::new([Reply::text("a")]);
    let answer = ToolApprovalResponse::approve("nobody-asked");
    let options = ChatClientRunOptions::new().with_tool_approval_responses([answer]);
    let error = fail(subject, &inner, options).await;
    let kinds = [ErrorKind::Misuse, ErrorKind::ApprovalRefused];
    assert!(kinds.contains(&error.kind()), "{error}");
}

async fn respond(subject: &Subject, inner: &ScriptedChatClient) -> raf_core::AgentResponse {
    let layer = subject.around(inner);
    let stream = layer.run(&question(), ChatClientRunOptions::new()).await;
    let stream = stream.expect("a good request is not refused");
    collect(stream).await.expect("it ends well")
}

/// The error, whether `run` or the stream gives it.
async fn fail(
    subject: &Subject,
    inner: &ScriptedChatClient,
    options: ChatClientRunOptions,
) -> Error {
    let layer = subject.around(inner);
    let response = match layer.run(&question(), options).await {
        Ok(stream) => collect(stream).await,
        Err(error) => Err(error),
    };
    response.expect_err("it must not succeed")
}
