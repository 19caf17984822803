//! Whether an outcome is acceptable for a case. `comparator_*` tests show that it is not lenient.

use std::collections::HashSet;

use raf_core::{Error, ToolCall, Usage};
use serde_json::{Map, Value};

use super::case::WireCase;
use super::outcome::{Outcome, class};

/// What else a provider's cases compare, and under which settings.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// Whether the client is set up as the `option` of an acceptable result wants it.
    pub has_option: &'a dyn Fn(&Value) -> bool,
    /// What the `extra` of a call is of this call.
    pub call_extra: fn(&ToolCall) -> Option<Value>,
    /// Whether cached, written and reasoning tokens are compared too: what a case does not name must
    /// not be reported.
    pub usage_details: bool,
}

impl std::fmt::Debug for Comparison<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison")
            .field("usage_details", &self.usage_details)
            .finish_non_exhaustive()
    }
}

/// Compares with all that is acceptable.
///
/// # Errors
/// What is different.
pub fn compare(
    case: &WireCase,
    comparison: &Comparison<'_>,
    outcome: &Outcome,
) -> Result<(), String> {
    if let Some(error) = &outcome.error {
        let shown = format!("{error} {error:?}");
        let forbidden = &case.expected()["error"]["message_must_not_contain"];
        if forbidden.as_str().is_some_and(|text| shown.contains(text)) {
            return Err(format!("the error tells {forbidden}: {shown}"));
        }
    }
    let mut faults = Vec::new();
    for acceptable in case.acceptable() {
        let option = acceptable.get("option");
        if option.is_some_and(|option| !(comparison.has_option)(option)) {
            continue;
        }
        match fault(&acceptable, comparison, outcome) {
            None => return Ok(()),
            Some(fault) => faults.push(fault),
        }
    }
    Err(format!("{}\noutcome: {outcome:#?}", faults.join("\n")))
}

fn fault(
    acceptable: &Map<String, Value>,
    comparison: &Comparison<'_>,
    outcome: &Outcome,
) -> Option<String> {
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
    if !is_same_usage(get("usage"), comparison, outcome.usage.as_ref()) {
        return different("usage", &outcome.usage);
    }
    calls_fault(get("tool_calls"), comparison, outcome)
}

fn error_fault(wanted: &Value, outcome: &Outcome) -> Option<String> {
    match &outcome.error {
        Some(error) if wanted.is_object() => different_error(wanted, error),
        None if wanted.is_null() => None,
        error => Some(format!("error: wanted {wanted}, got {error:?}")),
    }
}

/// What is different about an error: class, retry, wait, words.
pub fn different_error(wanted: &Value, error: &Error) -> Option<String> {
    let wait = error.retry_after().map(|wait| {
        let up = u64::from(wait.subsec_nanos() % 1_000_000 > 0);
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) + up
    });
    let contains = wanted["message_contains"].as_str().unwrap_or("");
    let is_same = wanted["class"].as_str() == Some(class(error))
        && wanted["retryable"].as_bool() == Some(error.is_temporary())
        && wanted["retry_after_ms"].as_u64() == wait
        && error.to_string().contains(contains);
    (!is_same).then(|| format!("error: wanted {wanted}, got {error:?}"))
}

fn is_same_usage(wanted: &Value, comparison: &Comparison<'_>, got: Option<&Usage>) -> bool {
    let Some(got) = got else {
        return wanted.is_null();
    };
    wanted.is_object()
        && wanted["prompt_tokens"].as_u64() == got.input_tokens
        && wanted["completion_tokens"].as_u64() == got.output_tokens
        && wanted["total_tokens"].as_u64() == got.total_tokens
        && (!comparison.usage_details || are_same_details(wanted, got))
}

fn are_same_details(wanted: &Value, got: &Usage) -> bool {
    let cached = ["cached_tokens", "cache_read_tokens"]
        .iter()
        .find_map(|name| wanted[name].as_u64());
    cached == got.cached_tokens && wanted["reasoning_tokens"].as_u64() == got.reasoning_tokens
}

/// Calls that miss something are not runnable: they count only where the case names them.
fn calls_fault(wanted: &Value, comparison: &Comparison<'_>, outcome: &Outcome) -> Option<String> {
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
            .all(|(wanted, got)| is_same_call(wanted, got, comparison));
    (!is_same).then(|| format!("tool_calls: wanted {wanted:?}, got {got:?}"))
}

fn is_same_call(wanted: &Value, got: &ToolCall, comparison: &Comparison<'_>) -> bool {
    let id = wanted["id"].as_str().unwrap_or("");
    let arguments = &wanted["arguments"];
    let same_arguments = match arguments.as_str() {
        Some(raw) => raw == got.arguments(),
        None => serde_json::from_str::<Value>(got.arguments()).is_ok_and(|got| got == *arguments),
    };
    let extra = wanted.get("extra");
    let got_extra = (comparison.call_extra)(got);
    (id == "any-nonempty-unique" || id == got.id())
        && wanted["name"].as_str() == Some(got.name())
        && same_arguments
        && extra == got_extra.as_ref()
        && got.is_complete() == (wanted["incomplete"] != true)
}
