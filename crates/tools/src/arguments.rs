//! From a call's raw text to arguments that fit, or to one text that says what is wrong with them.

use std::fmt;

use raf_core::{ArgumentsFault, ToolCall};
use serde_json::Value;

use crate::schema::{ArgumentFault, CompiledSchema};
use crate::tool::ToolArguments;

/// The most bytes of the text that a model reads about invalid arguments.
const MAX_TEXT_BYTES: usize = 2048;

/// The most bytes of the arguments that are shown in it.
const MAX_PREVIEW_BYTES: usize = 512;

/// The most bytes of one fault.
const MAX_FAULT_BYTES: usize = 320;

/// The most faults that are told.
const MAX_FAULTS: usize = 8;

/// The arguments of a call, if they are a JSON object that fits the schema.
///
/// Empty, blank and `null` text is an empty object (contract D3). Text that is no JSON is never
/// replaced by one.
///
/// # Errors
/// What is wrong. The body must not be entered.
pub fn prepare_arguments(
    call: &ToolCall,
    schema: &CompiledSchema,
) -> Result<ToolArguments, InvalidArguments> {
    let fault = match call.parse_arguments() {
        Ok(arguments) => {
            return validate(arguments, schema).map_err(|(faults, _)| {
                InvalidArguments::new(call.name(), faults, call.arguments())
            });
        }
        Err(ArgumentsFault::NotAnObject(found)) => not_an_object(found),
        Err(ArgumentsFault::NotJson(reason)) => {
            ArgumentFault::new("", format!("must be valid JSON: {reason}"))
        }
        Err(_) => ArgumentFault::new("", "must be a JSON object"),
    };
    Err(InvalidArguments::new(
        call.name(),
        vec![fault],
        call.arguments(),
    ))
}

/// As [`prepare_arguments`], for arguments that are a value by now: those that a person edited, or
/// that a program calls a tool with.
///
/// # Errors
/// What is wrong.
pub fn check_arguments(
    tool: &str,
    arguments: Value,
    schema: &CompiledSchema,
) -> Result<ToolArguments, InvalidArguments> {
    let arguments = match arguments {
        Value::Null => ToolArguments::new(),
        Value::Object(arguments) => arguments,
        other => {
            let fault = not_an_object(crate::schema::type_name(&other));
            return Err(InvalidArguments::new(tool, vec![fault], &other.to_string()));
        }
    };
    validate(arguments, schema)
        .map_err(|(faults, value)| InvalidArguments::new(tool, faults, &value.to_string()))
}

fn validate(
    arguments: ToolArguments,
    schema: &CompiledSchema,
) -> Result<ToolArguments, (Vec<ArgumentFault>, Value)> {
    let value = Value::Object(arguments);
    let faults = schema.faults(&value);
    match value {
        Value::Object(arguments) if faults.is_empty() => Ok(arguments),
        value => Err((faults, value)),
    }
}

fn not_an_object(found: &str) -> ArgumentFault {
    ArgumentFault::new(
        "",
        format!("must be a JSON object, not {}", with_article(found)),
    )
}

/// `array` to `an array`.
pub(crate) fn with_article(noun: &str) -> String {
    match noun.as_bytes().first() {
        _ if noun == "null" => noun.to_owned(),
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => format!("an {noun}"),
        _ => format!("a {noun}"),
    }
}

/// Arguments that must not reach the body.
///
/// `Display` is the one text that the model reads, at most 2 kB: it names the tool,
/// each fault with its path, and shows the beginning of what arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidArguments {
    /// The tool's name.
    pub tool: String,
    /// What is wrong, at most eight entries.
    pub faults: Vec<ArgumentFault>,
    /// The beginning of what arrived.
    pub preview: String,
}

impl InvalidArguments {
    /// Faults in the arguments of a tool, whose raw text is `received`. The text is cut.
    pub fn new(tool: impl Into<String>, mut faults: Vec<ArgumentFault>, received: &str) -> Self {
        faults.truncate(MAX_FAULTS);
        Self {
            tool: tool.into(),
            faults,
            preview: preview(received),
        }
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = cut(&self.tool, 64);
        let mut text = format!("Invalid arguments for tool '{tool}'; it was not run.");
        let tail = format!("\nReceived: {}", self.preview);
        for fault in &self.faults {
            let line = format!("\n- {}", cut(&fault.to_string(), MAX_FAULT_BYTES));
            if text.len() + line.len() + tail.len() > MAX_TEXT_BYTES {
                break;
            }
            text.push_str(&line);
        }
        text.push_str(&tail);
        f.write_str(&text)
    }
}

impl std::error::Error for InvalidArguments {}

fn preview(received: &str) -> String {
    if received.trim().is_empty() {
        return "nothing".to_owned();
    }
    let shown = cut(received, MAX_PREVIEW_BYTES);
    if shown.len() == received.len() {
        return shown.to_owned();
    }
    format!(
        "{shown}… (the first {} of {} bytes)",
        shown.len(),
        received.len()
    )
}

/// The beginning of a text, at most so many bytes, cut between characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests;
