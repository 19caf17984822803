//! The typed parts that a message is made of.

mod media;
mod reasoning;
mod text;
mod tool_call;
mod tool_result;
mod unknown;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub use media::{MediaContent, MediaSource};
pub use reasoning::{ProviderData, ReasoningContent};
pub use text::{RefusalContent, TextContent};
pub use tool_call::{ArgumentsFault, ToolCall, ToolCallBuilder};
pub use tool_result::{
    SkipReason, ToolErrorClass, ToolOutcome, ToolResult, ToolResultBuilder, TrustLabel,
};
pub use unknown::UnknownContent;

/// Fields that this version does not know, kept so that they survive a round trip.
pub type ExtraFields = Map<String, Value>;

/// One part of a message.
///
/// JSON form: an object whose `type` names the part (`text`, `reasoning`, `refusal`, `image`,
/// `audio`, `video`, `file`, `tool_call`, `tool_result`); any other object is kept as
/// [`Content::Unknown`], byte for byte up to white space and the order of keys.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// What the model thought, with opaque data of its provider.
    Reasoning(ReasoningContent),
    /// The model's own words of refusal.
    Refusal(RefusalContent),
    /// An image.
    Image(MediaContent),
    /// Sound.
    Audio(MediaContent),
    /// Moving pictures.
    Video(MediaContent),
    /// Any other file.
    File(MediaContent),
    /// A call that the model asks for.
    ToolCall(ToolCall),
    /// The result of a call.
    ToolResult(ToolResult),
    /// A part of a kind that this version does not know, kept as it came.
    Unknown(UnknownContent),
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if this is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The call, if this is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The result, if this is one.
    pub fn as_tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::ToolResult(result) => Some(result),
            _ => None,
        }
    }

    /// Whether a provider would take this part for nothing: blank-free emptiness of text,
    /// refusal or reasoning.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.text.is_empty(),
            Self::Refusal(refusal) => refusal.text.is_empty(),
            Self::Reasoning(reasoning) => {
                reasoning.text.is_empty() && reasoning.provider_data.is_none()
            }
            _ => false,
        }
    }
}

impl From<TextContent> for Content {
    fn from(part: TextContent) -> Self {
        Self::Text(part)
    }
}

impl From<ReasoningContent> for Content {
    fn from(part: ReasoningContent) -> Self {
        Self::Reasoning(part)
    }
}

impl From<ToolCall> for Content {
    fn from(part: ToolCall) -> Self {
        Self::ToolCall(part)
    }
}

impl From<ToolResult> for Content {
    fn from(part: ToolResult) -> Self {
        Self::ToolResult(part)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

#[derive(Serialize)]
struct Tagged<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    part: &'a T,
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn tag<S: Serializer, T: Serialize>(
            serializer: S,
            r#type: &'static str,
            part: &T,
        ) -> Result<S::Ok, S::Error> {
            Tagged { r#type, part }.serialize(serializer)
        }
        match self {
            Self::Text(part) => tag(serializer, "text", part),
            Self::Reasoning(part) => tag(serializer, "reasoning", part),
            Self::Refusal(part) => tag(serializer, "refusal", part),
            Self::Image(part) => tag(serializer, "image", part),
            Self::Audio(part) => tag(serializer, "audio", part),
            Self::Video(part) => tag(serializer, "video", part),
            Self::File(part) => tag(serializer, "file", part),
            Self::ToolCall(part) => tag(serializer, "tool_call", part),
            Self::ToolResult(part) => tag(serializer, "tool_result", part),
            Self::Unknown(part) => part.value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn part<T: serde::de::DeserializeOwned, E: serde::de::Error>(
            mut value: Value,
        ) -> Result<T, E> {
            if let Some(object) = value.as_object_mut() {
                object.remove("type");
            }
            T::deserialize(value).map_err(E::custom)
        }
        let value = Value::deserialize(deserializer)?;
        let Some(object) = value.as_object() else {
            return Err(D::Error::custom("a content part must be a JSON object"));
        };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
        Ok(match kind {
            "text" => Self::Text(part(value)?),
            "reasoning" => Self::Reasoning(part(value)?),
            "refusal" => Self::Refusal(part(value)?),
            "image" => Self::Image(part(value)?),
            "audio" => Self::Audio(part(value)?),
            "video" => Self::Video(part(value)?),
            "file" => Self::File(part(value)?),
            "tool_call" => Self::ToolCall(part(value)?),
            "tool_result" => Self::ToolResult(part(value)?),
            _ => Self::Unknown(UnknownContent::new(value)),
        })
    }
}
