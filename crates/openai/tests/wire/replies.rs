//! Stream, body and error cases: served on loopback as written and re-cut, compared.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, ChatMessage};
use raf_openai::{Limits, OpenAiChatClient, OpenAiOptions, Timeouts};
use raf_testing::wire::{
    Comparison, Cut, End, Outcome, WireCase, WireReply, compare, replay, reply_of,
};
use serde_json::Value;

use crate::dialects::of_server;

/// Runs a case in all cuts, and once more with the client's other setting of streaming: what a server
/// sends is read by its form, not by what was asked for.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    let is_stream = case.kind() != "body";
    for think_tags in think_tag_settings(case) {
        let has_option = |option: &Value| {
            let wanted = option["think_tags"].as_bool();
            wanted.is_none_or(|wanted| wanted == think_tags)
        };
        let comparison = Comparison {
            has_option: &has_option,
            call_extra: |call| call.provider_data().map(|data| data.data.clone()),
            usage_details: false,
        };
        let cuts = Cut::ALL.map(|cut| (is_stream, cut));
        for (streaming, cut) in cuts.into_iter().chain([(!is_stream, Cut::AsWritten)]) {
            let reply = WireReply {
                cut,
                ..case.reply()
            };
            let outcome = run(case, reply, think_tags, streaming);
            compare(case, &comparison, &outcome)
                .and_then(|()| round_trip(case, &outcome))
                .map_err(|fault| {
                    format!("cut {cut:?}, streaming {streaming}, tags {think_tags}: {fault}")
                })?;
        }
    }
    Ok(())
}

/// Serves what a server answers to a request that it refuses.
pub(crate) fn check_rejection(case: &WireCase) -> Result<(), String> {
    let rejection = &case.json["input"]["server_rejection"];
    let wanted = &case.expected()["error"];
    if rejection.is_null() || wanted.is_null() {
        return Ok(());
    }
    let outcome = run(case, reply_of(rejection), false, true);
    let class = outcome.error_class();
    let retryable = outcome.error.as_ref().map(raf_core::Error::is_temporary);
    if class == wanted["class"].as_str() && retryable == wanted["retryable"].as_bool() {
        return Ok(());
    }
    Err(format!(
        "server_rejection: wanted {wanted}, got {:?}",
        outcome.error
    ))
}

/// The client's settings under which the case says something.
fn think_tag_settings(case: &WireCase) -> Vec<bool> {
    let mut settings: Vec<bool> = case
        .acceptable()
        .iter()
        .filter_map(|acceptable| acceptable.get("option")?["think_tags"].as_bool())
        .collect();
    settings.sort_unstable();
    settings.dedup();
    if settings.is_empty() {
        settings.push(false);
    }
    settings
}

fn run(case: &WireCase, reply: WireReply, think_tags: bool, streaming: bool) -> Outcome {
    let timeouts = timeouts(reply.end);
    let mut limits = Limits::default();
    if case.is_large() {
        limits = limits.with_line_bytes(64 * 1024);
    }
    let messages = [ChatMessage::user("Hello")];
    replay(reply, &messages, ChatClientRunOptions::new(), |url| {
        let options = OpenAiOptions::new()
            .with_base_url(url)
            .with_api_key("sk-test-12345")
            .with_model("m")
            .with_dialect(of_server(case.server()))
            .with_think_tags(think_tags)
            .with_streaming(streaming)
            .with_limits(limits)
            .with_timeouts(timeouts);
        Arc::new(OpenAiChatClient::new(options).expect("options that work"))
    })
}

/// Short where the server falls silent, else out of the way.
fn timeouts(end: End) -> Timeouts {
    let silent = end == End::Hang;
    let limit = Duration::from_millis(if silent { 250 } else { 10_000 });
    Timeouts::default()
        .with_first_byte(Duration::from_secs(10))
        .with_idle(limit)
        .with_stall(limit)
        .with_linger(limit)
}

/// What the provider wants back must reach it again.
fn round_trip(case: &WireCase, outcome: &Outcome) -> Result<(), String> {
    if case.expected()["extra"]["reasoning_details_must_round_trip"] != true {
        return Ok(());
    }
    let mut fold = raf_core::ResponseFold::new();
    for update in &outcome.updates {
        fold.push(update);
    }
    let response = fold.finish().map_err(|error| error.to_string())?;
    let mut messages = vec![ChatMessage::user("Hello")];
    messages.extend(response.messages);
    let options = OpenAiOptions::new()
        .with_model("m")
        .with_dialect(of_server(case.server()));
    let client = OpenAiChatClient::new(options).map_err(|error| error.to_string())?;
    let body = client
        .request_body(&messages, &ChatClientRunOptions::new())
        .map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let details = body["messages"][1]["reasoning_details"].to_string();
    let sent = case.json["input"].to_string();
    let is_back = details.contains("reasoning.encrypted") && sent.contains("reasoning.encrypted");
    if is_back {
        Ok(())
    } else {
        Err(format!("the details do not go back: {body}"))
    }
}
