//! Messages, shaped like the answers of Anthropic: blocks that begin, grow and
//! end, between the start of the message and its end.

use serde_json::json;

use super::{named_frame, quoted};
use crate::spec::answer::token;
use crate::spec::{Answer, Call};

const MESSAGE: &str = r#","message":{"id":"msg_01HCDu5LRGeP2o7s2xGmxyx8","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}"#;

pub fn frames(answer: &Answer) -> Vec<String> {
    let mut frames = vec![named_frame("message_start", MESSAGE)];
    match answer {
        Answer::Text { tokens } => {
            let pieces = (0..*tokens).map(token);
            block(
                &mut frames,
                0,
                r#"{"type":"text","text":""}"#,
                |text| format!(r#"{{"type":"text_delta","text":{}}}"#, quoted(text)),
                pieces,
            );
            finish(&mut frames, "end_turn", *tokens);
        }
        Answer::Calls { calls, fragments } => {
            for (index, call) in calls.iter().enumerate() {
                // The first fragment of a call is empty there.
                let pieces = std::iter::once("").chain(call.fragments(*fragments));
                block(
                    &mut frames,
                    index,
                    &begun(call),
                    |piece| {
                        format!(
                            r#"{{"type":"input_json_delta","partial_json":{}}}"#,
                            quoted(piece)
                        )
                    },
                    pieces,
                );
            }
            finish(&mut frames, "tool_use", 100);
        }
    }
    frames
}

fn begun(call: &Call) -> String {
    let (id, name) = (json!(call.id), json!(call.name));
    format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#)
}

fn block<'a>(
    frames: &mut Vec<String>,
    index: usize,
    begun: &str,
    delta: impl Fn(&str) -> String,
    pieces: impl Iterator<Item = &'a str>,
) {
    let at = format!(r#","index":{index}"#);
    frames.push(named_frame(
        "content_block_start",
        &format!(r#"{at},"content_block":{begun}"#),
    ));
    if index == 0 {
        frames.push(named_frame("ping", ""));
    }
    frames.extend(pieces.map(|piece| {
        named_frame(
            "content_block_delta",
            &format!(r#"{at},"delta":{}"#, delta(piece)),
        )
    }));
    frames.push(named_frame("content_block_stop", &at));
}

fn finish(frames: &mut Vec<String>, reason: &str, tokens: usize) {
    frames.push(named_frame("message_delta", &format!(
        r#","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":{tokens}}}"#
    )));
    frames.push(named_frame("message_stop", ""));
}
