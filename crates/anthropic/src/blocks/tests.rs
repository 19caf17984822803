//! Blocks in unusual orders: what is held back, what is made up, what closes what.

use raf_core::{AgentResponseUpdate, Content, ResponseFold};
use raf_wire::{Json, Limits};

use super::{Blocks, kind};
use crate::said::Said;

/// One step: an index, and what comes at it.
enum Step {
    Start(&'static str),
    Text(&'static str),
    Thinking(&'static str),
    Signature(&'static str),
    Arguments(&'static str),
    Citation,
    Stop,
}

use Step::{Arguments, Citation, Signature, Start, Stop, Text, Thinking};

const THINKING: &str = r#"{"type":"thinking","thinking":""}"#;
const TEXT: &str = r#"{"type":"text","text":""}"#;
const CALL: &str = r#"{"type":"tool_use","id":"t1","name":"f","input":{}}"#;
const SEARCH: &str = r#"{"type":"server_tool_use","id":"s1","name":"g","input":{}}"#;

/// The parts of the message, in a short notation, and how many updates came before the end.
fn parts(steps: &[(Option<u64>, Step)]) -> (Vec<String>, usize) {
    let mut blocks = Blocks::new("p", "m", &Limits::default());
    let mut said = Said::new(false);
    for (index, step) in steps {
        let said = &mut said;
        match step {
            Start(block) => {
                let kind = kind::of(&Json::parse(block).unwrap());
                blocks.start(*index, kind, said)
            }
            Text(piece) => blocks.text(*index, piece, said),
            Thinking(piece) => blocks.thinking(*index, piece, said),
            Signature(piece) => {
                blocks.signature(*index, piece);
                Ok(())
            }
            Arguments(piece) => blocks.arguments(*index, (*piece).into(), said),
            Citation => {
                blocks.citation(*index, &Json::parse(r#"{"c":1}"#).unwrap());
                Ok(())
            }
            Stop => blocks.stop(*index, said),
        }
        .unwrap();
    }
    let early = said.updates.len();
    blocks.close(&mut said).unwrap();
    blocks.finish_calls(false, &mut said);
    let mut fold = ResponseFold::new();
    said.updates.iter().for_each(|update| fold.push(update));
    fold.push(&AgentResponseUpdate::message_end());
    let parts = fold.messages().first().map(|message| {
        let parts = message.contents().iter().map(notation);
        parts.collect()
    });
    (parts.unwrap_or_default(), early)
}

fn notation(content: &Content) -> String {
    match content {
        Content::Text(text) => text.text.clone(),
        Content::Reasoning(part) => {
            let data = part.provider_data.as_ref().map(|data| &data.data);
            let signature = data.and_then(|data| data["signature"].as_str());
            format!("({} {})", part.text, signature.unwrap_or("-"))
        }
        Content::ToolCall(call) => format!("{}{}", call.name(), call.arguments()),
        Content::Unknown(part) => match part.value.get("input") {
            Some(input) => format!("{}{input}", part.kind()),
            None => part.kind().to_owned(),
        },
        other => panic!("{other:?}"),
    }
}

fn check(steps: &[(Option<u64>, Step)], wanted: &[&str]) {
    assert_eq!(parts(steps).0, wanted);
}

#[test]
fn a_thought_that_waits_for_its_signature_holds_back_what_follows() {
    let steps = [
        (Some(0), Start(THINKING)),
        (Some(0), Thinking("Hm")),
        (Some(1), Start(TEXT)),
        (Some(1), Text("Hi")),
        (Some(2), Start(CALL)),
        (Some(2), Arguments(r#"{"a":1}"#)),
        (Some(1), Text(" there")),
        (Some(0), Thinking("!")),
        (Some(0), Signature("sig")),
        (Some(0), Stop),
    ];
    check(&steps, &["(Hm! sig)", "Hi there", r#"f{"a":1}"#]);
}

#[test]
fn text_that_comes_late_stands_where_it_comes() {
    let steps = [
        (Some(0), Start(TEXT)),
        (Some(0), Text("a")),
        (Some(1), Start(CALL)),
        (Some(0), Text("b")),
        (Some(1), Arguments("{}")),
    ];
    check(&steps, &["a", "f{}", "b"]);
}

#[test]
fn signed_thoughts_and_texts_need_no_stop() {
    let steps = [
        (Some(0), Start(THINKING)),
        (Some(0), Thinking("A")),
        (Some(0), Signature("sig_A")),
        (Some(1), Start(THINKING)),
        (Some(1), Thinking("B")),
        (Some(1), Signature("sig_B")),
        (Some(2), Start(TEXT)),
        (Some(2), Text("Hi")),
    ];
    let (parts, early) = parts(&steps);
    assert_eq!(parts, ["(A sig_A)", "(B sig_B)", "Hi"]);
    // The start of the message, both thoughts with their data, the text: all before the end.
    assert_eq!(early, 6);
}

#[test]
fn unsigned_thoughts_stay_apart_and_empty_ones_are_nothing() {
    let steps = [
        (Some(0), Start(THINKING)),
        (Some(0), Thinking("A")),
        (Some(0), Stop),
        (Some(1), Start(THINKING)),
        (Some(1), Stop),
        (Some(2), Start(THINKING)),
        (Some(2), Thinking("B")),
        (Some(2), Signature("sig")),
        (Some(2), Stop),
    ];
    check(&steps, &["(A -)", "(B sig)"]);
}

#[test]
fn deltas_of_another_kind_make_blocks_of_their_own() {
    let steps = [
        (Some(0), Start(CALL)),
        (Some(0), Arguments(r#"{"a""#)),
        (Some(0), Text("x")),
        (Some(0), Text("y")),
        (Some(0), Signature("sig")),
        (Some(0), Arguments(":1}")),
        (Some(0), Thinking("Hm")),
    ];
    check(&steps, &[r#"f{"a":1}"#, "xy", "(Hm -)"]);
    // Without any start.
    check(&[(Some(3), Text("a")), (Some(3), Text("b"))], &["ab"]);
    check(&[(None, Arguments("{}"))], &[]);
}

#[test]
fn an_index_that_is_used_again_is_a_new_block() {
    let steps = [
        (Some(0), Start(TEXT)),
        (Some(0), Text("a")),
        (Some(0), Start(SEARCH)),
        (Some(0), Arguments(r#"{"q":"#)),
        (Some(0), Arguments("1}")),
        (Some(0), Stop),
        (Some(0), Start(TEXT)),
        (Some(0), Text("b")),
    ];
    check(&steps, &["a", r#"server_tool_use{"q":1}"#, "b"]);
}

#[test]
fn texts_behind_each_other_stay_two_and_carry_their_citations() {
    let steps = [
        (Some(0), Start(TEXT)),
        (Some(0), Citation),
        (Some(0), Text("a")),
        (Some(0), Stop),
        (Some(1), Start(TEXT)),
        (Some(1), Text("b")),
        (Some(1), Stop),
        (Some(2), Start(TEXT)),
        (Some(2), Text("c")),
    ];
    check(&steps, &["a", "citations", "b", "c"]);
}

#[test]
fn the_input_of_a_start_counts_where_no_other_comes() {
    let start = r#"{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}"#;
    check(&[(Some(0), Start(start))], &[r#"f{"a":1}"#]);
    let steps = [
        (Some(0), Start(start)),
        (Some(0), Arguments(r#"{"a":2}"#)),
        (Some(0), Stop),
    ];
    check(&steps, &[r#"f{"a":2}"#]);
    let null = r#"{"type":"mcp_tool_use","id":"s1","name":"g","input":null}"#;
    check(&[(Some(0), Start(null))], &["mcp_tool_use{}"]);
}
