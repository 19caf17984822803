//! What may be sent, for transcripts of every kind.

use proptest::prelude::*;

use super::{HistoryFault, all_differ, is_valid_history, made_valid, normalise, validate_history};
use crate::{
    ChatMessage, Content, MessageRole, Occurrence, ReasoningContent, ToolCall, ToolOutcome,
    ToolResult,
};

fn calls(ids: &[&str]) -> ChatMessage {
    ChatMessage::assistant_calls(ids.iter().map(|id| ToolCall::new(*id, "f", "{}")))
}

fn result(id: &str, text: &str) -> ChatMessage {
    ChatMessage::tool(ToolResult::ok(id, text))
}

fn shape(messages: &[ChatMessage]) -> Vec<String> {
    messages
        .iter()
        .map(|message| match message.role() {
            MessageRole::Assistant => {
                let ids: Vec<_> = message.tool_calls().map(ToolCall::id).collect();
                format!("A:{}[{}]", message.text(), ids.join(","))
            }
            MessageRole::Tool => {
                let result = message.tool_results().next().unwrap();
                let kind = match result.outcome() {
                    ToolOutcome::Ok => result.text(),
                    _ => "filler".to_owned(),
                };
                format!("R({},{kind})", result.call_id())
            }
            _ => format!("U:{}", message.text()),
        })
        .collect()
}

fn check(transcript: &[ChatMessage], expect: &[&str]) {
    let output = normalise(transcript);
    assert_eq!(shape(&output), expect);
    assert_eq!(validate_history(&output), Ok(()));
    assert_eq!(normalise(&output), output, "idempotent");
}

#[test]
fn a1_results_stand_behind_their_call_in_call_order() {
    let user = ChatMessage::user("go");
    check(
        &[
            user.clone(),
            calls(&["1", "2"]),
            result("2", "b"),
            ChatMessage::user("x"),
            result("1", "a"),
        ],
        &["U:go", "A:[1,2]", "R(1,a)", "R(2,b)", "U:x"],
    );
}

#[test]
fn a2_a_missing_result_is_filled() {
    check(
        &[
            calls(&["1", "2"]),
            result("1", "a"),
            ChatMessage::user("continue"),
        ],
        &["A:[1,2]", "R(1,a)", "R(2,filler)", "U:continue"],
    );
}

#[test]
fn a1_a_result_without_its_call_is_left_out() {
    check(
        &[
            result("9", "x"),
            calls(&["1"]),
            result("1", "a"),
            result("1", "again"),
        ],
        &["A:[1]", "R(1,a)"],
    );
}

#[test]
fn a1_empty_assistant_messages_are_left_out() {
    let thought = ChatMessage::new(
        MessageRole::Assistant,
        [Content::Reasoning(ReasoningContent::new("hm"))],
    );
    check(
        &[
            ChatMessage::assistant(""),
            thought,
            ChatMessage::assistant("x"),
        ],
        &["A:x[]"],
    );
}

#[test]
fn a6_ids_that_clash_are_relabelled_together() {
    check(
        &[
            calls(&["1"]),
            result("1", "a"),
            calls(&["1"]),
            result("1", "b"),
        ],
        &["A:[1]", "R(1,a)", "A:[call_2_0]", "R(call_2_0,b)"],
    );
    check(
        &[calls(&["", ""]), result("", "a"), result("", "b")],
        &["A:[call_0_0,call_0_1]", "R(call_0_0,a)", "R(call_0_1,b)"],
    );
    check(
        &[
            calls(&["call_0_1", ""]),
            result("", "b"),
            result("call_0_1", "a"),
        ],
        &[
            "A:[call_0_1,call_0_1_1]",
            "R(call_0_1,a)",
            "R(call_0_1_1,b)",
        ],
    );
}

#[test]
fn a6_of_calls_with_one_id_the_position_tells_them_apart() {
    let second = ToolResult::builder("", ToolOutcome::Ok)
        .occurrence(Occurrence::new(0, 1))
        .text("b")
        .build();
    check(
        &[calls(&["", ""]), ChatMessage::tool(second)],
        &[
            "A:[call_0_0,call_0_1]",
            "R(call_0_0,filler)",
            "R(call_0_1,b)",
        ],
    );
}

#[test]
fn e3_a_result_of_the_loop_stands_before_one_that_a_caller_made_up() {
    let own = ToolResult::builder("1", ToolOutcome::Ok)
        .occurrence(Occurrence::new(0, 0))
        .text("own")
        .build();
    check(
        &[
            calls(&["1"]),
            result("1", "made up"),
            ChatMessage::tool(own),
        ],
        &["A:[1]", "R(1,own)"],
    );
}

