//! Laws of what a provider makes of good replies.

use futures::StreamExt;
use raf_core::{
    AgentResponse, AgentResponseUpdate, FinishReason, MessageStatus, ResponseMetadata, ToolCall,
    Usage,
};
use serde_json::json;

use super::{SPLITS, Subject, endpoint, respond, stream};
use crate::invariants::{assert_holds, check_reply_updates};
use crate::{Latch, Reply};

/// Letters of one to four bytes.
const TEXT: &str = "Grüße, 世界 🌍! \"quoted\" \\ and\nlines";

/// The response of a reply that is read in each split, the stream's order checked.
async fn each_split(subject: &Subject, reply: &Reply, check: impl Fn(&AgentResponse)) {
    each_form(subject, reply, |response, _| check(response)).await;
}

/// As [`each_split`]; the check is told whether a stream was asked for.
async fn each_form(subject: &Subject, reply: &Reply, check: impl Fn(&AgentResponse, bool)) {
    for split in SPLITS {
        let endpoint = endpoint(subject, [reply.clone(), reply.clone()], split);
        let items: Vec<_> = stream(subject, &endpoint.url()).await.collect().await;
        assert_holds(check_reply_updates(&items));
        let response = respond(subject, &endpoint.url()).await;
        let response = response.unwrap_or_else(|error| panic!("in pieces of {split:?}: {error}"));
        let is_streamed = endpoint.http_requests()[0].json()["stream"] == true;
        check(&response, is_streamed);
        endpoint.assert_done();
    }
}

/// Text is the same however the network cuts it, in the middle of characters too.
pub async fn text_arrives_in_every_split(subject: &Subject) {
    let whole = Reply::text(TEXT);
    let pieces = whole.clone().in_pieces_of(1);
    for reply in [whole, pieces] {
        each_split(subject, &reply, |response| {
            assert_eq!(response.text(), TEXT);
            assert_eq!(response.finish_reason, FinishReason::Stop);
            assert_eq!(response.messages.len(), 1);
            assert_eq!(response.messages[0].status(), MessageStatus::Complete);
        })
        .await;
    }
}

/// Text is out before the reply has ended.
pub async fn text_streams_as_it_arrives(subject: &Subject) {
    let latch = Latch::new();
    let reply = Reply::text("early").gate(&latch).then_text("late");
    let endpoint = endpoint(subject, [reply], None);
    let mut stream = stream(subject, &endpoint.url()).await;
    loop {
        let item = stream
            .next()
            .await
            .expect("it does not end before its text");
        if item.expect("it does not fail") == AgentResponseUpdate::text("early") {
            break;
        }
    }
    latch.open();
    let rest: Vec<_> = stream.collect().await;
    assert!(matches!(
        rest.last(),
        Some(Ok(AgentResponseUpdate::Finish { .. }))
    ));
}

async fn calls(subject: &Subject, reply: Reply, expected: &[ToolCall]) {
    each_form(subject, &reply, |response, is_streamed| {
        let calls: Vec<ToolCall> = response.messages[0].tool_calls().cloned().collect();
        assert_eq!(calls.len(), expected.len(), "{calls:?}");
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(call.id(), expected.id());
            assert_eq!(call.name(), expected.name());
            if subject.wire.keeps_argument_text(is_streamed) {
                assert_eq!(call.arguments(), expected.arguments());
            }
            assert_eq!(call.parsed_arguments(), expected.parsed_arguments());
            assert!(call.is_complete());
        }
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    })
    .await;
}

/// A call whose arguments come at once.
pub async fn a_call_in_one_piece(subject: &Subject) {
    let arguments = r#"{"city": "Zürich", "big": 9007199254740993}"#;
    let reply = Reply::text("Let me look.").call("c1", "weather", arguments);
    calls(subject, reply, &[ToolCall::new("c1", "weather", arguments)]).await;
}

