//! Chat Completions, shaped like the answers of OpenAI.

use serde_json::{Value, json};

use crate::spec::answer::{text, token};
use crate::spec::{
    Answer, BIG_CALLS, BIG_FRAGMENTS, CALL_FRAGMENTS, CALLS_PER_ROUND, Call, FINAL_CHUNKS, Scenario,
};

/// Identity fields repeated in every chunk.
const CHUNK_ID: &str = "chatcmpl-CQ8x1fJmTz2Yy3bZ0kq7nVwX9aBcD";
const CHUNK_MODEL: &str = "gpt-4.1-2025-04-14";
const FINGERPRINT: &str = "fp_e24a1fec47";
const CREATED: u64 = 1_760_000_000;

/// The chunk with the role; the finish reason, the usage and `[DONE]`.
const FRAME: usize = 4;

/// `data:` events in one run, `[DONE]` included. Counted, not rendered: that
/// would show in the peak memory of the clients.
pub fn event_count(scenario: Scenario) -> usize {
    let calls = |calls: usize, fragments: usize| FRAME + calls * (1 + fragments);
    match scenario {
        Scenario::Text | Scenario::TextBulk | Scenario::TextPaced | Scenario::TextAgent => {
            FRAME + scenario.chunks()
        }
        Scenario::Tools => calls(BIG_CALLS, BIG_FRAGMENTS),
        Scenario::Loop | Scenario::Concurrent | Scenario::Long => {
            (scenario.rounds() - 1) * calls(CALLS_PER_ROUND, CALL_FRAGMENTS) + FRAME + FINAL_CHUNKS
        }
    }
}

pub fn frames(answer: &Answer) -> Vec<String> {
    let events = match answer {
        Answer::Text { tokens } => text_events(*tokens),
        Answer::Calls { calls, fragments } => call_events(calls, *fragments),
    };
    let frame = |event| format!("data: {event}\n\n");
    events.into_iter().map(frame).collect()
}

fn text_events(tokens: usize) -> Vec<String> {
    let role = json!({"role": "assistant", "content": "", "refusal": null});
    let mut events = vec![chunk(role, None)];
    events.extend((0..tokens).map(|n| chunk(json!({"content": token(n)}), None)));
    finish(&mut events, "stop", tokens);
    events
}

fn call_events(calls: &[Call], fragments: usize) -> Vec<String> {
    let mut events = vec![chunk(json!({"role": "assistant", "content": null}), None)];
    for (index, call) in calls.iter().enumerate() {
        events.push(chunk(
            json!({"tool_calls": [{
                "index": index, "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": ""}
            }]}),
            None,
        ));
        for piece in call.fragments(fragments) {
            events.push(chunk(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                None,
            ));
        }
    }
    finish(&mut events, "tool_calls", 100);
    events
}

fn chunk(delta: Value, finish_reason: Option<&str>) -> String {
    let choice = format!(
        r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{}}}"#,
        json!(finish_reason)
    );
    envelope(&choice, "null")
}

fn envelope(choice: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"{CHUNK_ID}","object":"chat.completion.chunk","created":{CREATED},"model":"{CHUNK_MODEL}","service_tier":"default","system_fingerprint":"{FINGERPRINT}","choices":[{choice}],"usage":{usage}}}"#
    )
}

fn finish(events: &mut Vec<String>, reason: &str, tokens: usize) {
    events.push(chunk(json!({}), Some(reason)));
    events.push(envelope("", &usage(tokens).to_string()));
    events.push("[DONE]".into());
}

/// The answer to a client that does not ask for a stream.
pub fn document(answer: &Answer) -> String {
    let (message, reason) = match answer {
        Answer::Text { tokens } => (
            json!({"role": "assistant", "content": text(*tokens)}),
            "stop",
        ),
        Answer::Calls { calls, .. } => {
            let call = |call: &Call| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            };
            let calls: Vec<_> = calls.iter().map(call).collect();
            (
                json!({"role": "assistant", "content": null, "tool_calls": calls}),
                "tool_calls",
            )
        }
    };
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": reason
    });
    json!({
        "id": CHUNK_ID, "object": "chat.completion", "created": CREATED,
        "model": CHUNK_MODEL, "service_tier": "default", "system_fingerprint": FINGERPRINT,
        "choices": [choice], "usage": usage(100)
    })
    .to_string()
}

fn usage(tokens: usize) -> Value {
    json!({
        "prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{event_count, frames};
    use crate::spec::Scenario;

    #[test]
    fn the_counted_events_are_those_rendered() {
        for scenario in Scenario::ALL {
            let rendered: usize = (0..scenario.rounds())
                .map(|round| frames(&scenario.answer(round)).len())
                .sum();
            assert_eq!(event_count(scenario), rendered, "{}", scenario.name());
        }
    }
}
