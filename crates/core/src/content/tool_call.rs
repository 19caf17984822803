//! A call that the model asks for: its raw argument text, and what that parses to.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{ExtraFields, ProviderData};

/// A tool call as the model made it. A cheap handle: cloning copies one pointer.
///
/// The argument text is kept exactly as the model wrote it, for people to see; it is parsed
/// when first asked for. JSON form:
/// `{"type": "tool_call", "id": …, "name": …, "arguments": "raw text", "complete": true}`
/// (`complete` is left out where true).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    data: Data,
    fault: OnceLock<Option<Box<ArgumentsFault>>>,
    parsed: OnceLock<Box<Map<String, Value>>>,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Data {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: String,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    complete: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_data: Option<ProviderData>,
    #[serde(flatten)]
    extra: ExtraFields,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_true(flag: &bool) -> bool {
    *flag
}

/// Why an argument text is not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentsFault {
    /// The text is no JSON: what the parser says, with line and column.
    NotJson(String),
    /// The text is JSON of another type: array, string, number or boolean.
    NotAnObject(&'static str),
}

impl ToolCall {
    /// A complete call with this id, tool name and raw argument text.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self::builder(id, name, arguments).build()
    }

    /// A call with more than the usual fields.
    pub fn builder(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> ToolCallBuilder {
        ToolCallBuilder(Data {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            complete: true,
            provider_data: None,
            extra: ExtraFields::new(),
        })
    }

    /// The same call with some fields changed.
    pub fn to_builder(&self) -> ToolCallBuilder {
        ToolCallBuilder(self.0.data.clone())
    }

    /// The label that the model gave: may be empty, repeated or reused. Never an identity.
    pub fn id(&self) -> &str {
        &self.0.data.id
    }

    /// The tool's name as the model wrote it.
    pub fn name(&self) -> &str {
        &self.0.data.name
    }

    /// The argument text as the model wrote it.
    pub fn arguments(&self) -> &str {
        &self.0.data.arguments
    }

    /// Whether the provider saw the end of the call. An incomplete one never runs.
    pub fn is_complete(&self) -> bool {
        self.0.data.complete
    }

    /// Opaque data that the provider wants back with the call.
    pub fn provider_data(&self) -> Option<&ProviderData> {
        self.0.data.provider_data.as_ref()
    }

    /// Fields that this version does not know.
    pub fn extra(&self) -> &ExtraFields {
        &self.0.data.extra
    }

    /// The arguments as an object, parsed once and kept with the call. Empty, blank and `null` text is
    /// an empty object (contract D3); 64-bit integers stay exact, larger numbers become floating point.
    ///
    /// # Errors
    /// What is wrong with a text that is not a JSON object.
    pub fn parsed_arguments(&self) -> Result<&Map<String, Value>, &ArgumentsFault> {
        if let Some(arguments) = self.0.parsed.get() {
            return Ok(arguments);
        }
        let arguments = self.parse_arguments()?;
        Ok(self.0.parsed.get_or_init(|| Box::new(arguments)))
    }

    /// As [`ToolCall::parsed_arguments`], not kept: of a call that stays in a transcript long after it
    /// was run.
    ///
    /// # Errors
    /// As there.
    pub fn parse_arguments(&self) -> Result<Map<String, Value>, &ArgumentsFault> {
        if let Some(fault) = self.0.fault.get().and_then(Option::as_ref) {
            return Err(fault);
        }
        if let Some(arguments) = self.0.parsed.get() {
            return Ok((**arguments).clone());
        }
        let (arguments, fault) = match parse(&self.0.data.arguments) {
            Ok(arguments) => (arguments, None),
            Err(fault) => (Map::new(), Some(Box::new(fault))),
        };
        match self.0.fault.get_or_init(|| fault) {
            None => Ok(arguments),
            Some(fault) => Err(fault),
        }
    }

    /// What is wrong with the argument text, if it is not a JSON object: looked at once.
    pub fn arguments_fault(&self) -> Option<&ArgumentsFault> {
        if self.0.fault.get().is_none() {
            return self.parse_arguments().err();
        }
        self.0.fault.get()?.as_deref()
    }
}

fn parse(text: &str) -> Result<Map<String, Value>, ArgumentsFault> {
    let text = text.trim();
    if text.is_empty() || text == "null" {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(ArgumentsFault::NotAnObject(type_name(&other))),
        Err(error) => Err(ArgumentsFault::NotJson(error.to_string())),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.data.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(ToolCallBuilder(Data::deserialize(deserializer)?).build())
    }
}

/// Builds a [`ToolCall`].
#[derive(Clone, Debug)]
pub struct ToolCallBuilder(Data);

impl ToolCallBuilder {
    /// Sets the id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.0.id = id.into();
        self
    }

    /// Sets the name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Sets the raw argument text.
    pub fn arguments(mut self, arguments: impl Into<String>) -> Self {
        self.0.arguments = arguments.into();
        self
    }

    /// Says whether the provider saw the end of the call.
    pub fn complete(mut self, complete: bool) -> Self {
        self.0.complete = complete;
        self
    }

    /// Adds opaque data that the provider wants back.
    pub fn provider_data(mut self, data: ProviderData) -> Self {
        self.0.provider_data = Some(data);
        self
    }

    /// Adds a field that raf does not know.
    pub fn extra(mut self, name: impl Into<String>, value: Value) -> Self {
        self.0.extra.insert(name.into(), value);
        self
    }

    /// The call.
    pub fn build(self) -> ToolCall {
        ToolCall(Arc::new(Inner {
            data: self.0,
            fault: OnceLock::new(),
            parsed: OnceLock::new(),
        }))
    }
}
