//! Responses, shaped like the answers of OpenAI: items that are added, grow and
//! are done, and the whole of it once more at the end.

use serde_json::{Value, json};

use super::{named_frame, quoted};
use crate::spec::answer::{text, token};
use crate::spec::{Answer, Call};

const RESPONSE_ID: &str = "resp_68e1f2a4c0d8819c9b2d7a53a1f0e6c40b7d9e8f1a2b3c4d";
const MESSAGE_ID: &str = "msg_68e1f2a59c7c819c8d3e6f70a1b2c3d40b7d9e8f1a2b3c4d";
/// What pads each delta against guessing by its length.
const OBFUSCATION: &str = "dQK5c3qgNsM";

pub fn frames(answer: &Answer) -> Vec<String> {
    let mut events = Events::default();
    let begun = response("in_progress", &[], None);
    events.push("response.created", &format!(r#","response":{begun}"#));
    events.push("response.in_progress", &format!(r#","response":{begun}"#));
    let (output, tokens) = match answer {
        Answer::Text { tokens } => (vec![events.message(*tokens)], *tokens),
        Answer::Calls { calls, fragments } => {
            let call = |(index, call)| events.call(index, call, *fragments);
            (calls.iter().enumerate().map(call).collect(), 100)
        }
    };
    let whole = response("completed", &output, Some(tokens));
    events.push("response.completed", &format!(r#","response":{whole}"#));
    events.frames
}

/// The events so far; each has its number.
#[derive(Default)]
struct Events {
    frames: Vec<String>,
}

impl Events {
    fn push(&mut self, kind: &str, fields: &str) {
        let number = self.frames.len();
        self.frames.push(named_frame(
            kind,
            &format!(r#","sequence_number":{number}{fields}"#),
        ));
    }

    /// Pushes a message with its text; returns the item.
    fn message(&mut self, tokens: usize) -> Value {
        let at = format!(r#","item_id":"{MESSAGE_ID}","output_index":0,"content_index":0"#);
        let part = |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
        let item = |status: &str, content: Value| json!({"id": MESSAGE_ID, "type": "message", "status": status, "content": content, "role": "assistant"});
        self.item(
            "response.output_item.added",
            0,
            &item("in_progress", json!([])),
        );
        self.push(
            "response.content_part.added",
            &format!(r#"{at},"part":{}"#, part("")),
        );
        for n in 0..tokens {
            self.push(
                "response.output_text.delta",
                &format!(
                    r#"{at},"delta":{},"logprobs":[],"obfuscation":"{OBFUSCATION}""#,
                    quoted(token(n))
                ),
            );
        }
        let text = text(tokens);
        self.push(
            "response.output_text.done",
            &format!(r#"{at},"text":{},"logprobs":[]"#, quoted(&text)),
        );
        self.push(
            "response.content_part.done",
            &format!(r#"{at},"part":{}"#, part(&text)),
        );
        let done = item("completed", json!([part(&text)]));
        self.item("response.output_item.done", 0, &done);
        done
    }

    /// Pushes a call with its arguments; returns the item.
    fn call(&mut self, index: usize, call: &Call, fragments: usize) -> Value {
        let id = call.id.replacen("call_", "fc_", 1);
        let at = format!(r#","item_id":"{id}","output_index":{index}"#);
        let item = |status: &str, arguments: &str| {
            json!({"id": id, "type": "function_call", "status": status, "arguments": arguments,
                "call_id": call.id, "name": call.name})
        };
        self.item(
            "response.output_item.added",
            index,
            &item("in_progress", ""),
        );
        for piece in call.fragments(fragments) {
            self.push(
                "response.function_call_arguments.delta",
                &format!(
                    r#"{at},"delta":{},"obfuscation":"{OBFUSCATION}""#,
                    quoted(piece)
                ),
            );
        }
        self.push(
            "response.function_call_arguments.done",
            &format!(r#"{at},"arguments":{}"#, quoted(&call.arguments)),
        );
        let done = item("completed", &call.arguments);
        self.item("response.output_item.done", index, &done);
        done
    }

    fn item(&mut self, kind: &str, index: usize, item: &Value) {
        self.push(kind, &format!(r#","output_index":{index},"item":{item}"#));
    }
}

/// The object that stands at both ends of a stream.
fn response(status: &str, output: &[Value], tokens: Option<usize>) -> Value {
    let usage = tokens.map(|tokens| {
        json!({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 100 + tokens})
    });
    json!({
        "id": RESPONSE_ID, "object": "response", "created_at": 1_760_000_000, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "model": "gpt-4.1-2025-04-14", "output": output,
        "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null}, "service_tier": "default", "store": false,
        "temperature": 1.0, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": usage, "user": null, "metadata": {}
    })
}
