//! How large a schema may be.

use serde_json::Value;

/// The most bytes of its text.
const MAX_BYTES: usize = 256 * 1024;

/// The most levels of nesting.
const MAX_DEPTH: usize = 64;

/// The most values in it.
const MAX_VALUES: usize = 20_000;

/// The most bytes that a compiled regular expression may take.
pub(super) const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// The most characters of a regular expression.
pub(super) const MAX_PATTERN_LENGTH: usize = 512;

/// The most regular expressions.
pub(super) const MAX_PATTERNS: usize = 64;

/// The schema of a text that is within bounds.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!(
            "it has {} bytes, and may have {MAX_BYTES}",
            text.len()
        ));
    }
    let schema = serde_json::from_str(text)
        .map_err(|error| format!("it is no JSON that can be read: {error}"))?;
    let mut values = 0;
    measure(&schema, 1, &mut values)?;
    Ok(schema)
}

fn measure(value: &Value, depth: usize, values: &mut usize) -> Result<(), String> {
    *values += 1;
    if *values > MAX_VALUES {
        return Err(format!("it has more than {MAX_VALUES} values"));
    }
    if depth > MAX_DEPTH {
        return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| measure(item, depth + 1, values)),
        Value::Object(object) => object
            .values()
            .try_for_each(|item| measure(item, depth + 1, values)),
        _ => Ok(()),
    }
}
