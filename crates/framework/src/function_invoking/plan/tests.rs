//! What replies come to.

use raf_core::{
    Content, Extensions, FinishReason, ReasoningContent, RefusalContent, RunId, SkipReason,
    ToolCall, ToolDeclaration, ToolOutcome, Usage,
};
use raf_tools::{
    ApprovalRequiredTool, CallState, Preparation, ToolRegistry, ToolSet, UnknownToolPolicy, tool_fn,
};

use super::{ReplyKind, RoundFacts, classify, plan};
use crate::function_invoking::counters::Counters;
use crate::function_invoking::options::FunctionInvokingOptions;
use crate::function_invoking::policy::PolicyFacts;

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

/// One set with a tool of each kind that a call can be for.
fn tools() -> ToolSet {
    let free = tool_fn("free", "", |(): ()| async { "ran" });
    let gated = ApprovalRequiredTool::new(tool_fn("gated", "", |(): ()| async { "ran" }));
    let registry = ToolRegistry::builder().with_tool(free).with_tool(gated);
    let registry = registry.build().expect("names of their own");
    let set = ToolSet::builder().with_source("the registry", registry.tools());
    let set = set.expect("no name is there twice");
    let set = set.with_declared(&[ToolDeclaration::new("declared", "")]);
    set.expect("no name is there twice").build()
}

#[test]
fn f2_no_call_runs_or_waits_in_a_reply_to_a_request_that_allowed_none() {
    let mut options = FunctionInvokingOptions::new();
    options.execution.unknown_tools = UnknownToolPolicy::Stop;
    let (tools, extensions, run_id) = (tools(), Extensions::default(), RunId::random());
    let names = ["free", "gated", "declared", "unknown"];
    let calls = names.map(|name| ToolCall::new(name, name, "{}"));
    let planned = |wrap_up: bool, forbidden: bool| {
        let facts = RoundFacts {
            run_id: &run_id,
            round: 2,
            wrap_up,
            forbidden,
            out_of_time: false,
        };
        let preparation = Preparation {
            tools: &tools,
            options: &options.execution,
            run_id: &run_id,
            extensions: &extensions,
        };
        let policy = PolicyFacts {
            policy: None,
            rules: &[],
            denied: &[],
            session_id: None,
            untrusted_context: false,
        };
        let mut counters = Counters::default();
        plan(&calls, facts, preparation, &options, policy, &mut counters)
    };
    let limit = "Not run: a limit of this run was reached.";
    let choice = "Not run: no tool may be called in this request (tool choice `none`). \
                  Answer without calling.";
    for (wrap_up, forbidden, text) in [(true, true, limit), (false, true, choice)] {
        let plan = planned(wrap_up, forbidden);
        // The model may still answer: an unknown name does not end the run either.
        assert_eq!(plan.end, None);
        assert_eq!(plan.batch.calls().len(), names.len());
        for (call, name) in plan.batch.calls().iter().zip(names) {
            let CallState::Settled(settled) = &call.state else {
                panic!("'{name}' is {:?}", call.state);
            };
            assert_eq!(settled.call.id(), name);
            assert_eq!(settled.result.call_id(), name);
            let outcome = ToolOutcome::skipped(SkipReason::Limit);
            assert_eq!(settled.result.outcome(), outcome, "{name}");
            assert_eq!(settled.result.text(), text, "{name}");
        }
    }
    // Where nothing was forbidden, the unknown name ends the run and the others are skipped for it.
    assert!(planned(false, false).end.is_some());
}
