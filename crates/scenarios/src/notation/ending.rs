//! How a leg ends, in words.

/// The words for how a leg ends; `error` may have a kind and a code behind it.
pub const STOPS: &[&str] = &[
    "stop",
    "length",
    "content_filter",
    "awaiting_approval",
    "awaiting_tool_results",
    "max_rounds",
    "tool_retry_limit",
    "budget calls",
    "budget wall_time",
    "budget deadline",
    "no_progress",
    "empty_response",
    "terminated fatal_error",
    "terminated fail_fast",
    "terminated unknown_tool",
    "terminated middleware",
    "terminated hook",
    "error cancelled",
    "error model",
    "error store",
    "error approval_refused",
    "error misuse",
];

/// An expected end in its words.
pub fn stop_words(text: &str) -> Result<Vec<String>, String> {
    let canonical = match text {
        "completed" => "stop",
        "paused" => "awaiting_approval",
        "truncated" => "length",
        "cancelled" => "error cancelled",
        "model_error" => "error model",
        other => other,
    };
    let known = STOPS.contains(&canonical) || canonical.starts_with("error ");
    if !known {
        return Err(format!(
            "'{text}' is no end of a leg; expected one of {}",
            STOPS.join(", ")
        ));
    }
    Ok(canonical.split(' ').map(str::to_owned).collect())
}

/// Whether a leg ended as expected; `error model` is any failure of the model.
pub fn is_stop(event: &[String], expected: &[String], is_model_error: bool) -> bool {
    if is_model_error && expected == ["error", "model"] {
        return true;
    }
    event.len() >= expected.len() && event.iter().zip(expected).all(|(is, wanted)| is == wanted)
}
