//! Stream, body and error cases: the client that reads them.

use std::sync::Arc;

use raf_anthropic::{AnthropicChatClient, AnthropicOptions, Limits, Timeouts};
use raf_core::ChatClientRunOptions;
use raf_testing::wire::{Comparison, Replies, ReplySetup, WireCase};

use crate::dialects::of_reply;
use crate::sent_back;
use crate::transcript::MODEL;

pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    with(case, |replies| replies.check(case))
}

pub(crate) fn check_rejection(case: &WireCase) -> Result<(), String> {
    with(case, |replies| replies.check_rejection(case))
}

fn with(
    case: &WireCase,
    check: impl FnOnce(&Replies<'_>) -> Result<(), String>,
) -> Result<(), String> {
    check(&Replies {
        client: &|setup| Arc::new(client(setup)),
        options: ChatClientRunOptions::new(),
        comparison: Comparison {
            has_option: &|_| true,
            call_extra: |_| None,
            usage_details: true,
        },
        also: &|outcome| sent_back::check(case, outcome),
    })
}

fn client(setup: ReplySetup<'_>) -> AnthropicChatClient {
    let timeouts = Timeouts::default()
        .with_idle(setup.wait)
        .with_stall(setup.wait)
        .with_linger(setup.wait);
    let mut limits = Limits::default();
    if let Some(most) = setup.line_bytes {
        limits = limits.with_line_bytes(most);
    }
    let options = AnthropicOptions::new()
        .with_base_url(setup.url)
        .with_api_key("sk-ant-0000000000")
        .with_model(MODEL)
        .with_dialect(of_reply(setup.case.server()))
        .with_streaming(setup.streaming)
        .with_limits(limits)
        .with_timeouts(timeouts);
    AnthropicChatClient::new(options).expect("options that work")
}
