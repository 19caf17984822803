//! JSON Schema of arguments: compiled once, bounded, without network access.

use std::fmt;
use std::sync::Arc;

use raf_core::{Error, Result, ToolDeclaration};
use serde_json::Value;

mod keywords;

pub(crate) use keywords::{Subschemas, subschemas_at};

/// A compiled schema. A cheap handle.
#[derive(Clone)]
pub struct CompiledSchema(Arc<jsonschema::Validator>);

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledSchema(..)")
    }
}

/// One way in which arguments break their schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentFault {
    /// Where, as a JSON pointer; empty for the arguments as a whole.
    pub pointer: String,
    /// What was expected there.
    pub expectation: String,
}

impl ArgumentFault {
    /// A fault at a place.
    pub fn new(pointer: impl Into<String>, expectation: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            expectation: expectation.into(),
        }
    }
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return write!(f, "the arguments {}", self.expectation);
        }
        write!(f, "{} {}", self.pointer, self.expectation)
    }
}

impl CompiledSchema {
    /// Compiles the schema of a declaration.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) with the tool's name.
    pub fn compile(declaration: &ToolDeclaration) -> Result<Self> {
        jsonschema::validator_for(&declaration.parameters())
            .map(|validator| Self(Arc::new(validator)))
            .map_err(|error| {
                Error::configuration(format!(
                    "the schema of tool '{}' is not valid: {error}",
                    declaration.name()
                ))
            })
    }

    /// What is wrong with arguments; nothing if they fit.
    pub fn faults(&self, arguments: &Value) -> Vec<ArgumentFault> {
        self.0
            .iter_errors(arguments)
            .map(|error| ArgumentFault {
                pointer: error.instance_path().to_string(),
                expectation: error.to_string(),
            })
            .collect()
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
