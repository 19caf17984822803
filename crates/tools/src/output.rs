//! What a tool returns: one value, or a stream of pieces.

use std::fmt;

use futures::stream::BoxStream;
use raf_core::Content;
use serde::Serialize;
use serde_json::Value;

use crate::error::ToolError;

/// What a tool returns.
///
/// Whole or streamed is a property of the value: a stream's pieces reach the run's stream as
/// progress while the tool runs, and are joined to the result by part kind; a stream without pieces
/// is a legal empty result.
#[non_exhaustive]
pub enum ToolOutput {
    /// Nothing. The model is told that it worked.
    Void,
    /// Text, as it is.
    Text(String),
    /// A JSON value, as JSON text.
    Json(Value),
    /// Typed parts: text, images, sound, video, files.
    Parts(Vec<Content>),
    /// Pieces as they come. Text pieces are joined.
    Stream(BoxStream<'static, Result<Content, ToolError>>),
}

impl ToolOutput {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Any value that serialises, as JSON.
    ///
    /// # Errors
    /// A failure whose text goes to the log only, if it does not serialise.
    pub fn json(value: impl Serialize) -> Result<Self, ToolError> {
        match serde_json::to_value(value) {
            Ok(value) => Ok(Self::Json(value)),
            Err(error) => Err(ToolError::execution_failed(
                "the tool's return value does not serialise to JSON",
            )
            .with_source(error)),
        }
    }

    /// Typed parts.
    pub fn parts(parts: impl IntoIterator<Item = Content>) -> Self {
        Self::Parts(parts.into_iter().collect())
    }

    /// Pieces as they come.
    pub fn stream(
        pieces: impl futures::Stream<Item = Result<Content, ToolError>> + Send + 'static,
    ) -> Self {
        Self::Stream(Box::pin(pieces))
    }
}

impl fmt::Debug for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => f.write_str("Void"),
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Json(value) => f.debug_tuple("Json").field(value).finish(),
            Self::Parts(parts) => f.debug_tuple("Parts").field(parts).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self::Void
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<Vec<Content>> for ToolOutput {
    fn from(parts: Vec<Content>) -> Self {
        Self::Parts(parts)
    }
}
