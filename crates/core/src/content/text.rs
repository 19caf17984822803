//! Text and refusal parts.

use serde::{Deserialize, Serialize};

use super::ExtraFields;

/// A text part. JSON form: `{"type": "text", "text": …}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: ExtraFields,
}

impl TextContent {
    /// A part of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extra: ExtraFields::new(),
        }
    }
}

/// The model's own words of refusal, where a provider keeps them apart from text.
/// JSON form: `{"type": "refusal", "text": …}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RefusalContent {
    /// The words.
    pub text: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: ExtraFields,
}

impl RefusalContent {
    /// A part of these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extra: ExtraFields::new(),
        }
    }
}
