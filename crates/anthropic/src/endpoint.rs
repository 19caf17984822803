//! What is fixed of a Messages endpoint: the words of its errors, the signs by which it tells them,
//! the headers of its rate limits.

use raf_core::ErrorKind;
use raf_wire::ErrorSign::{Code, Words};
use raf_wire::{EndpointKind, RateLimitHeaders, SignRow};

/// The Messages API and its imitators.
pub(crate) static MESSAGES: EndpointKind = EndpointKind {
    user_agent: concat!("raf-anthropic/", env!("CARGO_PKG_VERSION")),
    key_settings: "ANTHROPIC_API_KEY, or AnthropicOptions::with_api_key",
    model_settings: "ANTHROPIC_MODEL, AnthropicOptions::with_model",
    url_setting: "ANTHROPIC_BASE_URL",
    url_examples: "https://api.anthropic.com or http://localhost:8080",
    url_hint: "the part before /v1/messages",
    paths: &["/v1/messages", "/messages", "/v1"],
    missing_end: "neither a stop reason nor message_stop came",
    signs: SIGNS,
    rate_limits: RATE_LIMITS,
};

/// Sign, class, evidence. They come before those that hold for all endpoints.
const SIGNS: &[SignRow] = &[
    (
        Words(&["exceed context limit"]),
        ErrorKind::ContextLength,
        "docker/docker-agent#569: input length and `max_tokens` exceed context limit",
    ),
    (
        Words(&["prompt is too long"]),
        ErrorKind::ContextLength,
        "infiniflow/ragflow#11815",
    ),
    (
        Words(&["content filtering policy"]),
        ErrorKind::ContentFilter,
        "anthropics/claude-code#61565, in the stream and as status 400",
    ),
    (
        Words(&["credit balance"]),
        ErrorKind::Quota,
        "Anthropic sends it with 400 and invalid_request_error",
    ),
    (Code("billing_error"), ErrorKind::Quota, "Anthropic errors"),
    (
        Code("request_too_large"),
        ErrorKind::PayloadTooLarge,
        "anthropics/anthropic-sdk-python#938",
    ),
    (
        Code("timeout_error"),
        ErrorKind::Timeout,
        "Anthropic errors",
    ),
    (
        Code("access_terminated_error"),
        ErrorKind::Permission,
        "kodustech/kodus-ai#1257 (Kimi)",
    ),
    (
        Code("serviceunavailableexception"),
        ErrorKind::Overloaded,
        "AWS Bedrock runtime API errors, also as frames of a stream",
    ),
    (
        Code("modelnotreadyexception"),
        ErrorKind::Overloaded,
        "AWS Bedrock runtime API errors",
    ),
    (
        Code("modeltimeoutexception"),
        ErrorKind::Timeout,
        "AWS Bedrock runtime API errors",
    ),
    (
        Code("validationexception"),
        ErrorKind::InvalidRequest,
        "AWS Bedrock runtime API errors",
    ),
    (
        Code("accessdeniedexception"),
        ErrorKind::Permission,
        "AWS Bedrock runtime API errors",
    ),
    (
        Code("resourcenotfoundexception"),
        ErrorKind::NotFound,
        "AWS Bedrock runtime API errors",
    ),
];

macro_rules! limit {
    ($name:literal) => {
        RateLimitHeaders {
            remaining: concat!("anthropic-ratelimit-", $name, "-remaining"),
            reset: concat!("anthropic-ratelimit-", $name, "-reset"),
        }
    };
}

/// The limits that Anthropic counts; the resets are times.
pub(crate) const RATE_LIMITS: &[RateLimitHeaders] = &[
    limit!("requests"),
    limit!("tokens"),
    limit!("input-tokens"),
    limit!("output-tokens"),
];