/// A call whose arguments come letter by letter.
pub async fn a_call_in_pieces(subject: &Subject) {
    let arguments = r#"{"city": "Zürich", "days": [1, 2]}"#;
    let reply = Reply::new()
        .call("c1", "weather", arguments)
        .in_pieces_of(1);
    calls(subject, reply, &[ToolCall::new("c1", "weather", arguments)]).await;
}

/// Empty argument text, and an empty object, are a call without arguments.
pub async fn a_call_without_arguments(subject: &Subject) {
    let reply = Reply::calls([("c1", "now", ""), ("c2", "now", "{}")]);
    each_split(subject, &reply, |response| {
        let calls: Vec<ToolCall> = response.messages[0].tool_calls().cloned().collect();
        let ids: Vec<&str> = calls.iter().map(ToolCall::id).collect();
        assert_eq!(ids, ["c1", "c2"]);
        for call in &calls {
            let arguments = call.parsed_arguments().expect("no arguments are an object");
            assert!(arguments.is_empty() && call.is_complete(), "{call:?}");
        }
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    })
    .await;
}

/// Calls that stream one after another or at the same time do not mix.
pub async fn parallel_calls_are_kept_apart(subject: &Subject) {
    let pieces = |city: &'static str| vec!["{\"city\"", ": ", city, "}"];
    let reply = Reply::new()
        .interleaved_calls([
            ("c1", "weather", pieces("\"Bern\"")),
            ("c2", "weather", pieces("\"Rom\"")),
        ])
        .call("c3", "time", "{}");
    let expected = [
        ToolCall::new("c1", "weather", "{\"city\": \"Bern\"}"),
        ToolCall::new("c2", "weather", "{\"city\": \"Rom\"}"),
        ToolCall::new("c3", "time", "{}"),
    ];
    calls(subject, reply, &expected).await;
}

/// Tokens are counted if they are reported, and not missed if they are not.
pub async fn usage_comes_last_or_not_at_all(subject: &Subject) {
    let mut usage = Usage::new(100, 20);
    usage.cached_tokens = Some(64);
    usage.reasoning_tokens = Some(8);
    let reply = Reply::text("a").usage_report(usage.clone());
    each_split(subject, &reply, |response| {
        assert_eq!(response.usage.input_tokens, usage.input_tokens);
        assert_eq!(response.usage.output_tokens, usage.output_tokens);
        assert_eq!(response.usage.cached_tokens, usage.cached_tokens);
        assert_eq!(response.usage.reasoning_tokens, usage.reasoning_tokens);
    })
    .await;
    each_split(subject, &Reply::text("a"), |response| {
        assert_eq!(response.usage.output_tokens, None);
    })
    .await;
}

/// A reply that was cut by its limit or by a filter says so.
pub async fn finish_reasons_are_told_apart(subject: &Subject) {
    for reason in [FinishReason::Length, FinishReason::ContentFilter] {
        let reply = Reply::text("a").finish(reason.clone());
        each_split(subject, &reply, |response| {
            assert_eq!(response.finish_reason, reason);
            assert_eq!(response.text(), "a");
        })
        .await;
    }
}

/// A reply that says nothing is no failure of the provider.
pub async fn an_empty_reply_ends_well(subject: &Subject) {
    each_split(subject, &Reply::new(), |response| {
        assert_eq!(response.text(), "");
        assert_eq!(response.finish_reason, FinishReason::Stop);
    })
    .await;
}

/// Fields that the protocol does not have do no harm.
pub async fn unknown_fields_are_ignored(subject: &Subject) {
    let mut metadata = ResponseMetadata::default();
    let extra = json!({
        "x_new_object": {"deep": [1, {"a": null}]},
        "x_new_number": 1.5,
        "system_fingerprint": null,
    });
    metadata.extra = extra.as_object().cloned().unwrap_or_default();
    let reply = Reply::text("a").metadata(metadata);
    each_split(subject, &reply, |response| assert_eq!(response.text(), "a")).await;
}
