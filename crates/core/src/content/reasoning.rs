//! Reasoning parts, with the opaque data by which a provider knows its own thoughts again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ExtraFields;

/// Opaque data of a provider that must go back to it as it came: a signature, an encrypted thought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// Whose data it is: a provider sends back only its own. For example `openai`.
    pub provider: String,
    /// The data, untouched.
    pub data: Value,
}

impl ProviderData {
    /// Data of a provider.
    pub fn new(provider: impl Into<String>, data: Value) -> Self {
        Self {
            provider: provider.into(),
            data,
        }
    }
}

/// What the model thought before it answered.
/// JSON form: `{"type": "reasoning", "text": …, "provider_data": {"provider": …, "data": …}}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReasoningContent {
    /// The readable part; empty where the provider hides it.
    pub text: String,
    /// What the provider wants back within a tool loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: ExtraFields,
}

impl ReasoningContent {
    /// A part of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Adds what the provider wants back.
    pub fn with_provider_data(mut self, data: ProviderData) -> Self {
        self.provider_data = Some(data);
        self
    }
}
