//! The JSON Schema of the files, for editors.

use crate::format::ScenarioFile;

/// The JSON Schema of a scenario file, made of the types that read it.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(ScenarioFile);
    serde_json::to_string_pretty(&schema).unwrap_or_default()
}
