//! What replies come to.

use raf_core::{Content, FinishReason, ReasoningContent, RefusalContent, ToolCall, Usage};

use super::{ReplyKind, classify};

fn call(arguments: &str) -> Content {
    Content::ToolCall(ToolCall::new("c", "f", arguments))
}

#[test]
fn g1_a_reply_that_was_cut_runs_none_of_its_calls() {
    use FinishReason::{ContentFilter, Length, Stop, ToolCalls};
    let check = |contents: &[Content], reason: FinishReason, expect: ReplyKind| {
        assert_eq!(
            classify(contents, &reason, None, None),
            expect,
            "{reason:?}"
        );
    };
    let whole = [call("{}")];
    check(&whole, ToolCalls, ReplyKind::Calls);
    check(&whole, Stop, ReplyKind::Calls);
    check(&whole, FinishReason::Other("x".into()), ReplyKind::Calls);
    check(&whole, Length, ReplyKind::Truncated(Length));
    check(&whole, ContentFilter, ReplyKind::Truncated(ContentFilter));
    check(&[Content::text("a")], Length, ReplyKind::Truncated(Length));
    check(&[Content::text("a")], ToolCalls, ReplyKind::Answer(Stop));
    let thought = Content::Reasoning(ReasoningContent::new("hm"));
    check(&[thought], Stop, ReplyKind::Empty);
    check(&[], Stop, ReplyKind::Empty);
    let refusal = Content::Refusal(RefusalContent::new("no"));
    check(&[refusal], Stop, ReplyKind::Answer(Stop));
}

#[test]
fn g1_bad_arguments_at_the_end_of_a_full_budget_are_truncated() {
    let check = |contents: &[Content], used: u64, limit: Option<u32>, truncated: bool| {
        let usage = Usage::new(1, used);
        let kind = classify(contents, &FinishReason::ToolCalls, Some(&usage), limit);
        let expect = if truncated {
            ReplyKind::Truncated(FinishReason::Length)
        } else {
            ReplyKind::Calls
        };
        assert_eq!(kind, expect);
    };
    let cut = [call("{}"), call("{\"a\":")];
    check(&cut, 100, Some(100), true);
    check(&cut, 99, Some(100), false);
    check(&cut, 100, None, false);
    check(&[call("{\"a\":"), call("{}")], 100, Some(100), false);
}
