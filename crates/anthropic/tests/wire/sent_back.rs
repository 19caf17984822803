//! What only these cases compare: signatures, the blocks that go back, the raw reason, ids of errors.

use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{AgentResponseUpdate, ChatClientRunOptions, ChatMessage, ResponseMetadata};
use raf_testing::wire::{Outcome, WireCase, list};
use serde_json::{Value, json};

use crate::checks::blocks;
use crate::dialects::of_reply;
use crate::transcript::MODEL;

/// Compares what the case says of it.
pub(crate) fn check(case: &WireCase, outcome: &Outcome) -> Result<(), String> {
    let expected = case.expected();
    let same = |what: &str, got: &Value| match expected.get(what) {
        Some(wanted) if wanted != got => Err(format!("{what}: wanted {wanted}, got {got}")),
        _ => Ok(()),
    };
    if let Some(error) = &outcome.error {
        let wanted = expected["error"]["request_id"].as_str();
        return match wanted {
            Some(_) if wanted != error.request_id() => {
                Err(format!("request_id: wanted {wanted:?}, got {error:?}"))
            }
            _ => Ok(()),
        };
    }
    let metadata = metadata(outcome);
    same("raw_finish_reason", &json!(metadata.raw_finish_reason))?;
    same("reasoning_signature", &signatures(outcome))?;
    let stop = metadata.extra.get("stop_sequence");
    same("stop_sequence", stop.unwrap_or(&Value::Null))?;
    let written = outcome
        .usage
        .as_ref()
        .and_then(|usage| usage.extra.get("cache_creation_input_tokens"));
    if expected["usage"]["cache_write_tokens"].as_u64() != written.copied() {
        return Err(format!("cache_write_tokens: got {written:?}"));
    }
    match expected.get("replay") {
        Some(wanted) => {
            let got = sent_back(case, outcome)?;
            if got == list(wanted) {
                Ok(())
            } else {
                Err(format!("replay: wanted {wanted}, got {got:?}"))
            }
        }
        None => Ok(()),
    }
}

fn metadata(outcome: &Outcome) -> ResponseMetadata {
    let mut metadata = ResponseMetadata::default();
    for update in &outcome.updates {
        if let AgentResponseUpdate::ResponseMetadata { metadata: more } = update {
            metadata.merge(more);
        }
    }
    metadata
}

/// None, one, or a list of them.
fn signatures(outcome: &Outcome) -> Value {
    let mut found: Vec<Value> = Vec::new();
    for update in &outcome.updates {
        if let AgentResponseUpdate::ReasoningData { data } = update {
            found.extend(data.data.get("signature").cloned());
        }
    }
    match found.len() {
        0 => Value::Null,
        1 => found.remove(0),
        _ => Value::Array(found),
    }
}

/// The blocks of the turn in the next request.
fn sent_back(case: &WireCase, outcome: &Outcome) -> Result<Vec<Value>, String> {
    let mut messages = outcome.conversation()?;
    messages.push(ChatMessage::user("Go on"));
    let options = AnthropicOptions::new()
        .with_model(MODEL)
        .with_dialect(of_reply(case.server()));
    let client = AnthropicChatClient::new(options).map_err(|error| error.to_string())?;
    let body = client
        .request_body(&messages, &ChatClientRunOptions::new())
        .map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let turns = list(&body["messages"]).iter();
    let turns = turns.filter(|message| message["role"] == "assistant");
    Ok(turns.flat_map(blocks).collect())
}
