//! What can be the arguments of a typed tool.

use raf_core::ToolDeclaration;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::schema_text::{is_unit, parameters_schema};
use crate::arguments::cut;
use crate::error::ToolError;
use crate::tool::ToolArguments;

/// The arguments of a typed tool: any type that derives `serde::Deserialize` and
/// `schemars::JsonSchema` and describes a JSON object, or `()` for none. Never implemented by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not the arguments of a tool",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` on it, with owned fields only"
)]
pub trait ToolParams: DeserializeOwned + JsonSchema + Send + 'static {
    /// The parameters in arguments that have passed the schema.
    ///
    /// # Errors
    /// What the type refuses beyond its schema, as
    /// [`ToolErrorKind::InvalidParameters`](crate::ToolErrorKind::InvalidParameters): the model
    /// reads it.
    fn from_arguments(arguments: ToolArguments) -> Result<Self, ToolError>;
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolParams for T {
    fn from_arguments(arguments: ToolArguments) -> Result<Self, ToolError> {
        let value = if is_unit::<T>() {
            Value::Null
        } else {
            Value::Object(arguments)
        };
        T::deserialize(value).map_err(|error| {
            let reason = error.to_string();
            ToolError::invalid_parameters(cut(&reason, MAX_REASON_BYTES))
        })
    }
}

/// The most bytes of what a type says against arguments: its text may quote them.
const MAX_REASON_BYTES: usize = 512;

/// The declaration of a tool whose arguments are of this type.
pub(super) fn declare<P: ToolParams>(name: String, description: String) -> ToolDeclaration {
    let declaration = ToolDeclaration::new(name, description);
    if is_unit::<P>() {
        return declaration;
    }
    declaration
        .with_parameters_json(parameters_schema::<P>())
        .expect("a schema prints as JSON")
}
