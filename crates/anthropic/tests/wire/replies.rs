//! Stream, body and error cases: served on loopback as written and re-cut, compared.

use std::sync::Arc;
use std::time::Duration;

use raf_anthropic::{AnthropicChatClient, AnthropicOptions, Limits, Timeouts};
use raf_core::{ChatClientRunOptions, ChatMessage};
use raf_testing::wire::{
    Comparison, Cut, End, Outcome, WireCase, WireReply, compare, replay, reply_of,
};

use crate::dialects::of_reply;
use crate::sent_back;
use crate::transcript::MODEL;

/// Runs a case in all cuts, and once more with the client's other setting of streaming: what a server
/// sends is read by its form, not by what was asked for.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    let is_stream = case.kind() != "body";
    let comparison = Comparison {
        has_option: &|_| true,
        call_extra: |_| None,
        usage_details: true,
    };
    let cuts = Cut::ALL.map(|cut| (is_stream, cut));
    for (streaming, cut) in cuts.into_iter().chain([(!is_stream, Cut::AsWritten)]) {
        let reply = WireReply {
            cut,
            ..case.reply()
        };
        let outcome = run(case, reply, streaming);
        compare(case, &comparison, &outcome)
            .and_then(|()| sent_back::check(case, &outcome))
            .map_err(|fault| format!("cut {cut:?}, streaming {streaming}: {fault}"))?;
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
    let outcome = run(case, reply_of(rejection), true);
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

fn run(case: &WireCase, reply: WireReply, streaming: bool) -> Outcome {
    let timeouts = timeouts(reply.end);
    let mut limits = Limits::default();
    if case.is_large() {
        limits = limits.with_line_bytes(64 * 1024);
    }
    let messages = [ChatMessage::user("Hello")];
    replay(reply, &messages, ChatClientRunOptions::new(), |url| {
        let options = AnthropicOptions::new()
            .with_base_url(url)
            .with_api_key("sk-ant-0000000000")
            .with_model(MODEL)
            .with_dialect(of_reply(case.server()))
            .with_streaming(streaming)
            .with_limits(limits)
            .with_timeouts(timeouts);
        Arc::new(AnthropicChatClient::new(options).expect("options that work"))
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
