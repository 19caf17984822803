//! From a case's words for a server and its capabilities to a dialect.

use raf_anthropic::{Dialect, KeyHeader, Prefill, ThinkingBack, ThinkingForm};
use raf_testing::wire::named_first;

/// Words that name a server, and its dialect.
const WORDS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("bedrock", "bedrock"),
    ("vertex", "vertex"),
    ("deepseek", "deepseek"),
    ("kimi", "kimi"),
    ("glm", "glm"),
    ("z.ai", "glm"),
    ("minimax", "minimax"),
    ("llama.cpp", "llamacpp"),
    ("sglang", "sglang"),
    ("vllm", "vllm"),
    ("ollama", "ollama"),
    ("openrouter", "openrouter"),
    ("litellm", "litellm"),
    ("copilot", "copilot"),
];

/// The dialect of the server that is named first.
pub(crate) fn of_server(server: &str) -> Dialect {
    named_first(server, WORDS)
        .and_then(Dialect::named)
        .unwrap_or_else(Dialect::compatible)
}

/// The dialect of a reply: a server's, on an endpoint of the common form.
pub(crate) fn of_reply(server: &str) -> Dialect {
    of_server(server).with_endpoint_form(raf_anthropic::EndpointForm::Messages)
}

/// The dialect with a capability as a case writes it.
pub(crate) fn with_capability(dialect: Dialect, capability: &str) -> Dialect {
    match capability {
        "no_prefill" => dialect.with_prefill(Prefill::Refused),
        "adaptive_thinking_only" => dialect.with_thinking_form(ThinkingForm::Adaptive),
        "thinking_back_unsigned" | "thinking_kept" => {
            dialect.with_thinking_back(ThinkingBack::Unsigned)
        }
        "bearer_auth" => dialect.with_key_header(KeyHeader::Bearer),
        "no_betas" => dialect.with_betas(false),
        "no_output_config" => dialect.with_output_config(false),
        "no_tool_choice_none" => dialect.with_tool_choice_none(false),
        "vertex" | "bedrock" => Dialect::named(capability).unwrap_or(dialect),
        // A capability that asks for nothing that a dialect does not do anyway, or one that no rule
        // knows yet: then the case's checks say so.
        _ => dialect,
    }
}
