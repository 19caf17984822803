//! What the model is told of a tool.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// A tool as the model sees it: name, description, JSON Schema of the arguments.
///
/// A cheap handle. The schema is kept as the JSON text that was given, so that the order of its
/// properties reaches the wire as written. JSON form:
/// `{"name": …, "description": …, "parameters": {schema}}`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolDeclaration(Arc<Data>);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Data {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "no_parameters")]
    parameters: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

fn no_parameters() -> Box<RawValue> {
    RawValue::from_string(NO_PARAMETERS.to_owned()).expect("a constant that is JSON")
}

impl ToolDeclaration {
    /// A tool without parameters.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self(Arc::new(Data {
            name: name.into(),
            description: description.into(),
            parameters: no_parameters(),
            strict: None,
        }))
    }

    /// Sets the JSON Schema of the arguments from a value. Keys come in the order that the value
    /// has; see [`ToolDeclaration::with_parameters_json`] where the order matters.
    pub fn with_parameters(self, schema: &Value) -> Self {
        let raw = RawValue::from_string(schema.to_string()).expect("a value prints as JSON");
        self.change(|data| data.parameters = raw)
    }

    /// Sets the JSON Schema of the arguments from its text, which reaches the wire as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the text is no JSON, or is
    /// nested deeper than 127 levels.
    pub fn with_parameters_json(self, schema: impl Into<String>) -> Result<Self> {
        let schema = schema.into();
        // A raw value takes text of any depth; what is parsed later must be parsable now.
        let raw = serde_json::from_str::<Value>(&schema)
            .and_then(|_| RawValue::from_string(schema))
            .map_err(|source| {
                Error::configuration(format!(
                    "the parameters of tool '{}' are not JSON: {source}",
                    self.name()
                ))
                .with_source(source)
            })?;
        Ok(self.change(|data| data.parameters = raw))
    }

    /// Asks the provider to hold the model to the schema (OpenAI's `strict`). Unset by default.
    pub fn with_strict(self, strict: bool) -> Self {
        self.change(|data| data.strict = Some(strict))
    }

    /// The same tool under another name.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.change(|data| data.name = name.into())
    }

    fn change(mut self, change: impl FnOnce(&mut Data)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What the tool does and when to use it.
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// The JSON Schema of the arguments, as text.
    pub fn parameters_json(&self) -> &RawValue {
        &self.0.parameters
    }

    /// The JSON Schema of the arguments, parsed anew; `null` where a declaration that was read from
    /// JSON holds one nested deeper than 127 levels.
    pub fn parameters(&self) -> Value {
        serde_json::from_str(self.0.parameters.get()).unwrap_or_default()
    }

    /// Whether the provider is asked to hold the model to the schema.
    pub fn strict(&self) -> Option<bool> {
        self.0.strict
    }

    /// Whether two handles are the same declaration, by address.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for ToolDeclaration {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
            || (self.name() == other.name()
                && self.description() == other.description()
                && self.strict() == other.strict()
                && self.0.parameters.get() == other.0.parameters.get())
    }
}

impl fmt::Debug for ToolDeclaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDeclaration")
            .field("name", &self.name())
            .field("description", &self.description())
            .field("parameters", &self.0.parameters.get())
            .finish()
    }
}
