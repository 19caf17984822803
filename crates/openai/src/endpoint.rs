//! What is fixed of OpenAI-compatible endpoints: the words of their errors, the headers of their limits.

use raf_wire::{EndpointKind, RateLimitHeaders};

/// Every server that speaks like OpenAI's Chat Completions.
pub(crate) static CHAT_COMPLETIONS: EndpointKind = EndpointKind {
    user_agent: concat!("raf-openai/", env!("CARGO_PKG_VERSION")),
    key_settings: "OPENAI_API_KEY, or OpenAiOptions::with_api_key",
    url_setting: "OPENAI_BASE_URL",
    url_examples: "https://api.openai.com/v1 or http://localhost:11434/v1",
    url_hint: "it usually ends in /v1",
    paths: &["/chat/completions", "/responses"],
    missing_end: "neither a finish reason nor [DONE] came",
    signs: &[],
    rate_limits: RATE_LIMITS,
};

/// OpenAI, Groq.
const RATE_LIMITS: &[RateLimitHeaders] = &[
    RateLimitHeaders {
        remaining: "x-ratelimit-remaining-requests",
        reset: "x-ratelimit-reset-requests",
    },
    RateLimitHeaders {
        remaining: "x-ratelimit-remaining-tokens",
        reset: "x-ratelimit-reset-tokens",
    },
];
