//! Images, sound, video and other files.

use serde::{Deserialize, Serialize};

use super::ExtraFields;

/// Where the bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// An address that the provider fetches, or a `data:` URL.
    Url(String),
    /// The bytes, in base64 without line breaks.
    Base64(String),
    /// The id of a file that the provider holds.
    FileId(String),
}

/// A part that is not text.
/// JSON form: `{"type": "image", "source": {"base64": …}, "media_type": "image/png", "name": …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MediaContent {
    /// Where the bytes are.
    pub source: MediaSource,
    /// The IANA media type, for example `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// A file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields that this version does not know, and hints such as an image's `detail`.
    #[serde(flatten)]
    pub extra: ExtraFields,
}

impl MediaContent {
    /// Media at an address.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(MediaSource::Url(url.into()))
    }

    /// Media as base64 text of this media type.
    pub fn base64(data: impl Into<String>, media_type: impl Into<String>) -> Self {
        let mut media = Self::new(MediaSource::Base64(data.into()));
        media.media_type = Some(media_type.into());
        media
    }

    /// Media from a source.
    pub fn new(source: MediaSource) -> Self {
        Self {
            source,
            media_type: None,
            name: None,
            extra: ExtraFields::new(),
        }
    }

    /// Sets the file name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the media type.
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}