#[test]
fn a4_malformed_arguments_are_sent_as_an_object() {
    for (raw, sent) in [
        (
            r#"{"path": "a", "#,
            r#"{"malformed_arguments":"{\"path\": \"a\", "}"#,
        ),
        (r#"["a"]"#, r#"{"malformed_arguments":"[\"a\"]"}"#),
        ("", "{}"),
        (" null ", "{}"),
        (r#" {"a": 1}"#, r#" {"a": 1}"#),
    ] {
        let message = ChatMessage::assistant_calls([ToolCall::new("1", "f", raw)]);
        let output = normalise(&[message.clone(), result("1", "x")]);
        assert_eq!(output[0].tool_calls().next().unwrap().arguments(), sent);
        assert_eq!(message.tool_calls().next().unwrap().arguments(), raw);
        assert_eq!(validate_history(&output), Ok(()));
    }
}

#[test]
fn a_plain_tool_message_answers_the_first_open_call() {
    let plain = ChatMessage::new(MessageRole::Tool, [Content::text("plain")]);
    check(
        &[calls(&["1", "2"]), result("1", "a"), plain],
        &["A:[1,2]", "R(1,a)", "R(2,plain)"],
    );
}

#[test]
fn untouched_messages_are_the_same_handles() {
    let transcript = [ChatMessage::user("go"), calls(&["1"]), result("1", "a")];
    for (before, after) in transcript.iter().zip(normalise(&transcript)) {
        assert!(before.is_same(&after));
    }
}

#[test]
fn faults_are_named() {
    let faults = validate_history(&[
        calls(&["1", "1"]),
        result("1", "a"),
        ChatMessage::assistant(""),
        result("9", "x"),
    ])
    .unwrap_err();
    assert_eq!(
        faults,
        [
            HistoryFault::BadCallId {
                message: 0,
                call_id: "1".into()
            },
            HistoryFault::MissingResult {
                message: 0,
                call_id: "1".into()
            },
            HistoryFault::EmptyAssistantMessage { message: 2 },
            HistoryFault::StrayResult {
                message: 3,
                call_id: "9".into()
            },
        ]
    );
}

fn any_message() -> impl Strategy<Value = ChatMessage> {
    let id = prop_oneof![Just(String::new()), "[a-c]", "call_[0-3]_[0-2]"];
    let arguments = prop_oneof![Just("{}"), Just(""), Just("{\"a\":"), Just("[1]")];
    let call = (id.clone(), arguments).prop_map(|(id, text)| ToolCall::new(id, "f", text));
    prop_oneof![
        "[a-z]{0,3}".prop_map(ChatMessage::user),
        "[a-z]{0,3}".prop_map(ChatMessage::assistant),
        prop::collection::vec(call, 1..4).prop_map(ChatMessage::assistant_calls),
        prop::collection::vec(id, 1..4).prop_map(|ids| {
            ChatMessage::new(
                MessageRole::Tool,
                ids.into_iter()
                    .map(|id| Content::ToolResult(ToolResult::ok(id, "r"))),
            )
        }),
        Just(ChatMessage::new(
            MessageRole::Tool,
            [Content::text("plain")]
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a1_whatever_goes_in_what_comes_out_is_valid(
        transcript in prop::collection::vec(any_message(), 0..12)
    ) {
        let output = normalise(&transcript);
        prop_assert_eq!(validate_history(&output), Ok(()));
        prop_assert_eq!(&normalise(&output), &output);
        prop_assert_eq!(made_valid(&output), output);
    }

    #[test]
    fn a1_the_quick_check_finds_what_the_one_with_reasons_finds(
        transcript in prop::collection::vec(any_message(), 0..12),
        cut in 0_usize..30,
        without in 0_usize..30,
    ) {
        let mut output = normalise(&transcript);
        prop_assert!(is_valid_history(&output));
        output.truncate(cut);
        if without < output.len() {
            output.remove(without);
        }
        for messages in [transcript, output] {
            prop_assert_eq!(is_valid_history(&messages), validate_history(&messages).is_ok());
        }
    }

    #[test]
    fn a7_a_settled_prefix_stays_as_it_is(
        transcript in prop::collection::vec(any_message(), 0..12),
        more in prop::collection::vec("[a-z]{1,3}", 0..4),
    ) {
        let shorter = normalise(&transcript);
        let mut longer = shorter.clone();
        longer.extend(more.into_iter().map(ChatMessage::user));
        prop_assert_eq!(&normalise(&longer)[..shorter.len()], &shorter[..]);
    }
}

#[test]
fn texts_differ_or_two_are_the_same() {
    let long = |end: &str| format!("call_0123456789abcdef{end}");
    let (a, b) = (long("a"), long("b"));
    let same_end = (format!("1{a}"), format!("2{a}"));
    for (texts, differ) in [
        (vec![], true),
        (vec!["a", "b"], true),
        (vec!["b", "a"], true),
        (vec!["b", "a", "b"], false),
        (vec!["", ""], false),
        (vec!["a", ""], true),
        (vec!["\0", ""], true),
        (vec![&*b, &*a], true),
        (vec![&*b, &*a, &*b], false),
        (vec![&*same_end.1, &*same_end.0], true),
        (vec![&*same_end.1, &*same_end.0, &*same_end.1], false),
    ] {
        assert_eq!(all_differ(&mut texts.clone()), differ, "{texts:?}");
    }
}
