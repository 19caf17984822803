//! What updates fold to.

use serde_json::json;

use super::ResponseFold;
use crate::{
    AgentResponseUpdate as Update, ChatMessage, Content, ErrorKind, Finish, FinishReason,
    MessageStatus, Occurrence, ProviderData, ToolCall, ToolCallHead, ToolOutcome, ToolResult,
    Usage,
};

fn start(position: u32, id: &str) -> Update {
    Update::ToolCallStart {
        position,
        call: Box::new(ToolCallHead::new(id, "f")),
    }
}

fn end(position: u32, id: &str) -> Update {
    Update::ToolCallEnd {
        position,
        call: ToolCall::new(id, "f", "{}"),
    }
}

fn called(round: u32, position: u32) -> Update {
    let occurrence = Occurrence::new(round, position);
    Update::ToolCalled {
        occurrence,
        result: ToolResult::builder(format!("c{round}{position}"), ToolOutcome::Ok)
            .occurrence(occurrence)
            .text("r")
            .build(),
    }
}

fn finish(reason: FinishReason) -> Update {
    Update::finish(Finish::new(reason))
}

fn fold(updates: &[Update]) -> ResponseFold {
    let mut fold = ResponseFold::new();
    for update in updates {
        fold.push(update);
    }
    fold
}

fn shape(messages: &[ChatMessage]) -> Vec<String> {
    messages
        .iter()
        .map(|message| {
            let parts: Vec<String> = message
                .contents()
                .iter()
                .map(|part| match part {
                    Content::Text(text) => format!("'{}'", text.text),
                    Content::Reasoning(thought) => format!("~{}~", thought.text),
                    Content::ToolCall(call) => format!("[{}]", call.id()),
                    Content::ToolResult(result) => format!("={}", result.call_id()),
                    other => format!("{other:?}"),
                })
                .collect();
            format!("{:?}:{}", message.role(), parts.join(""))
        })
        .collect()
}

#[test]
fn deltas_join_in_order_and_a_call_stands_where_it_started() {
    let response = fold(&[
        Update::assistant_start(),
        Update::text("a"),
        Update::text("b"),
        start(0, "c1"),
        Update::text("c"),
        start(1, "c2"),
        end(1, "c2"),
        end(0, "c1"),
        Update::message_end(),
        finish(FinishReason::ToolCalls),
    ])
    .finish()
    .unwrap();
    assert_eq!(shape(&response.messages), ["Assistant:'ab'[c1]'c'[c2]"]);
}

#[test]
fn reasoning_data_ends_its_part() {
    let data = || Update::ReasoningData {
        data: Box::new(ProviderData::new("p", json!("sig"))),
    };
    let thought = |text: &str| Update::ReasoningDelta { text: text.into() };
    let response = fold(&[
        thought("a"),
        thought("b"),
        data(),
        thought("c"),
        Update::text("t"),
        data(),
        finish(FinishReason::Stop),
    ])
    .finish()
    .unwrap();
    assert_eq!(shape(&response.messages), ["Assistant:~ab~~c~'t'~~"]);
}

#[test]
fn results_of_a_round_are_put_in_call_order() {
    let response = fold(&[
        called(0, 2),
        called(0, 0),
        called(0, 1),
        Update::text("x"),
        Update::message_end(),
        called(1, 1),
        called(1, 0),
        finish(FinishReason::Stop),
    ])
    .finish()
    .unwrap();
    assert_eq!(
        shape(&response.messages),
        [
            "Tool:=c00",
            "Tool:=c01",
            "Tool:=c02",
            "Assistant:'x'",
            "Tool:=c10",
            "Tool:=c11"
        ]
    );
}

#[test]
fn a_cut_message_keeps_its_text_and_loses_unfinished_calls() {
    let error = fold(&[
        Update::text("par"),
        start(0, "c1"),
        end(0, "c1"),
        start(1, "c2"),
        Update::usage(Usage::new(3, 4)),
    ])
    .finish()
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TruncatedStream);
    let leg = error.leg().unwrap();
    assert_eq!(shape(&leg.messages), ["Assistant:'par'[c1]"]);
    assert_eq!(leg.messages[0].status(), MessageStatus::Incomplete);
    assert_eq!(leg.usage, Usage::new(3, 4));
}

#[test]
fn an_empty_message_is_dropped() {
    let updates = [
        Update::assistant_start(),
        Update::text(""),
        start(0, "c1"),
        Update::message_end(),
        finish(FinishReason::Stop),
    ];
    assert!(fold(&updates).finish().unwrap().messages.is_empty());
}

#[test]
fn a_reset_forgets_the_attempt_but_not_its_tokens() {
    let response = fold(&[
        Update::text("Let me "),
        start(0, "c1"),
        Update::usage(Usage::new(180, 5)),
        Update::AttemptReset {
            reason: "cut".into(),
        },
        Update::text("Let me compute."),
        Update::usage(Usage::new(180, 30)),
        finish(FinishReason::Stop),
    ])
    .finish()
    .unwrap();
    assert_eq!(shape(&response.messages), ["Assistant:'Let me compute.'"]);
    assert_eq!(response.usage, Usage::new(360, 35));
}

#[test]
fn cumulative_reports_of_one_reply_count_once() {
    let response = fold(&[
        Update::assistant_start(),
        Update::usage(Usage::new(10, 1)),
        Update::usage(Usage::new(10, 2)),
        Update::text("x"),
        Update::message_end(),
        Update::usage(Usage::new(10, 3)),
        Update::assistant_start(),
        Update::usage(Usage::new(20, 1)),
        Update::text("y"),
        finish(FinishReason::Stop),
    ])
    .finish()
    .unwrap();
    assert_eq!(response.usage, Usage::new(30, 4));
}
