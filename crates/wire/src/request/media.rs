//! The address of media, whether they lie somewhere or come along.

use raf_core::{MediaContent, MediaSource};

/// The URL of media: their own, or a `data:` URL of their bytes. Empty for an id of an uploaded file.
pub fn data_url(media: &MediaContent, default_type: &str) -> String {
    match &media.source {
        MediaSource::Base64(data) => {
            let media_type = media.media_type.as_deref().unwrap_or(default_type);
            format!("data:{media_type};base64,{data}")
        }
        MediaSource::Url(url) => url.clone(),
        _ => String::new(),
    }
}
