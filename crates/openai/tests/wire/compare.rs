//! Whether an outcome is acceptable for a case. `comparator_*` tests show that it is not lenient.

use std::collections::HashSet;

use raf_core::{ToolCall, Usage};
use serde_json::{Map, Value};

use crate::case::Case;
use crate::outcome::Outcome;

/// Compares with all that is acceptable under the client's setting for think tags.
pub(crate) fn compare(case: &Case, think_tags: bool, outcome: &Outcome) -> Result<(), String> {
    if let Some(error) = &outcome.error {
        let shown = format!("{error} {error:?}");
        let forbidden = &case.expected()["error"]["message_must_not_contain"];
        if forbidden.as_str().is_some_and(|text| shown.contains(text)) {
            return Err(format!("the error tells {forbidden}: {shown}"));
        }
    }
    let mut faults = Vec::new();
    for acceptable in case.acceptable() {
        let wanted = acceptable
            .get("option")
            .and_then(|option| option["think_tags"].as_bool());
        if wanted.is_some_and(|wanted| wanted != think_tags) {
            continue;
        }
        match fault(&acceptable, outcome) {
            None => return Ok(()),
            Some(fault) => faults.push(fault),
        }
    }
    Err(format!("{}\noutcome: {outcome:#?}", faults.join("\n")))
}

fn fault(acceptable: &Map<String, Value>, outcome: &Outcome) -> Option<String> {
    let get = |name: &str| acceptable.get(name).unwrap_or(&Value::Null);
    let different = |what: &str, got: &dyn std::fmt::Debug| {
        Some(format!("{what}: wanted {}, got {got:?}", get(what)))
    };
    if get("text").as_str().unwrap_or("") != outcome.text {
        return different("text", &outcome.text);
    }
    if get("reasoning").as_str().unwrap_or("") != outcome.reasoning {
        return different("reasoning", &outcome.reasoning);
    }
    let refusal = get("refusal").as_str().unwrap_or("");
    if refusal != outcome.refusal && refusal != outcome.text {
        return different("refusal", &outcome.refusal);
    }
    if let Some(fault) = error_fault(get("error"), outcome) {
        return Some(fault);
    }
    // Where there is an error, no finish reason is seen, whatever the case calls it.
    let wanted = if get("error").is_null() {
        get("finish_reason").as_str()
    } else {
        None
    };
    if wanted != outcome.finish_reason {
        return different("finish_reason", &outcome.finish_reason);
    }
    if !is_same_usage(get("usage"), outcome.usage.as_ref()) {
        return different("usage", &outcome.usage);
    }
    calls_fault(get("tool_calls"), outcome)
}

fn error_fault(wanted: &Value, outcome: &Outcome) -> Option<String> {
    let (error, class) = match (&outcome.error, outcome.error_class()) {
        (Some(error), Some(class)) if wanted.is_object() => (error, class),
        (None, _) if wanted.is_null() => return None,
        (error, _) => return Some(format!("error: wanted {wanted}, got {error:?}")),
    };
    let wait = error.retry_after().map(|wait| {
        let up = u64::from(wait.subsec_nanos() % 1_000_000 > 0);
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) + up
    });
    let contains = wanted["message_contains"].as_str().unwrap_or("");
    let is_same = wanted["class"].as_str() == Some(class)
        && wanted["retryable"].as_bool() == Some(error.is_temporary())
        && wanted["retry_after_ms"].as_u64() == wait
        && error.to_string().contains(contains);
    (!is_same).then(|| format!("error: wanted {wanted}, got {error:?}"))
}

fn is_same_usage(wanted: &Value, got: Option<&Usage>) -> bool {
    let Some(got) = got else {
        return wanted.is_null();
    };
    wanted.is_object()
        && wanted["prompt_tokens"].as_u64() == got.input_tokens
        && wanted["completion_tokens"].as_u64() == got.output_tokens
        && wanted["total_tokens"].as_u64() == got.total_tokens
}

/// Calls that miss something are not runnable: they count only where the case names them.
fn calls_fault(wanted: &Value, outcome: &Outcome) -> Option<String> {
    let wanted = wanted.as_array().map_or(&[][..], Vec::as_slice);
    let names_incomplete = wanted.iter().any(|call| call["incomplete"] == true);
    let got: Vec<&ToolCall> = outcome
        .calls
        .values()
        .filter(|call| names_incomplete || call.is_complete())
        .collect();
    let ids: HashSet<&str> = got.iter().map(|call| call.id()).collect();
    let is_same = got.len() == wanted.len()
        && ids.len() == got.len()
        && !ids.contains("")
        && wanted
            .iter()
            .zip(&got)
            .all(|(wanted, got)| is_same_call(wanted, got));
    (!is_same).then(|| format!("tool_calls: wanted {wanted:?}, got {got:?}"))
}

fn is_same_call(wanted: &Value, got: &ToolCall) -> bool {
    let id = wanted["id"].as_str().unwrap_or("");
    let arguments = &wanted["arguments"];
    let same_arguments = match arguments.as_str() {
        Some(raw) => raw == got.arguments(),
        None => serde_json::from_str::<Value>(got.arguments()).is_ok_and(|got| got == *arguments),
    };
    let extra = wanted.get("extra");
    let got_extra = got.provider_data().map(|data| &data.data);
    (id == "any-nonempty-unique" || id == got.id())
        && wanted["name"].as_str() == Some(got.name())
        && same_arguments
        && extra == got_extra
        && got.is_complete() == (wanted["incomplete"] != true)
}
