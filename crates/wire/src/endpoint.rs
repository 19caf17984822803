//! What is fixed of a kind of endpoint: the words of its errors, the signs by which it tells them.

use crate::error::{RateLimitHeaders, SignRow};

/// One kind of endpoint, as a constant of its provider. The texts end up in errors that people read.
#[derive(Clone, Copy, Debug)]
pub struct EndpointKind {
    /// The `user-agent` of requests: `raf-openai/0.1.0`, say.
    pub user_agent: &'static str,
    /// Where the key is set: `OPENAI_API_KEY, or OpenAiOptions::with_api_key`.
    pub key_settings: &'static str,
    /// Where the model is set: `OPENAI_MODEL, OpenAiOptions::with_model`.
    pub model_settings: &'static str,
    /// Where the base URL is set: `OPENAI_BASE_URL`.
    pub url_setting: &'static str,
    /// What a base URL looks like.
    pub url_examples: &'static str,
    /// How one knows a right one: `it usually ends in /v1`.
    pub url_hint: &'static str,
    /// Paths that a base URL may have at its end though they are the endpoint's own; they are taken
    /// off: `/chat/completions`.
    pub paths: &'static [&'static str],
    /// What did not come where a stream breaks off: `neither a finish reason nor [DONE] came`.
    pub missing_end: &'static str,
    /// Codes and words by which it tells the class of an error, where those known of all endpoints do
    /// not tell it, or tell it wrong.
    pub signs: &'static [SignRow],
    /// The headers of its rate limits.
    pub rate_limits: &'static [RateLimitHeaders],
}

impl EndpointKind {
    /// One of which nothing is fixed: to read an address by.
    pub(crate) const UNKNOWN: Self = Self {
        user_agent: "",
        key_settings: "",
        model_settings: "",
        url_setting: "",
        url_examples: "",
        url_hint: "",
        paths: &[],
        missing_end: "",
        signs: &[],
        rate_limits: &[],
    };
}
