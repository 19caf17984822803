//! Stream, body and error cases: the client that reads them, and what must go back.

use std::sync::Arc;

use raf_core::{ChatClientRunOptions, ChatMessage, ToolDeclaration, ToolResult};
use raf_openai::{
    Limits, OpenAiOptions, OpenAiResponsesChatClient, ResponsesRunOptionsExt, Timeouts,
};
use raf_testing::wire::{Comparison, Outcome, Replies, ReplySetup, WireCase, list};
use serde_json::{Value, json};

use crate::checks::{items, stands};
use crate::dialects::of_server;

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
        options: options(case),
        comparison: Comparison {
            has_option: &|_| true,
            call_extra: |call| {
                let item = &call.provider_data()?.data["item"];
                (item["type"] == "custom_tool_call").then(|| json!({"type": "custom"}))
            },
            usage_details: true,
        },
        also: &|outcome| must_return(case, outcome),
    })
}

/// The tools of the case's request.
fn options(case: &WireCase) -> ChatClientRunOptions {
    let mut options = ChatClientRunOptions::new().with_model("m");
    for tool in list(&case.json["request"]["tools"]) {
        if tool["type"] == "function" {
            let name = tool["name"].as_str().unwrap_or("");
            options.tools.push(ToolDeclaration::new(name, ""));
        } else {
            options = options.with_hosted_tool(tool.clone());
        }
    }
    options
}

fn client(setup: ReplySetup<'_>) -> OpenAiResponsesChatClient {
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
        .with_responses_dialect(of_server(setup.case.server()))
        .with_streaming(setup.streaming)
        .with_limits(limits)
        .with_timeouts(timeouts);
    OpenAiResponsesChatClient::new(options).expect("options that work")
}

/// The items that the next stateless request must hold, in order, with nothing between them.
fn must_return(case: &WireCase, outcome: &Outcome) -> Result<(), String> {
    let acceptable = case.acceptable();
    let wanted: Vec<&[Value]> = acceptable
        .iter()
        .filter_map(|acceptable| acceptable.get("must_return"))
        .map(list)
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let mut messages = outcome.conversation()?;
    let calls = outcome.calls.values().filter(|call| call.is_complete());
    messages.extend(calls.map(|call| ChatMessage::tool(ToolResult::ok(call.id(), "21 C"))));
    messages.push(ChatMessage::user("And now?"));
    let own = OpenAiOptions::new()
        .with_model("m")
        .with_responses_dialect(of_server(case.server()));
    let client = OpenAiResponsesChatClient::new(own).map_err(|error| error.to_string())?;
    let body = client
        .request_body(&messages, &options(case))
        .map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let items = items(&body);
    if wanted.iter().any(|wanted| stands(&items, wanted, false)) {
        Ok(())
    } else {
        Err(format!("must return {wanted:?}, but the request is {body}"))
    }
}
