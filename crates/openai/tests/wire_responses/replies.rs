//! Stream, body and error cases: served on loopback as written and re-cut, compared, and sent back.

use std::sync::Arc;
use std::time::Duration;

use raf_core::{ChatClientRunOptions, ChatMessage, ResponseFold, ToolDeclaration, ToolResult};
use raf_openai::{
    Limits, OpenAiOptions, OpenAiResponsesChatClient, ResponsesRunOptionsExt, Timeouts,
};
use raf_testing::wire::{
    Comparison, Cut, End, Outcome, WireCase, WireReply, compare, list, replay, reply_of,
};
use serde_json::{Value, json};

use crate::checks::{items, stands};
use crate::dialects::of_server;

/// Runs a case in all cuts, and once more with the client's other setting of streaming: what a server
/// sends is read by its form, not by what was asked for.
pub(crate) fn check(case: &WireCase) -> Result<(), String> {
    let is_stream = case.kind() != "body";
    let comparison = Comparison {
        has_option: &|_| true,
        call_extra: |call| {
            let item = &call.provider_data()?.data["item"];
            (item["type"] == "custom_tool_call").then(|| json!({"type": "custom"}))
        },
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
            .and_then(|()| must_return(case, &outcome))
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

fn client(case: &WireCase, url: &str, streaming: bool, end: End) -> OpenAiResponsesChatClient {
    let mut limits = Limits::default();
    if case.is_large() && case.kind() == "stream" && !case.expected()["error"].is_null() {
        limits = limits.with_line_bytes(64 * 1024);
    }
    let options = OpenAiOptions::new()
        .with_base_url(url)
        .with_api_key("sk-test-12345")
        .with_model("m")
        .with_responses_dialect(of_server(case.server()))
        .with_streaming(streaming)
        .with_limits(limits)
        .with_timeouts(timeouts(end));
    OpenAiResponsesChatClient::new(options).expect("options that work")
}

fn run(case: &WireCase, reply: WireReply, streaming: bool) -> Outcome {
    let end = reply.end;
    let messages = [ChatMessage::user("Hello")];
    replay(reply, &messages, options(case), |url| {
        Arc::new(client(case, url, streaming, end))
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
    let mut fold = ResponseFold::new();
    for update in &outcome.updates {
        fold.push(update);
    }
    let response = fold.finish().map_err(|error| error.to_string())?;
    let mut messages = vec![ChatMessage::user("Hello")];
    messages.extend(response.messages);
    let calls = outcome.calls.values().filter(|call| call.is_complete());
    messages.extend(calls.map(|call| ChatMessage::tool(ToolResult::ok(call.id(), "21 C"))));
    messages.push(ChatMessage::user("And now?"));
    let client = client(case, "http://localhost/v1", true, End::Eof);
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
