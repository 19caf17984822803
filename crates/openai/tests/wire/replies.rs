//! Stream, body and error cases: the client that reads them, and what goes back.

use std::sync::Arc;

use raf_core::ChatClientRunOptions;
use raf_openai::{Limits, OpenAiChatClient, OpenAiOptions, Timeouts};
use raf_testing::wire::{Comparison, Outcome, Replies, ReplySetup, WireCase};
use serde_json::Value;

use crate::dialects::of_server;

/// Runs a case under each setting of the client that it speaks of.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    for think_tags in think_tag_settings(case) {
        with(think_tags, case, |replies| replies.check(case))
            .map_err(|fault| format!("tags {think_tags}: {fault}"))?;
    }
    Ok(())
}

pub(crate) fn check_rejection(case: &WireCase) -> Result<(), String> {
    with(false, case, |replies| replies.check_rejection(case))
}

fn with(
    think_tags: bool,
    case: &WireCase,
    check: impl FnOnce(&Replies<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let has_option = |option: &Value| {
        let wanted = option["think_tags"].as_bool();
        wanted.is_none_or(|wanted| wanted == think_tags)
    };
    check(&Replies {
        client: &|setup| Arc::new(client(setup, think_tags)),
        options: ChatClientRunOptions::new(),
        comparison: Comparison {
            has_option: &has_option,
            call_extra: |call| call.provider_data().map(|data| data.data.clone()),
            usage_details: false,
        },
        also: &|outcome| round_trip(case, outcome),
    })
}

fn client(setup: ReplySetup<'_>, think_tags: bool) -> OpenAiChatClient {
    let timeouts = Timeouts::default()
        .with_idle(setup.wait)
        .with_stall(setup.wait)
        .with_linger(setup.wait);
    let mut limits = Limits::default();
    if let Some(most) = setup.line_bytes {
        limits = limits.with_line_bytes(most);
    }
    let options = OpenAiOptions::new()
        .with_base_url(setup.url)
        .with_api_key("sk-test-12345")
        .with_model("m")
        .with_dialect(of_server(setup.case.server()))
        .with_think_tags(think_tags)
        .with_streaming(setup.streaming)
        .with_limits(limits)
        .with_timeouts(timeouts);
    OpenAiChatClient::new(options).expect("options that work")
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

/// What the provider wants back must reach it again.
fn round_trip(case: &WireCase, outcome: &Outcome) -> Result<(), String> {
    if case.expected()["extra"]["reasoning_details_must_round_trip"] != true {
        return Ok(());
    }
    let messages = outcome.conversation()?;
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
