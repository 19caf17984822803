//! The typed reading of a delta: borrowed, one pass. It fails on anything out of the ordinary, which
//! then is read loosely (`loose.rs`).

use std::borrow::Cow;

use raf_core::Result;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::response::Reply;

/// One `content_block_delta` of text, thinking or arguments.
#[derive(Deserialize)]
pub(crate) struct DeltaEvent<'a> {
    r#type: &'a str,
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    r#type: &'a str,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    partial_json: Cow<'a, str>,
}

impl<'a> DeltaEvent<'a> {
    /// The delta that a line is, if it is one of those.
    #[inline]
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        if !line.contains("content_block_delta") {
            return None;
        }
        let event: Self = serde_json::from_str(line).ok()?;
        let is_plain = event.r#type == "content_block_delta"
            && event.error.is_none()
            && matches!(
                event.delta.r#type,
                "text_delta" | "thinking_delta" | "input_json_delta"
            );
        is_plain.then_some(event)
    }

    /// Tells the reply.
    ///
    /// # Errors
    /// A limit that is passed.
    #[inline]
    pub(crate) fn apply(&self, reply: &mut Reply) -> Result<()> {
        let index = Some(self.index);
        match self.delta.r#type {
            "text_delta" => reply.text(index, &self.delta.text),
            "thinking_delta" => reply.thinking(index, &self.delta.thinking),
            _ => reply.arguments(index, &self.delta.partial_json),
        }
    }
}
