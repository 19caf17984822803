//! What is fixed of OpenAI-compatible endpoints: the words of their errors, the headers of their limits.

use raf_core::ErrorKind;
use raf_wire::{EndpointKind, ErrorSign, RateLimitHeaders, SignRow};

/// Every server that speaks like OpenAI's Chat Completions.
pub(crate) const CHAT_COMPLETIONS: EndpointKind = EndpointKind {
    user_agent: concat!("raf-openai/", env!("CARGO_PKG_VERSION")),
    key_settings: "OPENAI_API_KEY, or OpenAiOptions::with_api_key",
    model_settings: "OPENAI_MODEL, OpenAiOptions::with_model",
    url_setting: "OPENAI_BASE_URL",
    url_examples: "https://api.openai.com/v1 or http://localhost:11434/v1",
    url_hint: "it usually ends in /v1",
    paths: &["/chat/completions", "/responses"],
    missing_end: "neither a finish reason nor [DONE] came",
    signs: &[],
    rate_limits: RATE_LIMITS,
};

/// Every server that speaks like OpenAI's Responses API.
pub(crate) static RESPONSES: EndpointKind = EndpointKind {
    missing_end: "no terminal event came (response.completed or the like)",
    signs: RESPONSE_SIGNS,
    ..CHAT_COMPLETIONS
};

const RESPONSE_SIGNS: &[SignRow] = &[
    (
        ErrorSign::Words(&["item with id", "not found"]),
        ErrorKind::InvalidRequest,
        "OpenAI sends it with 404, vercel/ai#7543",
    ),
    (
        ErrorSign::Code("server_is_overloaded"),
        ErrorKind::Overloaded,
        "ChatGPT backend, Soju06/codex-lb#2396",
    ),
    (
        ErrorSign::Code("usage_limit_reached"),
        ErrorKind::Quota,
        "ChatGPT backend, nghyane/launchdock#29",
    ),
    (
        ErrorSign::Code("invalid_prompt"),
        ErrorKind::InvalidRequest,
        "OpenRouter, Responses API error handling",
    ),
];

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
