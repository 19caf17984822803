//! JSON Schema of arguments: compiled once, bounded, without network access.

use std::fmt;

use raf_core::{Error, Result, ToolDeclaration};
use serde_json::Value;

/// A compiled schema.
pub struct CompiledSchema(jsonschema::Validator);

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

impl CompiledSchema {
    /// Compiles the schema of a declaration.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](raf_core::ErrorKind::Configuration) with the tool's name.
    pub fn compile(declaration: &ToolDeclaration) -> Result<Self> {
        jsonschema::validator_for(&declaration.parameters())
            .map(Self)
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
